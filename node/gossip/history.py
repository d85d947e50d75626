"""The last versions of each key that this replica held, or discarded, without values: a bounded ring per key, bounded
in total. A ring begins with what was held before its first change: what the replica opened with, as a rule."""

from __future__ import annotations

from node.core import limits
from node.gossip.replica_views import VersionSeen
from node.gossip.version import version_of
from node.store.replica_port import ReplicaEntry


class History:
    """In memory, since the start; the keys that changed longest ago are forgotten first."""

    def __init__(self) -> None:
        self._rings: dict[str, tuple[VersionSeen, ...]] = {}

    def note(self, entry: ReplicaEntry, old: ReplicaEntry | None, at_ms: int, source: str) -> None:
        """The replica holds this entry from now on, in the place of `old`."""
        self._add(entry.key, _seen(entry, at_ms, source), old)

    def mended(self, entry: ReplicaEntry, old: ReplicaEntry | None, at_ms: int) -> None:
        """An operator's repair put this entry in the place of `old`."""
        self._add(entry.key, _seen(entry, at_ms)._replace(mended=True), old)

    def discarded(self, entry: ReplicaEntry, at_ms: int, source: str) -> None:
        """The replica forgot this entry in a take-over from `source`, which lacks it."""
        self._add(entry.key, _seen(entry, at_ms, source)._replace(discarded=True), entry)

    def _add(self, key: str, seen: VersionSeen, old: ReplicaEntry | None) -> None:
        ring = self._rings.pop(key, None)
        if ring is None:
            ring = () if old is None else (_seen(old),)
        self._rings[key] = (*ring, seen)[-limits.history_versions_max :]
        if len(self._rings) > limits.history_keys_max:
            del self._rings[next(iter(self._rings))]

    def of(self, key: str, held: ReplicaEntry | None) -> tuple[VersionSeen, ...]:
        """The key's versions, oldest first; `held` is what the replica holds of it now."""
        ring = self._rings.get(key)
        if ring is not None:
            return ring
        return () if held is None else (_seen(held),)


def _seen(entry: ReplicaEntry, at_ms: int = 0, source: str = "") -> VersionSeen:
    return VersionSeen(version_of(entry), entry.tombstone, len(entry.value), entry.expires_at_ms, at_ms, source)
