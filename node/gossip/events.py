"""What goes into the membership machine and what it asks of its driver.

The driver carries out effects in order. `Removed` is always the last: whatever was sent before it should still leave
the process, then the process must stop writing and exit; the machine is silent from then on.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from node.core.ids import NodeId
from node.gossip.join import Seed
from node.gossip.member import Member, Status
from node.gossip.splitbrain import Decision
from node.gossip.view import ClusterView
from node.wire.port import PeerAddress


@dataclass(frozen=True, slots=True)
class Start:
    """Once, first."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; due at `next_wake_ns`."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message for `/membership`; `sender` is who the connection proved it to be."""

    sender: NodeId
    message: msgspec.Struct


@dataclass(frozen=True, slots=True)
class Leave:
    """Leave the cluster in good order; the engine has drained before."""


@dataclass(frozen=True, slots=True)
class Down:
    """An operator declares a member dead. Unknown names change nothing."""

    node: str
    by: str = "operator"


@dataclass(frozen=True, slots=True)
class LeaseAnswered:
    """The store's answer to `AskLease`; `holder` is empty where it did not answer."""

    granted: bool
    holder: str = ""


@dataclass(frozen=True, slots=True)
class Seeds:
    """Whom to ask from now on, where that changes: a name that resolves to other addresses, a file that was edited.
    `problem` is why the list may be incomplete, in words."""

    seeds: tuple[Seed, ...]
    problem: str = ""


Event = Start | Tick | Received | Leave | Down | LeaseAnswered | Seeds


@dataclass(frozen=True, slots=True)
class Connect:
    """Open, or replace, the way to a peer. `data` is empty for a node of which only the control lane is known yet."""

    peer: PeerAddress


@dataclass(frozen=True, slots=True)
class Disconnect:
    node: str


@dataclass(frozen=True, slots=True)
class Send:
    """A message for the peer's `/membership`; may be lost."""

    node: str
    message: msgspec.Struct


@dataclass(frozen=True, slots=True)
class Changed:
    """The view that holds from now on."""

    view: ClusterView


@dataclass(frozen=True, slots=True)
class Decided:
    """A split-brain decision was taken here; to be written down before anything else is done about it."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class AskLease:
    """Ask the state store for the lease that says which side of a split goes on; answered by `LeaseAnswered`."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A member came, or its status changed: its record, what it was before (None for a new one), and why."""

    member: Member
    before: Status | None
    cause: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """This node leads and can't act, in words; empty when it can again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Late:
    """A node, this one or a peer that says so, runs late by so much; 0 when it is on time again."""

    node: NodeId
    late_ms: int


@dataclass(frozen=True, slots=True)
class ClockAhead:
    """This node's wall clock is so far ahead of most others' that they refuse what it writes; 0 when no more."""

    ahead_ms: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Why this node has not joined yet, when the reason changes; empty once it has joined."""

    reason: str


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """Another node asked to join and was refused."""

    node: NodeId
    reason: str


@dataclass(frozen=True, slots=True)
class Removed:
    """This incarnation is out, for good. `left` when it asked for it; `misfit` when it was never in, and no start with
    these settings would be let in."""

    cause: str
    left: bool
    misfit: bool = False


Effect = (
    Connect
    | Disconnect
    | Send
    | Moved
    | Changed
    | Decided
    | AskLease
    | Blocked
    | Late
    | ClockAhead
    | Refused
    | TurnedAway
    | Removed
)
