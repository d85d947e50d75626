"""Reading ZeroMQ sockets on the event loop, and deciding who may connect.

Sockets are read by their descriptor, edge-triggered: a wake-up is followed by reading until nothing is left, without
blocking, since ZeroMQ signals only the change from empty to not empty (`performance.md` section 2).
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Final

import zmq
from zmq.utils import z85

from node.core import limits
from node.core.clock import Clock

_ZAP_ENDPOINT: Final = "inproc://zeromq.zap.01"
_ZAP_KEY: Final = "X-Key"


class Reader:
    """Reads whole messages of a socket on the loop until none is left, in slices of `receive_slice_ns`.

    A message has `parts` parts; longer ones are swallowed in slices, too, since one may have any number of parts, and
    reported once. The callback may raise: reading goes on with the next message.
    """

    def __init__(
        self,
        socket: zmq.Socket[bytes],
        parts: int,
        clock: Clock,
        on_message: Callable[[list[zmq.Frame]], None],
        on_surplus: Callable[[zmq.Frame], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = socket
        self._parts = parts
        self._clock = clock
        self._on_message = on_message
        self._on_surplus = on_surplus
        self._frames: list[zmq.Frame] = []
        self._swallowing = False
        self._closed = False
        self._woken = False
        self._descriptor = socket.fileno()
        self._loop.add_reader(self._descriptor, self.drain)
        self.wake()  # a change before this moment has been signalled to nobody

    def close(self) -> None:
        """Stops reading; the socket is closed by its owner, after this."""
        self._closed = True
        self._loop.remove_reader(self._descriptor)

    def wake(self) -> None:
        """Reads in the next turn, although nothing was signalled: what a send on the same socket calls for."""
        if not self._woken:
            self._woken = True
            self._loop.call_soon(self.drain)

    def drain(self) -> None:
        """Reads until nothing is left or the slice is over; then goes on in the next turn."""
        self._woken = False
        if self._closed:
            return
        dry = False
        until_ns = self._clock.mono_ns() + limits.receive_slice_ns
        try:
            while not self._socket.closed and self._clock.mono_ns() < until_ns:
                try:
                    frame = self._socket.recv(zmq.NOBLOCK, copy=False)
                except zmq.Again:
                    dry = True
                    return
                self._take(frame)
        finally:
            if not dry:
                self.wake()

    def _take(self, frame: zmq.Frame) -> None:
        if self._swallowing:
            self._swallowing = frame.more
            return
        self._frames.append(frame)
        if len(self._frames) < self._parts and frame.more:
            return
        frames, self._frames = self._frames, []
        if frame.more or len(frames) < self._parts:
            self._swallowing = frame.more
            self._on_surplus(frame)
        else:
            self._on_message(frames)


def key_of(frame: zmq.Frame) -> str | None:
    """The public key that a received frame's connection proved, or None on a plain one."""
    try:
        return str(frame.get(_ZAP_KEY))
    except zmq.ZMQError:
        return None


class Gate:
    """The ZAP handler (ZeroMQ RFC 27) of one context: lets in the CURVE keys that a lookup knows, nobody else.

    `lookup(key)` returns the User-Id of a z85 public key, or None. Frames of the connection carry it as `User-Id` and
    the key itself as `X-Key`, so that a key that was revoked is seen on connections that are up already.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        domain: str,
        lookup: Callable[[str], str | None],
        on_denied: Callable[[str, str], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._domain = domain.encode()
        self._lookup = lookup
        self._on_denied = on_denied
        self._socket = context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(_ZAP_ENDPOINT)
        self._loop.add_reader(self._socket.fileno(), self._drain)
        self._loop.call_soon(self._drain)

    def close(self) -> None:
        if not self._socket.closed:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def _drain(self) -> None:
        while not self._socket.closed:
            try:
                request = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            version, sequence, domain, address, _, mechanism, *credentials = request
            curve = domain == self._domain and mechanism == b"CURVE" and len(credentials) == 1
            key = z85.encode(credentials[0]).decode() if curve else ""
            user = self._lookup(key) if key else None
            if user is None:
                answer = [version, sequence, b"400", b"unknown key", b"", b""]
                self._loop.call_soon(self._on_denied, address.decode(errors="replace"), key)
            else:
                answer = [version, sequence, b"200", b"OK", user.encode(), _metadata(_ZAP_KEY, key)]
            self._socket.send_multipart(answer, zmq.NOBLOCK)


def _metadata(name: str, value: str) -> bytes:
    return struct.pack("!B", len(name)) + name.encode() + struct.pack("!I", len(value)) + value.encode()
