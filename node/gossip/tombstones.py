"""The tombstones a replica holds: which, and how old.

A tombstone is kept until every replica on the roster has acknowledged it and `tombstone_min_age` has passed (I3);
none is forgotten without both, so as long as no acknowledgements are kept none is forgotten at all.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from node.core.hlc import hlc_wall_ms
from node.gossip.version import Version, version_of
from node.store.replica_port import ReplicaEntry


class TombstoneAge(NamedTuple):
    """One removal that is still remembered; `age_ms` by its writer's clock, never below 0."""

    key: str
    version: Version
    age_ms: int


class Tombstones:
    """An index in memory of the tombstones in a replica."""

    def __init__(self) -> None:
        self._versions: dict[str, Version] = {}

    def __len__(self) -> int:
        return len(self._versions)

    def add(self, entry: ReplicaEntry) -> None:
        self._versions[entry.key] = version_of(entry)

    def discard(self, key: str) -> None:
        self._versions.pop(key, None)

    def oldest(self, limit: int, wall_ms: int) -> list[TombstoneAge]:
        """The `limit` oldest, the oldest first."""
        found = heapq.nsmallest(limit, self._versions.items(), key=lambda item: item[1].hlc)
        return [TombstoneAge(key, version, max(0, wall_ms - hlc_wall_ms(version.hlc))) for key, version in found]
