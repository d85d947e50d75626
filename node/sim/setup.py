"""What a host of a simulated cluster is started with: the part of a node's settings that differs between tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from node.core import limits
from node.engine.entities import EntityTypes, entity_types
from node.gossip.settings import FAST, PROFILES, MembershipSettings
from node.sharding.nodes import ShardingSettings

if TYPE_CHECKING:
    from node.sim.process import Process

# As `node.main` has it for the profile `fast`.
FAST_LEASE_MS = 3_000
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
    version: str = "1"
    capacity: int = 1
    drain_deadline_ms: int = 20_000
    agreed: Mapping[str, str] = field(default_factory=dict)
    supervised: bool = True


def drawn(names: tuple[str, ...], *, api_only_node: bool) -> dict[str, Setup]:
    """The hosts of a run of random faults: the first two may host singletons, the last perhaps nothing but the edge."""
    entity_nodes = len(names) - api_only_node
    sharding = ShardingSettings(min_entity_nodes=entity_nodes, lease_ms=FAST_LEASE_MS)
    found: dict[str, Setup] = {}
    for place, name in enumerate(names):
        if api_only_node and place == len(names) - 1:
            roles: tuple[str, ...] = ("api",)
        else:
            roles = EVERY_ROLE if place < SEEDS else ("api", "entity")
        found[name] = Setup(roles, names[:SEEDS], sharding=sharding)
    return found


def of_profile(names: tuple[str, ...], profile: str, *, min_entity_nodes: int = 0) -> dict[str, Setup]:
    """Hosts that are all alike, as `promovolvectl up` makes them; one that ends stays down."""
    sharding = ShardingSettings(
        min_entity_nodes=min_entity_nodes or len(names),
        lease_ms=FAST_LEASE_MS if profile == "fast" else limits.coordinator_lease_ms,
    )
    setup = Setup(EVERY_ROLE, names[:SEEDS], PROFILES[profile], sharding, supervised=False)
    return dict.fromkeys(names, setup)
