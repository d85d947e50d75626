"""The transport port: what the machinery asks of whatever carries envelopes between nodes."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from node.wire.envelope import Envelope
from node.wire.ledger import Ledger
from node.wire.registry import wire_type


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """Where a peer listens: `host:port` for each lane. Its public key comes from the roster, by its name."""

    node: str
    control: str
    data: str


class SendOutcome(enum.Enum):
    """What became of a send, at once: queued towards the peer, or not and why."""

    SENT = "sent"
    NO_ROUTE = "no_route"
    PEER_BUSY = "peer_busy"
    TOO_LARGE = "too_large"
    UNKNOWN_TYPE = "unknown_type"  # the peer's release has no such type


@wire_type("wire.peer_report")
class PeerReport(msgspec.Struct, frozen=True):
    """How the way to a peer stands. `incarnation` is 0 and the skew unknown before it has welcomed us; `why` says what
    it objects to. `waiting_*`: messages queued for a lane. `counts`: see `Ledger.totals`."""

    node: str
    link: str
    incarnation: int = 0
    why: str = ""
    waiting_control: int = 0
    waiting_data: int = 0
    unknown_there: tuple[str, ...] = ()
    unknown_here: tuple[str, ...] = ()
    counts: dict[str, int] = {}


class Transport(Protocol):
    """Carries envelopes to named peers over two lanes, the lane given by the message's registration.

    `send` never blocks. It raises LocalProtocolError for an unregistered type. SENT means queued, not delivered.
    `ledger` has counted every message that left, did not leave, arrived, or was refused on arrival; what became of
    those that arrived is counted by whoever they were delivered to.
    """

    @property
    def ledger(self) -> Ledger: ...

    def peers(self) -> tuple[PeerReport, ...]:
        """How the ways to the peers stand that it was told to connect to, by name."""
        ...

    def connect(self, peer: PeerAddress) -> None:
        """Open, or replace, the way to a peer; idempotent."""
        ...

    def disconnect(self, node: str) -> None:
        """Close the way to a peer; what is queued for it is dropped and counted."""
        ...

    def send(self, node: str, envelope: Envelope) -> SendOutcome:
        """Queue an envelope for a connected peer."""
        ...


# What a transport calls for each envelope that arrived and passed every check.
Receive = Callable[[Envelope], None]
