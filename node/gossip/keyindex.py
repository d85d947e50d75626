"""Indexes in memory over a replica's keys: by site, by expiry, and the tombstones.

They are filled by a paged scan behind the opening (so that opening doesn't read the file) and kept up to date by every
change from the start; a key may be reported by both, in any order.
"""

from __future__ import annotations

import heapq
from typing import Final

from node.gossip.tombstones import Tombstones
from node.store.replica_port import ReplicaEntry

# Expiry is kept by the minute: one set of a key for each of its minutes would cost more than the minute is worth.
_BUCKET_MS: Final = 60_000


def site_of(key: str) -> str:
    """The site in a key `site|slot`."""
    return key.partition("|")[0]


class KeyIndex:
    """Which keys carry a value, by site and by expiry; which are tombstones."""

    def __init__(self) -> None:
        self.tombstones = Tombstones()
        self._sites: dict[str, set[str]] = {}
        self._buckets: dict[int, set[str]] = {}
        self._order: list[int] = []

    def replace(self, old: ReplicaEntry | None, new: ReplicaEntry | None) -> None:
        """Takes note of a change; `old` may be one that was never reported."""
        if old is not None:
            self._forget(old)
        if new is not None:
            self.add(new)

    def add(self, entry: ReplicaEntry) -> None:
        """Takes note of an entry that is there."""
        if entry.tombstone:
            self.tombstones.add(entry)
            return
        self._sites.setdefault(site_of(entry.key), set()).add(entry.key)
        if entry.expires_at_ms:
            self._bucket(entry.expires_at_ms // _BUCKET_MS).add(entry.key)

    def keys_of_site(self, site: str) -> tuple[str, ...]:
        return tuple(sorted(self._sites.get(site, ())))

    def sites(self) -> tuple[str, ...]:
        return tuple(sorted(self._sites))

    def due(self, before_ms: int, limit: int) -> list[str]:
        """Takes out at most `limit` keys whose minute of expiry ended before `before_ms`."""
        found: list[str] = []
        while self._order and (self._order[0] + 1) * _BUCKET_MS <= before_ms and len(found) < limit:
            bucket = self._buckets[self._order[0]]
            while bucket and len(found) < limit:
                found.append(bucket.pop())
            if not bucket:
                del self._buckets[heapq.heappop(self._order)]
        return found

    def _bucket(self, number: int) -> set[str]:
        found = self._buckets.get(number)
        if found is None:
            found = self._buckets[number] = set()
            heapq.heappush(self._order, number)
        return found

    def _forget(self, entry: ReplicaEntry) -> None:
        if entry.tombstone:
            self.tombstones.discard(entry.key)
            return
        site = site_of(entry.key)
        keys = self._sites.get(site)
        if keys is not None:
            keys.discard(entry.key)
            if not keys:
                del self._sites[site]
        bucket = self._buckets.get(entry.expires_at_ms // _BUCKET_MS) if entry.expires_at_ms else None
        if bucket is not None:
            bucket.discard(entry.key)
