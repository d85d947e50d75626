"""What coordinator and region show of themselves: to people, to checks, to counters."""

from __future__ import annotations

from dataclasses import dataclass, field

from node.sharding.effects import RefuseReason


@dataclass(frozen=True, slots=True)
class MoveView:
    """One move in progress, for people."""

    shard: int
    source: str
    target: str
    state: str
    cause: str


@dataclass(frozen=True, slots=True)
class CoordinatorStatus:
    """What a node's coordinator does: `active` when it has read the table under its lease.

    `draining` is the shards left per draining node; `causes` why each shard is where it is, as far as this tenure
    knows; `waits` says in words why nothing is placed, and is empty otherwise. `cordons` are the nodes that get no more
    shards.
    """

    term: int
    active: bool
    held_by: str
    version: int
    moves: tuple[MoveView, ...]
    draining: tuple[tuple[str, int], ...]
    causes: tuple[tuple[int, str], ...]
    receipts_late: int
    waits: str
    cordons: tuple[str, ...] = ()


@dataclass(slots=True)
class RegionCounters:
    """Messages since the start: received = delivered + forwarded + refused + waiting, where a message that comes
    back, from the actors or from a peer, is received again."""

    routed: int = 0
    relayed: int = 0
    bounced: int = 0
    delivered: int = 0
    forwarded: int = 0
    refused: dict[RefuseReason, int] = field(default_factory=lambda: dict.fromkeys(RefuseReason, 0))
    fenced: int = 0
    stale: int = 0  # placement messages that are not for a region, or name a shard that doesn't exist

    @property
    def received(self) -> int:
        return self.routed + self.relayed + self.bounced
