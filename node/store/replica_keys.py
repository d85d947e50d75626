"""An index in memory over entries: by site, by expiry, and the tombstones by age.

What `replica_index` keeps on disk, for the reference replica and for what is not on disk yet.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from node.store.replica_port import ReplicaEntry


def site_of(key: str) -> str:
    """The site in a key `site|slot`."""
    return key.partition("|")[0]


class KeyIndex:
    """Which entries carry a value, by site and by expiry; which are tombstones, by their clock."""

    def __init__(self) -> None:
        self._sites: dict[str, set[str]] = {}
        self._expiry: list[tuple[int, str]] = []
        self._tombstones: list[tuple[int, str]] = []

    def replace(self, old: ReplicaEntry | None, new: ReplicaEntry | None) -> None:
        """Takes note of a change of one key; `old` is what was reported for it before."""
        if old is not None:
            self._forget(old)
        if new is not None:
            self._add(new)

    def keys_of_site(self, site: str) -> set[str]:
        return set(self._sites.get(site, ()))

    def sites(self) -> set[str]:
        return set(self._sites)

    def due(self, before_ms: int, limit: int) -> list[str]:
        """At most `limit` keys that expire before `before_ms`, the earliest first."""
        return [key for _, key in self._expiry[: min(limit, bisect_left(self._expiry, (before_ms, "")))]]

    def tombstones(self) -> Iterator[str]:
        """Their keys, the oldest first."""
        return (key for _, key in self._tombstones)

    def _add(self, entry: ReplicaEntry) -> None:
        if entry.tombstone:
            insort(self._tombstones, (entry.hlc, entry.key))
            return
        self._sites.setdefault(site_of(entry.key), set()).add(entry.key)
        if entry.expires_at_ms:
            insort(self._expiry, (entry.expires_at_ms, entry.key))

    def _forget(self, entry: ReplicaEntry) -> None:
        if entry.tombstone:
            _take_out(self._tombstones, (entry.hlc, entry.key))
            return
        keys = self._sites.get(site_of(entry.key), set())
        keys.discard(entry.key)
        if not keys:
            self._sites.pop(site_of(entry.key), None)
        if entry.expires_at_ms:
            _take_out(self._expiry, (entry.expires_at_ms, entry.key))


def _take_out(rows: list[tuple[int, str]], row: tuple[int, str]) -> None:
    at = bisect_left(rows, row)
    if at < len(rows) and rows[at] == row:
        del rows[at]
