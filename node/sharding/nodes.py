"""What sharding needs to know of membership, as one frozen value: who may own shards, and who coordinates.

The engine makes an `EntityNodes` from its cluster view each time that changes. A node that is merely unreachable stays
in it, marked so: its shards are taken from it only once membership has removed it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from node.core import limits
from node.core.ids import NodeId


@dataclass(frozen=True, slots=True)
class EntityNode:
    """One member with the role `entity` that is up, leaving or exiting.

    `capacity` is its weight (> 0), `version` its app version (`app_version.py`). `leaving`: its shards are to be moved
    away. `cordoned`: it keeps what it has and gets no more.
    """

    node: NodeId
    capacity: float = 1.0
    version: str = "0"
    reachable: bool = True
    leaving: bool = False
    cordoned: bool = False

    @property
    def takes_shards(self) -> bool:
        return self.reachable and not self.leaving and not self.cordoned


@dataclass(frozen=True, slots=True)
class EntityNodes:
    """The entity members, and who coordinates: the oldest `singleton` member that isn't handing over and that the store
    answers (None: nobody is known).

    `unreachable` and `joining` name members of any role: while there are such, or it is `held`, nothing is rebalanced.
    """

    nodes: tuple[EntityNode, ...] = ()
    coordinator: NodeId | None = None
    unreachable: tuple[str, ...] = ()
    joining: tuple[str, ...] = ()
    held: bool = False

    def live(self) -> frozenset[NodeId]:
        return frozenset(n.node for n in self.nodes)


@dataclass(frozen=True, slots=True)
class ShardingSettings:
    """The periods and bounds of one cluster's sharding; the same on every node. Milliseconds and counts."""

    shard_count: int = 256
    min_entity_nodes: int = 1
    lease_ms: int = limits.coordinator_lease_ms
    first_wait_ms: int = limits.first_placement_wait_ms
    handoff_ms: int = limits.handoff_ms_max
    handoff_resend_ms: int = limits.handoff_resend_ms
    moves_at_once: int = limits.moves_at_once_max
    moves_ratio: float = limits.moves_ratio_max
    rebalance_after_ms: int = limits.rebalance_after_ms
    digest_ms: int = limits.placement_digest_ms
    buffer_messages: int = limits.region_buffer_messages_max
    buffer_ms: int = limits.region_buffer_ms_max

    @property
    def moves_max(self) -> int:
        """How many shards may be on their way at one time: both limits hold, but never fewer than one."""
        return max(1, min(self.moves_at_once, int(self.moves_ratio * self.shard_count)))

    @property
    def rebalances(self) -> bool:
        """A limit of 0 turns rebalancing off; drains and what operators ask for still move one at a time."""
        return self.moves_at_once > 0 and self.moves_ratio > 0


def with_cordons(nodes: EntityNodes, cordoned: Collection[str]) -> EntityNodes:
    """Membership knows nothing of cordons: they are the coordinator's."""
    if not cordoned:
        return nodes
    marked = tuple(replace(n, cordoned=n.node.name in cordoned) for n in nodes.nodes)
    return replace(nodes, nodes=marked)
