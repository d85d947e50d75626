"""What a host of a simulated cluster is started with: the part of a node's settings that differs between tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from node.core import limits
from node.engine.entities import EntityTypes, entity_types
from node.gossip.replica_io import ReplicationSettings
from node.gossip.settings import FAST, PROFILES, MembershipSettings
from node.sharding.nodes import ShardingSettings

if TYPE_CHECKING:
    from node.sim.process import Process

# As `node.wiring` has it for the profile `fast`.
FAST_LEASE_MS = 3_000
# Short, so that a run of a minute sees entries lapse; longer than the clocks of most runs are apart.
EXPIRED_KEEP_MS = 12_000
# Short, so that removals are forgotten in a run; longer than a message is under way, or waits at a paused node.
TOMBSTONE_MIN_AGE_MS = 20_000
SEEDS = 2
EVERY_ROLE = ("api", "entity", "singleton")


@dataclass(frozen=True, slots=True)
class Setup:
    """One host's settings; a change holds from its next start. `seeds`: hosts it joins through. `agreed`: settings
    beside the usual ones that must be equal on all nodes. `compose`: what entity types a process has. `supervised`: a
    process that ended is started again."""

    roles: tuple[str, ...]
    seeds: tuple[str, ...]
    membership: MembershipSettings = FAST
    sharding: ShardingSettings = field(default_factory=lambda: ShardingSettings(lease_ms=FAST_LEASE_MS))
    compose: Callable[[Process], EntityTypes] = lambda _process: entity_types
    replication: ReplicationSettings = field(
        default_factory=lambda: ReplicationSettings(
            expired_keep_ms=EXPIRED_KEEP_MS, tombstone_min_age_ms=TOMBSTONE_MIN_AGE_MS
        )
    )
    version: str = "1"
    capacity: int = 1
    drain_deadline_ms: int = 20_000
    agreed: Mapping[str, str] = field(default_factory=dict)
    supervised: bool = True


def drawn(names: tuple[str, ...], api_only_node: bool, profile: str) -> dict[str, Setup]:
    """The hosts of a run of random faults: the first two may host singletons, the last perhaps nothing but the edge."""
    roles: dict[str, tuple[str, ...]] = {}
    for place, name in enumerate(names):
        if api_only_node and place == len(names) - 1:
            roles[name] = ("api",)
        else:
            roles[name] = EVERY_ROLE if place < SEEDS else ("api", "entity")
    return of_roles(roles, profile)


def of_roles(roles: Mapping[str, tuple[str, ...]], profile: str) -> dict[str, Setup]:
    """Hosts with these roles; the first two that may host singletons are the seeds. What ends is started again."""
    seeds = tuple(name for name, each in roles.items() if "singleton" in each)[:SEEDS]
    sharding = _sharding(profile, sum("entity" in each for each in roles.values()))
    return {name: Setup(each, seeds, PROFILES[profile], sharding) for name, each in roles.items()}


def _sharding(profile: str, min_entity_nodes: int) -> ShardingSettings:
    lease_ms = FAST_LEASE_MS if profile == "fast" else limits.coordinator_lease_ms
    return ShardingSettings(min_entity_nodes=min_entity_nodes, lease_ms=lease_ms)


def of_profile(names: tuple[str, ...], profile: str, *, min_entity_nodes: int = 0) -> dict[str, Setup]:
    """Hosts that are all alike, as `promovolvectl up` makes them; one that ends stays down."""
    sharding = _sharding(profile, min_entity_nodes or len(names))
    setup = Setup(EVERY_ROLE, names[:SEEDS], PROFILES[profile], sharding, supervised=False)
    return dict.fromkeys(names, setup)
