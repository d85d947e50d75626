"""The receiving half of a node's transport: a ROUTER for each lane, the gate before them, who may stay connected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import zmq

from node.core.clock import Clock
from node.core.errors import RemoteProtocolError
from node.core.ids import NodeId
from node.wire import frames
from node.wire.arrivals import BYTES_MAX, Arrivals
from node.wire.connections_zmq import Connections, descriptor_of
from node.wire.greeting import GREETINGS, Greeter, Hello, Unwelcome
from node.wire.link_zmq import ListenWatch
from node.wire.nack import Refusal
from node.wire.registry import Lane
from node.wire.roster import KeyPair, NodeEntry, Roster
from node.wire.zmq_io import Gate, Reader, key_of
from node.wire.zmq_sockets import Use, bind, new_socket, rebind, serve_curve

_IN: Final = {Lane.CONTROL: Use.CONTROL_IN, Lane.DATA: Use.DATA_IN}
_DOMAIN: Final = "node"


@dataclass(frozen=True, slots=True)
class _Door:
    """One lane's listening socket."""

    router: zmq.Socket[bytes]
    reader: Reader
    watch: ListenWatch
    connections: Connections
    address: str


class Listener:
    """`nack(sender, refusals)` is called for asks that were refused. Without a secret the connections are plain."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        secret: KeyPair | None,
        roster: Roster,
        clock: Clock,
        greeter: Greeter,
        arrivals: Arrivals,
        nack: Callable[[NodeId, list[Refusal]], None],
    ) -> None:
        self._context = context
        self._secret = secret
        self._roster = roster
        self._clock = clock
        self._greeter = greeter
        self._arrivals = arrivals
        self._nack = nack
        self._gate = Gate(context, _DOMAIN, self._user_of_key, self._denied)
        self._doors: dict[Lane, _Door] = {}

    def bind(self, lane: Lane, address: str) -> None:
        """Raises OperatingError (`E-PORT-IN-USE` names the port) or BadInput."""
        router = new_socket(self._context, _IN[lane])
        try:
            if self._secret is not None:
                serve_curve(router, self._secret, _DOMAIN)
            bound = bind(router, address, loopback_only=self._secret is None)
        except Exception:
            router.close()
            raise
        self._doors[lane] = _Door(
            router,
            Reader(
                router,
                2,
                self._clock,
                lambda message: self._on_message(lane, message),
                lambda frame: self._on_surplus(lane, frame),
            ),
            ListenWatch(router, self._on_failed_handshake),
            Connections(bound),
            bound,
        )

    def address(self, lane: Lane) -> str:
        """The bound `host:port`; KeyError before `bind`."""
        return self._doors[lane].address

    def set_roster(self, roster: Roster) -> None:
        """Takes a new roster into effect: a connection under a key that is gone ends now, others notice nothing."""
        gone = any(roster.node_of_key(key) is None for key in self._roster.node_keys())
        self._roster = roster
        if gone and self._secret is not None:
            for door in self._doors.values():
                door.connections.keep(lambda key: self._user_of_key(key) is not None)

    def show(self, pair: KeyPair) -> None:
        """Shows another key to whoever connects; connections that are up end, and their peers begin anew."""
        self._secret = pair
        for door in self._doors.values():
            serve_curve(door.router, pair, _DOMAIN)
            rebind(door.router, door.address)

    def close(self) -> None:
        for door in self._doors.values():
            door.reader.close()
            door.watch.close()
            door.router.close()
        self._gate.close()

    def _on_message(self, lane: Lane, message: list[zmq.Frame]) -> None:
        frame = message[1]
        peer = self._roster.node_of_key(key_of(frame) or "")
        if peer is None and self._secret is not None:
            self._doors[lane].connections.shut(frame)
            self._arrivals.refuse(None, "revoked", f"the key of {frame.get('User-Id')} is no longer in the roster")
            return
        try:
            document = frames.unpack(frame.bytes, BYTES_MAX[lane])
            if frames.is_greeting(document):
                self._on_greeting(lane, message, document, peer)
                return
            sender, refusals = self._arrivals.batch(document, lane, peer, self._roster, self._clock.mono_ns())
        except RemoteProtocolError as error:
            self._arrivals.refuse(peer, error.reason, error.detail)
            return
        if refusals:
            self._nack(sender, refusals)

    def _on_greeting(self, lane: Lane, message: list[zmq.Frame], document: list[Any], peer: NodeEntry | None) -> None:
        hello = GREETINGS.message_of(*document)
        if not isinstance(hello, Hello):
            raise RemoteProtocolError("malformed", f"{type(hello).__name__} is no greeting")
        entry = peer or self._roster.node(hello.node.name)
        if entry is None or entry.name != hello.node.name:
            raise RemoteProtocolError("impostor", f"{peer.name if peer else '?'} greets as {hello.node}")
        door = self._doors[lane]
        door.watch.spoke(descriptor_of(message[1]))
        if self._secret is not None:
            door.connections.prove(message[1], key_of(message[1]) or "")
        answer: msgspec.Struct = self._greeter.answer(hello)
        if isinstance(answer, Unwelcome):
            detail = f"{answer.key} is {answer.connecting!r} there and {answer.listening!r} here"
            self._arrivals.refuse(entry, "unwelcome", detail)
        try:
            door.router.send_multipart((message[0].bytes, GREETINGS.encode(answer)), zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EAGAIN, zmq.EHOSTUNREACH):
                raise
            self._arrivals.refuse(entry, "greeting_unanswered", "its connection takes no answer; it will ask again")
        finally:
            door.reader.wake()  # sending may take note of arrivals that the descriptor then no longer signals

    def _on_surplus(self, lane: Lane, frame: zmq.Frame) -> None:
        peer = self._roster.node_of_key(key_of(frame) or "")
        self._doors[lane].connections.shut(frame)
        self._arrivals.refuse(peer, "multipart", "more or fewer than one part; disconnected")

    def _user_of_key(self, key: str) -> str | None:
        entry = self._roster.node_of_key(key)
        return entry.name if entry else None

    def _denied(self, address: str, key: str) -> None:
        self._arrivals.refuse_stranger(address, "denied", f"key {key or 'none'} is not in the roster")

    def _on_failed_handshake(self, why: str) -> None:
        self._arrivals.refuse_stranger("?", "handshake", why)
