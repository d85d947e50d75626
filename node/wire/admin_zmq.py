"""The admin protocol's listener in a node: a CURVE ROUTER that only operators of the roster can reach.

It carries bytes, one CBOR document a message; what they mean is the admin protocol's business. It knows each request's
operator by the key of the connection, and answers or pushes events to a client by its routing id.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import zmq

from node.core import limits
from node.core.clock import Clock
from node.wire.connections_zmq import Connections
from node.wire.port import SendOutcome
from node.wire.roster import KeyPair, OperatorEntry, Roster
from node.wire.zmq_io import Gate, Reader, key_of
from node.wire.zmq_sockets import (
    Use,
    bind,
    check_pair,
    new_context,
    new_socket,
    serve_curve,
)

_DOMAIN: Final = "admin"


class AdminClient(NamedTuple):
    """One connection of an operator, valid until it ends; a client that reconnects is another one."""

    operator: str
    key: str
    routing: bytes


class AdminListener:
    """A CURVE ROUTER for operators.

    `on_request(client, data)` gets each request; it may raise nothing. `on_malformed(who, reason, detail)` and
    `counters[reason]` tell of what was refused: `denied`, `revoked`, `multipart`; of answers: `busy`, `gone`;
    of connections that a change of the roster or of time put an end to: `ended`.
    """

    def __init__(
        self,
        secret: KeyPair,
        roster: Roster,
        clock: Clock,
        on_request: Callable[[AdminClient, bytes], None],
        on_malformed: Callable[[str, str, str], None],
    ) -> None:
        """Raises OperatingError when the key pair doesn't belong together. Needs a running loop."""
        check_pair(secret)
        self._secret = secret
        self._roster = roster
        self._clock = clock
        self._on_request = on_request
        self._on_malformed = on_malformed
        self._context = new_context()
        self._gate = Gate(self._context, _DOMAIN, self._user_of_key, self._denied)
        self._socket = new_socket(self._context, Use.ADMIN_SERVER)
        serve_curve(self._socket, secret, _DOMAIN)
        self._reader: Reader | None = None
        self._connections: Connections | None = None
        self._accepted: frozenset[str] = roster.operator_keys(clock.wall_ms())
        self._address = ""
        self.counters: dict[str, int] = {}

    def bind(self, address: str) -> None:
        """Listens. Raises OperatingError (`E-PORT-IN-USE` names the port) or BadInput."""
        self._address = bind(self._socket, address)
        self._connections = Connections(self._address)
        self._reader = Reader(self._socket, 2, self._clock, self._on_message, partial(self._refuse, "multipart"))

    @property
    def address(self) -> str:
        """The bound `host:port`; empty before `bind`."""
        return self._address

    def set_roster(self, roster: Roster) -> None:
        """Takes a new roster into effect: connections under a key that is gone end now, others notice nothing."""
        self._roster = roster
        self.end_expired()

    def end_expired(self) -> None:
        """Ends the connections under keys that were accepted and are no longer; to be called as time passes."""
        accepted = self._roster.operator_keys(self._clock.wall_ms())
        gone = self._accepted - accepted
        self._accepted = accepted
        if gone and self._connections is not None:
            self.counters["ended"] = self.counters.get("ended", 0) + self._connections.keep(accepted.__contains__)

    def send(self, client: AdminClient, data: bytes) -> SendOutcome:
        """A reply or an event to a client. PEER_BUSY when it doesn't read, NO_ROUTE when it is gone or revoked, or
        nobody listens any more: an answer may be found only after the node has ended."""
        if self._socket.closed:
            self._count("gone")
            return SendOutcome.NO_ROUTE
        if len(data) > limits.admin_request_bytes_max:
            self._count("too_large")
            return SendOutcome.TOO_LARGE
        if self._operator_with(client.key) is None:
            self._count("revoked")
            return SendOutcome.NO_ROUTE
        try:
            self._socket.send_multipart((client.routing, data), zmq.NOBLOCK)
        except zmq.Again:
            self._count("busy")
            return SendOutcome.PEER_BUSY
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            self._count("gone")
            return SendOutcome.NO_ROUTE
        finally:
            # Sending may take note of arrivals that the descriptor then no longer signals.
            if self._reader is not None:
                self._reader.wake()
        self._count("sent")
        return SendOutcome.SENT

    def close(self) -> None:
        """Stops listening. Blocks for up to `linger_ms` for the last replies."""
        if self._socket.closed:
            return
        if self._reader is not None:
            self._reader.close()
        self._socket.close()
        self._gate.close()
        self._context.destroy(limits.linger_ms)  # unlike term it can't wait for a socket that was left open

    def _on_message(self, message: list[zmq.Frame]) -> None:
        routing, body = message
        key = key_of(body) or ""
        operator = self._operator_with(key)
        if operator is None:
            if self._connections is not None:
                self._connections.shut(body)
            self._refuse("revoked", body)
            return
        if self._connections is not None:
            self._connections.prove(body, key)
        self._count("received")
        self._on_request(AdminClient(operator.name, key, routing.bytes), body.bytes)

    def _operator_with(self, key: str) -> OperatorEntry | None:
        return self._roster.operator_of_key(key, self._clock.wall_ms())

    def _user_of_key(self, key: str) -> str | None:
        entry = self._operator_with(key)
        return f"operator:{entry.name}" if entry else None

    def _refuse(self, reason: str, frame: zmq.Frame) -> None:
        self._count(reason)
        self._on_malformed(str(frame.get("User-Id")), reason, "")

    def _denied(self, address: str, key: str) -> None:
        self._count("denied")
        self._on_malformed(address, "denied", f"key {key or 'none'} is not an operator's")

    def _count(self, reason: str) -> None:
        self.counters[reason] = self.counters.get(reason, 0) + 1
