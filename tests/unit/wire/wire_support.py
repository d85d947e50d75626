"""Types, a registry of their own, and waiting, for the tests of node.wire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from node.core.ids import EntityRef, NodeId
from node.wire.codec import Codec
from node.wire.envelope import Envelope, Kind
from node.wire.nack import Nack
from node.wire.registry import OPERATORS, Lane, Registry, WireType


class Ping(msgspec.Struct, frozen=True):
    number: int
    note: str = ""


class Chunk(msgspec.Struct, frozen=True):
    number: int
    data: bytes = b""
    score: float = 0.0
    tags: tuple[str, ...] = ()


class Order(msgspec.Struct, frozen=True):
    """Only an operator may send it."""

    number: int = 0


class Owned(msgspec.Struct, frozen=True):
    """Only a node that may host entities may send it."""

    number: int = 0


def make_codec() -> Codec:
    registry = Registry()
    registry.register(WireType("test.ping", 1, Ping, Lane.CONTROL))
    registry.register(WireType("test.chunk", 2, Chunk, Lane.DATA, {"payload": "data"}))
    registry.register(WireType("test.order", 1, Order, Lane.CONTROL, senders=OPERATORS))
    registry.register(WireType("test.owned", 1, Owned, Lane.CONTROL, senders=frozenset({"entity"})))
    registry.register(WireType("wire.nack", 1, Nack, Lane.DATA))
    return Codec(registry)


def tell(message: msgspec.Struct, sender: str = "alpha", to: EntityRef | None = None) -> Envelope:
    return Envelope(Kind.TELL, to or EntityRef("site", "example.org"), NodeId(sender, 7), message)


async def until(holds: Callable[[], bool], what: str, deadline_s: float = 5.0) -> None:
    """Waits until a condition holds; fails by name at the deadline."""
    loop = asyncio.get_running_loop()
    give_up = loop.time() + deadline_s
    while not holds():
        assert loop.time() < give_up, f"never happened: {what}"
        await asyncio.sleep(0.002)


@contextmanager
def watching(socket: Any, events: int) -> Iterator[Callable[[], bool]]:
    """Gives a function that says whether one of a ZeroMQ socket's events has come."""
    monitor = socket.get_monitor_socket(events)
    try:
        yield lambda: bool(monitor.poll(0))
    finally:
        socket.disable_monitor()
        monitor.close()
