"""Whole transports over loopback, and raw sockets with keys of enrolled peers, for the tests of node.wire."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import Any

import zmq
from wire_support import make_codec

from node.core.clock import SystemClock
from node.core.ids import NodeId
from node.wire.codec import Codec, dumps
from node.wire.envelope import Envelope
from node.wire.link_zmq import LinkState
from node.wire.port import PeerAddress
from node.wire.registry import Lane
from node.wire.roster import KeyPair, NodeEntry, Roster
from node.wire.transport_zmq import ZmqTransport
from node.wire.zmq_sockets import new_key_pair, use_curve

KEYS = {name: new_key_pair() for name in ("alpha", "beta", "gamma")}
ROSTER = Roster([NodeEntry(name, pair.public) for name, pair in KEYS.items()])
ANY = "127.0.0.1:0"
Run = Callable[[Callable[[], Awaitable[None]]], None]


class Node:
    """A transport and everything it was told."""

    alive: list[Node] = []  # noqa: RUF012

    def __init__(
        self,
        name: str,
        keys: KeyPair | None = None,
        roster: Roster = ROSTER,
        *,
        cluster: str = "cluster",
        incarnation: int = 7,
        codec: Codec | None = None,
        **options: Any,
    ) -> None:
        self.name = name
        self.received: list[Envelope] = []
        self.refused: list[tuple[str, str, str]] = []
        self.transport = ZmqTransport(
            cluster,
            NodeId(name, incarnation),
            keys or KEYS[name],
            roster,
            codec or make_codec(),
            SystemClock(),
            self.received.append,
            lambda *what: self.refused.append(what),
            **options,
        )
        Node.alive.append(self)

    def bind(self, control: str = ANY, data: str = ANY) -> Node:
        self.transport.bind(control, data)
        return self

    @property
    def address(self) -> PeerAddress:
        return PeerAddress(self.name, self.transport.control_address, self.transport.data_address)

    def count(self, peer: str, reason: str) -> int:
        return self.transport.ledger.totals().get(peer, {}).get(reason, 0)

    def link(self, peer: str) -> LinkState:
        return next(LinkState(report.link) for report in self.transport.peers() if report.node == peer)

    def numbers(self) -> list[int]:
        return [envelope.message.number for envelope in self.received]  # type: ignore[attr-defined]

    def close(self) -> None:
        Node.alive.remove(self)
        self.transport.close()


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def raw_dealer(context: Any, name: str, to: Node, lane: Lane = Lane.CONTROL) -> Any:
    dealer = context.socket(zmq.DEALER)
    dealer.linger = 0
    use_curve(dealer, KEYS[name], KEYS[to.name].public)
    dealer.connect(f"tcp://{to.transport.control_address if lane is Lane.CONTROL else to.transport.data_address}")
    return dealer


def raw_frame(sender: str, receiver: int, first: int, *parts: bytes) -> bytes:
    head = dumps([sender, receiver, first, *parts])
    assert len(parts) < 20
    return head[:1] + b"".join((dumps(sender), dumps(receiver), dumps(first), *parts))
