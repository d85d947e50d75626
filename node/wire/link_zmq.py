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


class LinkState(enum.Enum):
    """How a connection to a node stands. ZeroMQ goes on trying in every state but CLOSED."""

    CONNECTING = "connecting"
    UP = "up"
    DENIED = "denied"  # the node doesn't know our key
    REFUSED = "refused"  # the node's key is not the one expected, or it is not the kind of port we take it for
    LOST = "lost"  # it was up; what has had no answer may have been carried out
    CLOSED = "closed"


class ListenWatch:
    """Tells `on_failed` in words each handshake with a listening socket that failed before a key was shown; what a
    denied key is told is the gate's business."""

    def __init__(self, socket: zmq.Socket[bytes], on_failed: Callable[[str], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = socket
        self._on_failed = on_failed
        self._monitor = socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
        )
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
            (number, value) = struct.unpack("=HI", event[0])
            if number == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL and value == zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH:
                self._on_failed("one side uses keys and the other is plain; see insecure in its settings")
            elif number == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
                self._on_failed(f"not our protocol ({value:#x}), or it expects another key of this node")
            else:
                self._on_failed("what connected does not speak ZMTP, or hung up")


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
