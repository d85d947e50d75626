"""How a connecting socket stands with its peer, told by the library's monitor events.

Without it a node whose key is not in a peer's roster looks the same as one whose peer is down.
"""

from __future__ import annotations

import asyncio
import enum
import struct
from collections.abc import Callable
from typing import Final

import zmq

from node.core import limits

_EVENTS: Final = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_DISCONNECTED
)


_LISTEN_EVENTS: Final = (
    zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
)
_NO_GREETING: Final = (
    "it ended without a greeting: it is plain where keys are expected, speaks no protocol of ours, or is slow"
)


class LinkState(enum.Enum):
    """How a connection to a node stands. ZeroMQ goes on trying in every state but CLOSED."""

    CONNECTING = "connecting"
    UP = "up"
    DENIED = "denied"  # the node doesn't know our key
    REFUSED = "refused"  # the node's key is not the one expected, or it is not the kind of port we take it for
    LOST = "lost"  # it was up; what has had no answer may have been carried out
    CLOSED = "closed"


class ListenWatch:
    """Tells `on_failed` in words each connection to a listening socket that ended before it had said anything, unless
    its key was denied, which is the gate's business. `spoke` is called with the descriptor of one that has.

    The library says nothing of garbage but that a connection came and went, and of a failed handshake not whose it
    was; but one thread serves a socket, so the failure comes right before the end of the connection that it is of.
    """

    def __init__(self, socket: zmq.Socket[bytes], on_failed: Callable[[str], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = socket
        self._on_failed = on_failed
        self._silent: set[int] = set()
        self._why: str | None = _NO_GREETING
        self._monitor = socket.get_monitor_socket(_LISTEN_EVENTS)
        self._loop.add_reader(self._monitor.fileno(), self._drain)
        self._loop.call_soon(self._drain)

    def spoke(self, descriptor: int) -> None:
        self._drain()  # its arrival is noted before
        self._silent.discard(descriptor)

    def close(self) -> None:
        self._loop.remove_reader(self._monitor.fileno())
        self._socket.disable_monitor()
        self._monitor.close()

    def _drain(self) -> None:
        while not self._monitor.closed:
            try:
                event = self._monitor.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            (number, value) = struct.unpack("=HI", event[0])
            match number:
                case zmq.EVENT_ACCEPTED:
                    self._silent.add(value)
                case zmq.EVENT_DISCONNECTED:
                    why, self._why = self._why, _NO_GREETING
                    if value in self._silent and why is not None:
                        self._on_failed(why)
                    self._silent.discard(value)
                case zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                    self._why = None
                case zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL if value == zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH:
                    self._why = "it is plain and this node uses keys, or the other way round"
                case zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
                    self._why = f"not our protocol ({value:#x}), or it expects another key of this node"
                case _:
                    pass  # no other event is subscribed to


class LinkWatch:
    """Tells `on_state` each change; starts as CONNECTING. Made before the socket connects, closed before the socket."""

    def __init__(self, socket: zmq.Socket[bytes], on_state: Callable[[LinkState], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = socket
        self._on_state = on_state
        self._state = LinkState.CONNECTING
        self._hung_up = 0  # handshakes in a row that the other side broke off
        self._monitor = socket.get_monitor_socket(_EVENTS)
        self._loop.add_reader(self._monitor.fileno(), self._drain)
        self._loop.call_soon(self._drain)

    def close(self) -> None:
        self._loop.remove_reader(self._monitor.fileno())
        self._socket.disable_monitor()
        self._monitor.close()

    def _drain(self) -> None:
        while not self._monitor.closed:
            try:
                event = self._monitor.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            (number, _) = struct.unpack("=HI", event[0])
            state = self._after(number)
            if state is not self._state:
                self._state = state
                self._on_state(state)

    def _after(self, event: int) -> LinkState:
        match event:
            case zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._hung_up = 0
                return LinkState.UP
            case zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                return LinkState.DENIED
            case zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
                return LinkState.REFUSED
            case zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL:
                # A node hangs up without a word when its key isn't the expected one, but also while it stops.
                self._hung_up += 1
                return LinkState.REFUSED if self._hung_up >= limits.handshakes_failed_max else self._state
            case _:
                return LinkState.LOST if self._state is LinkState.UP else self._state
