"""The tombstones a replica holds: which, and how old.

A tombstone is kept until every replica on the roster has acknowledged it and `tombstone_min_age` has passed (I3);
none is forgotten without both, so as long as no acknowledgements are kept none is forgotten at all.
"""

from __future__ import annotations

from typing import NamedTuple

from node.core.hlc import hlc_wall_ms
from node.gossip.version import Version, version_of
from node.store.replica_port import ReplicaEntry


class TombstoneAge(NamedTuple):
    """One removal that is still remembered; `age_ms` by its writer's clock, never below 0."""

    key: str
    version: Version
    age_ms: int


def age_of(entry: ReplicaEntry, wall_ms: int) -> TombstoneAge:
    """A tombstone for an operator."""
    return TombstoneAge(entry.key, version_of(entry), max(0, wall_ms - hlc_wall_ms(entry.hlc)))
