"""Asks between two processes over the CURVE transport, beside a blocking pyzmq request and reply of the same bytes."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from multiprocessing.connection import Connection
from typing import Any

import msgspec
import zmq

from node.core.clock import SystemClock
from node.core.ids import NodeId, ServiceRef
from node.wire.codec import CODEC
from node.wire.envelope import Envelope, Kind
from node.wire.port import PeerAddress
from node.wire.registry import wire_type
from node.wire.transport_zmq import ZmqTransport
from scripts.benchmarks.measure import percentile, spread
from scripts.benchmarks.peers import Mesh, mesh

IN_FLIGHT = 64
PAYLOAD = "x" * 120


@wire_type("bench.question")
class Question(msgspec.Struct, frozen=True):
    number: int
    text: str
    a: int = 1
    b: int = 2
    c: str = "three"
    d: bool = True


def measure(runs: int, asks: int = 20_000) -> dict[str, Any]:
    ours = [asyncio.run(_ours(asks)) for _ in range(runs)]
    floors = [_floor(asks // 4) for _ in range(runs)]
    return {
        "cross_process_ask_64_in_flight": spread([o["rate"] for o in ours], "1/s"),
        "cross_process_ask_p50": spread([o["p50_us"] for o in ours], "us"),
        "cross_process_ask_p99": spread([o["p99_us"] for o in ours], "us"),
        "floor_blocking_pyzmq_req_rep": spread([f["rate"] for f in floors], "1/s"),
        "floor_blocking_pyzmq_p50": spread([f["p50_us"] for f in floors], "us"),
    }


async def _ours(asks: int) -> dict[str, float]:
    keys = mesh("asker", "answerer")
    parent, child = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_answerer, args=(keys.keys, child), daemon=True)
    process.start()
    sent_ns: dict[int, int] = {}
    took_us: list[float] = []
    done = asyncio.Event()

    def receive(envelope: Envelope) -> None:
        took_us.append((time.perf_counter_ns() - sent_ns.pop(envelope.correlation)) / 1_000)
        if len(took_us) == asks:
            done.set()
        elif len(took_us) + len(sent_ns) < asks:
            ask()

    transport = _transport("asker", keys, receive)
    transport.bind("127.0.0.1:0", "127.0.0.1:0")
    parent.send((transport.control_address, transport.data_address))
    control, data = await asyncio.to_thread(parent.recv)
    transport.connect(PeerAddress("answerer", control, data))
    me = NodeId("asker", 1)
    number = 0

    def ask() -> None:
        nonlocal number
        number += 1
        sent_ns[number] = time.perf_counter_ns()
        question = Question(number, PAYLOAD)
        transport.send("answerer", Envelope(Kind.ASK, ServiceRef("answerer", "/x"), me, question, number))

    begun = time.perf_counter()
    for _ in range(IN_FLIGHT):
        ask()
    await asyncio.wait_for(done.wait(), 120)
    elapsed = time.perf_counter() - begun
    transport.close()
    process.terminate()
    process.join()
    return {
        "rate": asks / elapsed,
        "p50_us": percentile(took_us, 0.5),
        "p99_us": percentile(took_us, 0.99),
    }


def _transport(name: str, keys: Mesh, receive: Any) -> ZmqTransport:
    return ZmqTransport(
        "bench", NodeId(name, 1), keys.pair(name), keys.roster(), CODEC, SystemClock(), receive, lambda *refused: None
    )


def _answerer(keys: dict[str, tuple[str, str]], pipe: Connection) -> None:
    async def main() -> None:
        def receive(envelope: Envelope) -> None:
            to, me = ServiceRef("asker", "/ask"), NodeId("answerer", 1)
            transport.send("asker", Envelope(Kind.REPLY, to, me, envelope.message, envelope.correlation))

        transport = _transport("answerer", Mesh(keys), receive)
        transport.bind("127.0.0.1:0", "127.0.0.1:0")
        control, data = pipe.recv()
        transport.connect(PeerAddress("asker", control, data))
        pipe.send((transport.control_address, transport.data_address))
        await asyncio.Event().wait()

    asyncio.run(main())


def _floor(asks: int) -> dict[str, float]:
    parent, child = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_echo, args=(child,), daemon=True)
    process.start()
    socket = zmq.Context.instance().socket(zmq.REQ)
    socket.connect(parent.recv())
    data = CODEC.encode(Question(1, PAYLOAD))
    took_us: list[float] = []
    begun = time.perf_counter()
    for _ in range(asks):
        at = time.perf_counter_ns()
        socket.send(data)
        socket.recv()
        took_us.append((time.perf_counter_ns() - at) / 1_000)
    elapsed = time.perf_counter() - begun
    socket.close()
    process.terminate()
    process.join()
    return {"rate": asks / elapsed, "p50_us": percentile(took_us, 0.5)}


def _echo(pipe: Connection) -> None:
    socket = zmq.Context.instance().socket(zmq.REP)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    pipe.send(f"tcp://127.0.0.1:{port}")
    while True:
        socket.send(socket.recv())
