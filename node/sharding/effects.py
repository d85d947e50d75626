"""What the machines of this package ask of their driver, and what it tells them, as data.

The driver carries effects out in the order of the list. `Broadcast` and `Send` include this node itself: what is
addressed to it is handed to its own coordinator or region. Each `StoreCall` but a `ReleaseLease` is answered by one
`StoreAnswered` with its tag.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import msgspec

from node.core.ids import NodeId
from node.sharding.messages import Receipt
from node.sharding.nodes import EntityNodes
from node.sharding.requests import Answer as OperatorAnswer
from node.sharding.requests import Request as OperatorRequest
from node.store.port import Answer, Request
from node.wire.envelope import Envelope

# ---- effects of both machines


@dataclass(frozen=True, slots=True)
class Send:
    """To the component of node `node` that takes messages of this type; may be lost."""

    node: str
    message: msgspec.Struct


@dataclass(frozen=True, slots=True)
class Broadcast:
    """To the regions of all members, this node's too."""

    message: msgspec.Struct


@dataclass(frozen=True, slots=True)
class Note:
    """An event for the bus."""

    event: msgspec.Struct


@dataclass(frozen=True, slots=True)
class Reached:
    """The effects before this one complete the step that the fault point `point` names."""

    point: str


# ---- effects of the coordinator


@dataclass(frozen=True, slots=True)
class StoreCall:
    tag: int
    request: Request


@dataclass(frozen=True, slots=True)
class MoveDone:
    """The move that was asked for is durable. `receipt` is None when the old owner never gave one."""

    shard: int
    target: NodeId
    epoch: int
    receipt: Receipt | None


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was done; `reason` is a short stable word, `detail` the facts."""

    reason: str
    detail: str = ""


Outcome = MoveDone | Refused


@dataclass(frozen=True, slots=True)
class Reply:
    """The outcome of a request that carried `tag`."""

    tag: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to an operator's request that carried `tag`."""

    tag: int
    answer: OperatorAnswer


# ---- effects of the region


class RefuseReason(enum.StrEnum):
    """Why a region gave a message back; both are definite: it was not handled, a retry is free."""

    NO_HOME = "no_home"
    BUFFER_FULL = "buffer_full"


@dataclass(frozen=True, slots=True)
class Deliver:
    """To the entity's cell on this node."""

    envelope: Envelope


@dataclass(frozen=True, slots=True)
class Forward:
    """To the region of another node. With `hops` above zero as `Relayed`, since its sender isn't this node; `epoch` is
    the one under which this node knows the owner."""

    node: str
    envelope: Envelope
    hops: int = 0
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer the asker, or make the tell a dead letter."""

    envelope: Envelope
    reason: RefuseReason


@dataclass(frozen=True, slots=True)
class StartShard:
    """From now on entities of the shard may run here, writing under `epoch`."""

    shard: int
    epoch: int


@dataclass(frozen=True, slots=True)
class StopShard:
    """Stop the shard's entities after their current message, flush them, bounce what they had not run, then
    `LocalStopped`."""

    shard: int


Effect = (
    Send
    | Broadcast
    | Note
    | Reached
    | StoreCall
    | Reply
    | Answered
    | Deliver
    | Forward
    | Refuse
    | StartShard
    | StopShard
)

# ---- events


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; due at least every 100 ms. `wall_ms` is only ever written down."""

    wall_ms: int = 0


@dataclass(frozen=True, slots=True)
class NodesChanged:
    nodes: EntityNodes


@dataclass(frozen=True, slots=True)
class Received:
    """A message of this package from a node, checked to be that node's."""

    sender: NodeId
    message: msgspec.Struct


@dataclass(frozen=True, slots=True)
class StoreAnswered:
    tag: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class MoveRequested:
    """An operator wants `shard` on the node named `to`; answered under `tag` when done or refused."""

    shard: int
    to: str
    tag: int


@dataclass(frozen=True, slots=True)
class Requested:
    """An operator's request; answered once under `tag`."""

    request: OperatorRequest
    tag: int


@dataclass(frozen=True, slots=True)
class Stepdown:
    """Give the lease up and don't ask for it again while this node counts as the oldest."""


@dataclass(frozen=True, slots=True)
class StepUp:
    """Take the lease again when it is this node's turn: a step down is over."""


@dataclass(frozen=True, slots=True)
class LocalStopped:
    """The actors finished stopping a shard: `handled` messages they ran since its start, `entities` they stopped;
    `digest` is over the durable states that these left behind; `arrived` = handled + what bounced + `dropped`."""

    shard: int
    handled: int
    entities: int
    digest: str = ""
    arrived: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Fenced:
    """A write under `epoch` was refused: the store found `found`."""

    shard: int
    epoch: int
    found: int


CoordinatorEvent = Tick | NodesChanged | Received | StoreAnswered | MoveRequested | Requested | Stepdown | StepUp
RegionEvent = Tick | NodesChanged | Received | LocalStopped | Fenced
