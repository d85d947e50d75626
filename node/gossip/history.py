"""The last versions of each key that this replica held, or discarded, without values: a bounded ring per key, bounded
in total."""

from __future__ import annotations

from node.core import limits
from node.gossip.replica_views import VersionSeen
from node.gossip.version import version_of
from node.store.replica_port import ReplicaEntry


class History:
    """In memory, since the start; the keys that changed longest ago are forgotten first."""

    def __init__(self) -> None:
        self._rings: dict[str, tuple[VersionSeen, ...]] = {}

    def note(self, entry: ReplicaEntry, at_ms: int, source: str) -> None:
        """The replica holds this entry from now on."""
        self._add(entry, at_ms, source, discarded=False)

    def discarded(self, entry: ReplicaEntry, at_ms: int, source: str) -> None:
        """The replica forgot this entry in a take-over from `source`, which lacks it."""
        self._add(entry, at_ms, source, discarded=True)

    def _add(self, entry: ReplicaEntry, at_ms: int, source: str, *, discarded: bool) -> None:
        size = len(entry.value)
        seen = VersionSeen(version_of(entry), entry.tombstone, size, entry.expires_at_ms, at_ms, source, discarded)
        ring = self._rings.pop(entry.key, ())
        self._rings[entry.key] = (*ring, seen)[-limits.history_versions_max :]
        if len(self._rings) > limits.history_keys_max:
            del self._rings[next(iter(self._rings))]

    def of(self, key: str) -> tuple[VersionSeen, ...]:
        """The key's versions, oldest first."""
        return self._rings.get(key, ())
