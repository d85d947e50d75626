"""The last versions of each key that this replica saw, without values: a bounded ring per key, bounded in total."""

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
        seen = VersionSeen(version_of(entry), entry.tombstone, len(entry.value), entry.expires_at_ms, at_ms, source)
        ring = self._rings.pop(entry.key, ())
        self._rings[entry.key] = (*ring, seen)[-limits.history_versions_max :]
        if len(self._rings) > limits.history_keys_max:
            del self._rings[next(iter(self._rings))]

    def of(self, key: str) -> tuple[VersionSeen, ...]:
        """The key's versions, oldest first."""
        return self._rings.get(key, ())
