"""Ending single connections of a listening socket, which ZeroMQ itself has no means for.

A connection is closed by shutting down its TCP socket: ZeroMQ's I/O thread then sees the peer go, as if it had, and
nothing else is touched. Frames tell the descriptor they came by, but that number may belong to something else by now.
So it is duplicated first, and what the duplicate stands for is asked of the kernel: only a connection of this
listener's port is taken, and which one it is says the address of its other end.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Callable, Iterator
from typing import Final

import zmq

from node.core import limits

_DESCRIPTORS: Final = "/proc/self/fd"
_ELSEWHERE: Final = "/dev/fd"  # where there is no /proc
Remote = tuple[str, int]


class Connections:
    """Those of one listening socket, by the address at the other end. `prove` says whose key a connection has shown;
    one that has said nothing yet has shown none."""

    def __init__(self, address: str) -> None:
        """`address` is the bound `host:port`."""
        self._port = int(address.rpartition(":")[2])
        self._proven: dict[Remote, str] = {}

    def prove(self, frame: zmq.Frame, key: str) -> None:
        """The connection that a frame came by has shown this key."""
        remote = self._with(descriptor_of(frame), lambda _: None)
        if remote is None:
            return
        self._proven[remote] = key
        if len(self._proven) > limits.connections_proven_max:
            live = dict(self._live())
            self._proven = {at: known for at, known in self._proven.items() if at in live}

    def shut(self, frame: zmq.Frame) -> bool:
        """Ends the connection that a frame came by; False when it has ended already."""
        return self._with(descriptor_of(frame), _shut_down) is not None

    def keep(self, welcome: Callable[[str], bool]) -> int:
        """Ends every connection whose key isn't welcome, or that has shown none; returns how many.

        One that was about to show a good key loses nothing: it connects again and begins anew.
        """
        ended = 0
        for remote, descriptor in list(self._live()):
            key = self._proven.get(remote, "")
            if not key or not welcome(key):
                ended += self._with(descriptor, _shut_down) is not None
                self._proven.pop(remote, None)
        return ended

    def _live(self) -> Iterator[tuple[Remote, int]]:
        where = _DESCRIPTORS if os.path.isdir(_DESCRIPTORS) else _ELSEWHERE  # noqa: PTH112 - a kernel's directory
        for name in os.listdir(where):  # noqa: PTH208
            remote = self._with(int(name), lambda _: None)
            if remote is not None:
                yield remote, int(name)

    def _with(self, descriptor: int, act: Callable[[socket.socket], None]) -> Remote | None:
        """Acts on a connection of this listener and returns its other end; None when the descriptor is no such one."""
        try:
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                return None
            ours = os.dup(descriptor)
        except OSError:
            return None
        try:
            one = socket.socket(fileno=ours)
        except OSError:
            os.close(ours)
            return None
        with one, contextlib.suppress(OSError):
            if one.family not in (socket.AF_INET, socket.AF_INET6) or one.getsockname()[1] != self._port:
                return None
            host, port = one.getpeername()[:2]
            act(one)
            return host, port
        return None


def _shut_down(one: socket.socket) -> None:
    one.shutdown(socket.SHUT_RDWR)


def descriptor_of(frame: zmq.Frame) -> int:
    """By which descriptor a frame came; it may belong to something else by now."""
    return int(frame.get(zmq.SRCFD))
