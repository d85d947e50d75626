"""One exchange between two processes, carried by each of several libraries: ours, and those to compare with.

Every subject sends the same eight fields. It gives `one_way` (messages a second until the last has arrived), `asks`
(answers a second with 64 in flight) and `p50_us` (of a round trip, one at a time).
"""

from __future__ import annotations

import asyncio
import importlib.util
import multiprocessing
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Any

import msgspec
import uvloop
import zmq

from node.core.clock import SystemClock
from node.core.ids import NodeId, ServiceRef
from node.wire.codec import CODEC, dumps, loads
from node.wire.envelope import Envelope, Kind
from node.wire.port import PeerAddress, SendOutcome
from node.wire.registry import wire_type
from node.wire.transport_zmq import ZmqTransport
from scripts.benchmarks.measure import percentile
from scripts.benchmarks.peers import Mesh, mesh

IN_FLIGHT = 64
BURST = 256
PAUSE_S = 0.001  # of a sender that was told PEER_BUSY; the queue holds many times what leaves meanwhile
Figures = dict[str, float]
_FIELDS: dict[str, Any] = {"number": 1, "text": "x" * 120, "a": 1, "b": 2, "c": "three", "d": True, "e": 0, "f": ""}


@wire_type("bench.question")
class Question(msgspec.Struct, frozen=True):
    number: int
    text: str = _FIELDS["text"]
    a: int = 1
    b: int = 2
    c: str = "three"
    d: bool = True
    e: int = 0
    f: str = ""


def _beside(target: Callable[..., None], *args: Any) -> tuple[Any, Connection]:
    parent, child = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=target, args=(*args, child), daemon=True)
    process.start()
    return process, parent


