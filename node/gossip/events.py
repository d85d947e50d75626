"""What goes into the membership machine and what it asks of its driver.

The driver carries out effects in order. `Removed` is always the last: whatever was sent before it should still leave
the process, then the process must stop writing and exit; the machine is silent from then on.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from node.core.ids import NodeId
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


Event = Start | Tick | Received | Leave | Down


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
    """This incarnation is out, for good. `left` when it asked for it."""

    cause: str
    left: bool


Effect = Connect | Disconnect | Send | Changed | Decided | Refused | TurnedAway | Removed
