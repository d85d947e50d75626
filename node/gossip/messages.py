"""What membership sends: small, all on the control lane, so that no data can delay it.

Each carries the `formation`, the token that a first seed drew when it formed this cluster: gossip of one formation is
never merged into another's. Heartbeats and digests carry the sender's control address, so that a node that restarted
alone finds its cluster by whoever still knocks at its door.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from node.core.ids import NodeId
from node.gossip.member import Member
from node.gossip.state import Row
from node.wire.registry import Lane, wire_type


@wire_type("gossip.join", lane=Lane.CONTROL)
class JoinRequest(msgspec.Struct, frozen=True):
    """A node asks to be let in; repeated until answered, and harmless when repeated."""

    member: Member
    cluster_name: str
    cluster_id: str
    agreed: dict[str, str]


@wire_type("gossip.join_waiting", lane=Lane.CONTROL)
class JoinWaiting(msgspec.Struct, frozen=True):
    """The answer of a node that has no cluster itself."""

    reason: str = ""


@wire_type("gossip.join_refused", lane=Lane.CONTROL)
class JoinRefused(msgspec.Struct, frozen=True):
    """Why a node isn't let in: the key, its value at the joiner and at who refuses. `by`: a member's values are the
    cluster's, another joiner's may be its own mistake; empty where it isn't known which of them refuses."""

    key: str
    joiner: str
    member: str
    by: Literal["", "member", "joiner"] = ""


@wire_type("gossip.removed", lane=Lane.CONTROL)
class RemovedNotice(msgspec.Struct, frozen=True):
    """To a node that isn't a member any more: this incarnation is out, when and by which decision, and who goes on
    without it. It must stop."""

    subject: NodeId
    formation: str
    cause: str
    members: tuple[str, ...] = ()


@wire_type("gossip.digest", lane=Lane.CONTROL)
class Digest(msgspec.Struct, frozen=True):
    """The first half of an exchange. `seen` holds the members known to hold a state of this digest."""

    formation: str
    digest: str
    seen: tuple[NodeId, ...]
    control: str


@wire_type("gossip.state", lane=Lane.CONTROL)
class StateMessage(msgspec.Struct, frozen=True):
    """The whole state, sent only where digests differ. `reply` asks for the receiver's, where that holds more."""

    formation: str
    cluster_id: str
    members: tuple[Member, ...]
    rows: tuple[Row, ...]
    up_mark: int
    seen: tuple[NodeId, ...]
    reply: bool


@wire_type("gossip.heartbeat", lane=Lane.CONTROL)
class Heartbeat(msgspec.Struct, frozen=True):
    """Acknowledged by whoever is alive: with its next heartbeat where the two watch each other, else at once.
    `acknowledges` is the receiver's heartbeat that came last, 0 for none; `late_ms` how late the sender runs itself;
    `wall_ms` what its wall clock says, 0 when that is not known."""

    formation: str
    sequence: int
    control: str
    acknowledges: int = 0
    late_ms: int = 0
    wall_ms: int = 0


@wire_type("gossip.heartbeat_ack", lane=Lane.CONTROL)
class HeartbeatAck(msgspec.Struct, frozen=True):
    """The answer; the sequence is the heartbeat's."""

    formation: str
    sequence: int


GossipMessage = (
    JoinRequest | JoinWaiting | JoinRefused | RemovedNotice | Digest | StateMessage | Heartbeat | HeartbeatAck
)