async def _measured(ask: Callable[[int], Awaitable[object]], asks: int) -> Figures:
    """Asks with many in flight, then one at a time; `ask(number)` waits for the answer."""
    numbers = iter(range(asks))

    async def chain() -> None:
        for number in numbers:
            await ask(number)

    await ask(-1)
    begun = time.perf_counter()
    await asyncio.gather(*(chain() for _ in range(IN_FLIGHT)))
    rate = asks / (time.perf_counter() - begun)
    took_us = []
    for number in range(max(200, asks // 10)):
        at = time.perf_counter_ns()
        await ask(number)
        took_us.append((time.perf_counter_ns() - at) / 1_000)
    return {"asks": rate, "p50_us": percentile(took_us, 0.5)}


# ---- ours: CURVE, envelope, registry, both lanes greeted


def _transport(name: str, keys: Mesh, receive: Any) -> ZmqTransport:
    return ZmqTransport(
        "bench", NodeId(name, 1), keys.pair(name), keys.roster(), CODEC, SystemClock(), receive, lambda *_: None
    )


def _answerer(keys: dict[str, tuple[str, str]], pipe: Connection) -> None:
    async def main() -> None:
        to, me = ServiceRef("asker", "/ask"), NodeId("answerer", 1)

        def receive(envelope: Envelope) -> None:
            if envelope.kind is Kind.ASK:
                transport.send("asker", Envelope(Kind.REPLY, to, me, envelope.message, envelope.correlation))

        transport = _transport("answerer", Mesh(keys), receive)
        transport.bind("127.0.0.1:0", "127.0.0.1:0")
        transport.connect(PeerAddress("asker", *pipe.recv()))
        pipe.send((transport.control_address, transport.data_address))
        await asyncio.Event().wait()

    uvloop.run(main())


def ours(messages: int, asks: int) -> Figures:
    """Our transport; its sender's queue is bounded, so a sender that is told PEER_BUSY lets the loop turn."""
    keys = mesh("asker", "answerer")
    process, pipe = _beside(_answerer, keys.keys)

    async def main() -> Figures:
        open_asks: dict[int, asyncio.Future[None]] = {}
        to, me = ServiceRef("answerer", "/x"), NodeId("asker", 1)

        def receive(envelope: Envelope) -> None:
            open_asks.pop(envelope.correlation).set_result(None)

        transport = _transport("asker", keys, receive)
        transport.bind("127.0.0.1:0", "127.0.0.1:0")
        pipe.send((transport.control_address, transport.data_address))
        transport.connect(PeerAddress("answerer", *await asyncio.to_thread(pipe.recv)))
        loop, made = asyncio.get_running_loop(), 0

        async def ask(number: int) -> None:
            nonlocal made
            made += 1
            open_asks[made] = answered = loop.create_future()
            transport.send("answerer", Envelope(Kind.ASK, to, me, Question(number), made))
            await answered

        figures = await _measured(ask, asks)
        begun = time.perf_counter()
        for number in range(messages):
            tell = Envelope(Kind.TELL, to, me, Question(number))
            while transport.send("answerer", tell) is not SendOutcome.SENT:
                await asyncio.sleep(PAUSE_S)
            if number % BURST == 0:
                await asyncio.sleep(0)
        await ask(0)  # behind all of them on the same lane
        figures["one_way"] = messages / (time.perf_counter() - begun)
        transport.close()
        return figures

    try:
        return uvloop.run(main())
    finally:
        process.kill()
        process.join()


# ---- the floor: blocking sockets, no keys, no loop


def _blocking_answerer(pipe: Connection) -> None:
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    pipe.send(f"tcp://127.0.0.1:{port}")
    while True:
        routing, wants, data = socket.recv_multipart()
        loads(data)
        if wants:
            socket.send_multipart([routing, data])


def blocking_pyzmq(messages: int, asks: int) -> Figures:
    """A DEALER and a ROUTER that block, one message a frame."""
    process, pipe = _beside(_blocking_answerer)
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
    socket.connect(pipe.recv())

    def ask() -> None:
        socket.send_multipart([b"?", dumps(_FIELDS)])

    def answer() -> None:
        loads(socket.recv())

    ask()
    answer()
    begun = time.perf_counter()
    for _ in range(IN_FLIGHT):
        ask()
    for left in range(asks, 0, -1):
        answer()
        if left > IN_FLIGHT:
            ask()
    rate = asks / (time.perf_counter() - begun)
    took_us = []
    for _ in range(max(200, asks // 10)):
        at = time.perf_counter_ns()
        ask()
        answer()
        took_us.append((time.perf_counter_ns() - at) / 1_000)
    begun = time.perf_counter()
    for _ in range(messages):
        socket.send_multipart([b"", dumps(_FIELDS)])
    ask()
    answer()
    one_way = messages / (time.perf_counter() - begun)
    socket.close()
    process.kill()
    process.join()
    return {"asks": rate, "p50_us": percentile(took_us, 0.5), "one_way": one_way}


# ---- peers


def _grpc_answerer(pipe: Connection) -> None:
    import grpc

    async def ask(data: bytes, _context: Any) -> bytes:
        loads(data)
        return data

    async def feed(stream: Any, _context: Any) -> bytes:
        async for data in stream:
            loads(data)
        return b""

    async def main() -> None:
        server = grpc.aio.server()
        handlers = {
            "ask": grpc.unary_unary_rpc_method_handler(ask),
            "feed": grpc.stream_unary_rpc_method_handler(feed),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench", handlers),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        pipe.send(port)
        await server.wait_for_termination()

    asyncio.run(main())


def grpc_asyncio(messages: int, asks: int) -> Figures:
    """gRPC on asyncio with bytes of ours; one way is one client stream."""
    import grpc

    process, pipe = _beside(_grpc_answerer)

    async def main() -> Figures:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{pipe.recv()}") as channel:
            call = channel.unary_unary("/bench/ask")

            async def ask(_number: int) -> None:
                loads(await call(dumps(_FIELDS)))

            figures = await _measured(ask, asks)
            begun = time.perf_counter()
            stream = channel.stream_unary("/bench/feed")()
            for _ in range(messages):
                await stream.write(dumps(_FIELDS))
            await stream.done_writing()
            await stream
            figures["one_way"] = messages / (time.perf_counter() - begun)
            return figures

    try:
        return asyncio.run(main())
    finally:
        process.kill()
        process.join()


def _xoscar_answerer(pipe: Connection) -> None:
    import xoscar

    class Answerer(xoscar.Actor):
        async def ask(self, fields: dict[str, Any]) -> dict[str, Any]:
            return fields

    async def main() -> None:
        pool = await xoscar.create_actor_pool("127.0.0.1:0", n_process=0)
        async with pool:
            await xoscar.create_actor(Answerer, address=pool.external_address, uid="answerer")
            pipe.send(pool.external_address)
            await pool.join()

    asyncio.run(main())


def xoscar(messages: int, asks: int) -> Figures:
    """An xoscar actor in a pool of another process."""
    import xoscar

    process, pipe = _beside(_xoscar_answerer)

    async def main() -> Figures:
        ref = await xoscar.actor_ref(address=await asyncio.to_thread(pipe.recv), uid="answerer")
        figures = await _measured(lambda _number: ref.ask(_FIELDS), asks)
        begun = time.perf_counter()
        for _ in range(messages):
            await ref.ask.tell(_FIELDS)
        await ref.ask(_FIELDS)
        figures["one_way"] = messages / (time.perf_counter() - begun)
        return figures

    try:
        return asyncio.run(main())
    finally:
        process.kill()
        process.join()


# (subject, share of the messages that it is given: the slow ones would take minutes)
SUBJECTS: dict[str, tuple[Callable[[int, int], Figures], float]] = {
    "ours": (ours, 1.0),
    "blocking_pyzmq": (blocking_pyzmq, 0.5),
    "grpc": (grpc_asyncio, 0.1),
    "xoscar": (xoscar, 0.1),
}
_MODULES = {"grpc": "grpc", "xoscar": "xoscar"}


def absent(name: str) -> bool:
    """Whether a peer is not installed here."""
    module = _MODULES.get(name)
    return module is not None and importlib.util.find_spec(module) is None
