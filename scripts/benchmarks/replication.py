"""From a put to its sight on all replicas, with real files, sockets and processes; and opening a replica."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import random
import tempfile
import time
from collections.abc import Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from node.core.clock import SystemClock
from node.core.ids import NodeId, ServiceRef
from node.gossip import replica_io as io
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replicator import Replicator
from node.store.replica_lmdb import LmdbReplica
from node.store.replica_open import open_replica
from node.wire.codec import CODEC
from node.wire.envelope import Envelope, Kind
from node.wire.port import PeerAddress
from node.wire.transport_zmq import ZmqTransport
from scripts.benchmarks import replica_opening
from scripts.benchmarks.measure import percentile, spread
from scripts.benchmarks.peers import Mesh, mesh

NAMES = ("writer", "reader-1", "reader-2", "reader-3")
PUTS = 1_000
PUTS_PER_S = 200
VALUE_BYTES = 1_000
DAY_MS = 86_400_000


def measure(runs: int) -> dict[str, Any]:
    visible = [asyncio.run(_visible()) for _ in range(max(1, runs // 2))]
    return {
        "put_to_visible_on_all_of_4_p50": spread([v["p50_ms"] for v in visible], "ms"),
        "put_to_visible_on_all_of_4_p99": spread([v["p99_ms"] for v in visible], "ms"),
        "load": {"puts": PUTS, "puts_per_s": PUTS_PER_S, "value_bytes": VALUE_BYTES},
        "opening": replica_opening.measure(runs),
    }


class Node:
    """A replicator with its file and its transport, and nothing else."""

    def __init__(self, name: str, keys: Mesh, folder: Path) -> None:
        self._clock = SystemClock()
        self._name = name
        self.replica, _ = _replica(folder, name)
        self.machine = Replicator(name, self.replica, io.ReplicationSettings(), random.Random(name))
        self.transport = ZmqTransport(
            "bench",
            NodeId(name, 1),
            keys.pair(name),
            keys.roster(),
            CODEC,
            self._clock,
            self._receive,
            lambda *refused: None,
        )
        self.transport.bind("127.0.0.1:0", "127.0.0.1:0")
        self.seen: list[tuple[str, int]] = []
        self._woken = asyncio.Event()

    def join(self, addresses: dict[str, tuple[str, str]]) -> None:
        for name, (control, data) in addresses.items():
            if name != self._name:
                self.transport.connect(PeerAddress(name, control, data))
        self.step(io.RosterKnown(ReplicaRoster()))
        self.step(io.PeersChanged(frozenset(addresses) - {self._name}))

    def put(self, key: str, value: bytes) -> None:
        wall_ms = self._clock.wall_ms()
        _, effects = self.machine.put(key, value, 1, wall_ms + DAY_MS, self._clock.mono_ns(), wall_ms)
        self._carry_out(effects)

    def step(self, event: io.Event) -> None:
        self._carry_out(self.machine.step(event, self._clock.mono_ns(), self._clock.wall_ms()))

    async def run(self) -> None:
        while True:
            self._woken.clear()
            wait_ns = self.machine.next_wake_ns() - self._clock.mono_ns()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), max(0.0005, wait_ns / 1e9))
            if self.machine.next_wake_ns() <= self._clock.mono_ns():
                self.step(io.Tick())

    def _receive(self, envelope: Envelope) -> None:
        self.step(io.Received(envelope.sender.name, envelope.message))  # type: ignore[arg-type]

    def _carry_out(self, effects: Iterable[io.Effect]) -> None:
        self._woken.set()
        for effect in effects:
            if isinstance(effect, io.Send):
                envelope = Envelope(
                    Kind.TELL, ServiceRef(effect.node, "/replicator"), NodeId(self._name, 1), effect.message
                )
                self.transport.send(effect.node, envelope)
            elif isinstance(effect, io.Applied):
                self.seen.extend((key, time.monotonic_ns()) for key in effect.keys)
            elif isinstance(effect, io.Commit):
                asyncio.get_running_loop().create_task(self._commit(effect)).add_done_callback(lambda _: None)

    async def _commit(self, commit: io.Commit) -> None:
        await asyncio.to_thread(self.replica.commit, commit.batch)
        self.step(io.Committed(commit.token, True))


async def _visible() -> dict[str, float]:
    keys = mesh(*NAMES)
    with tempfile.TemporaryDirectory() as folder:
        writer = Node("writer", keys, Path(folder) / "writer")
        addresses = {"writer": (writer.transport.control_address, writer.transport.data_address)}
        pipes: dict[str, Connection] = {}
        processes = []
        for name in NAMES[1:]:
            pipes[name], child = multiprocessing.Pipe()
            process = multiprocessing.get_context("spawn").Process(
                target=_reader, args=(name, keys.keys, str(Path(folder) / name), child), daemon=True
            )
            process.start()
            processes.append(process)
            addresses[name] = await asyncio.to_thread(pipes[name].recv)
        for pipe in pipes.values():
            pipe.send(addresses)
        writer.join(addresses)
        task = asyncio.create_task(writer.run())
        while not writer.machine.ready:
            await asyncio.sleep(0.01)
        put_ns: dict[str, int] = {}
        begun = time.monotonic()
        for number in range(PUTS):
            key = f"site-{number % 50}|slot-{number}"
            put_ns[key] = time.monotonic_ns()
            writer.put(key, random.Random(number).randbytes(VALUE_BYTES))
            await asyncio.sleep(max(0.0, begun + number / PUTS_PER_S - time.monotonic()))
        last_seen: dict[str, int] = {}
        for pipe in pipes.values():
            pipe.send(PUTS)
            for key, at_ns in await asyncio.to_thread(pipe.recv):
                last_seen[key] = max(last_seen.get(key, 0), at_ns)
        task.cancel()
        writer.transport.close()
        for process in processes:
            process.terminate()
            process.join()
        took_ms = [(last_seen[key] - at_ns) / 1e6 for key, at_ns in put_ns.items()]
    return {"p50_ms": percentile(took_ms, 0.5), "p99_ms": percentile(took_ms, 0.99)}


def _reader(name: str, keys: dict[str, tuple[str, str]], folder: str, pipe: Connection) -> None:
    async def main() -> None:
        node = Node(name, Mesh(keys), Path(folder))
        pipe.send((node.transport.control_address, node.transport.data_address))
        node.join(await asyncio.to_thread(pipe.recv))
        task = asyncio.create_task(node.run())
        wanted: int = await asyncio.to_thread(pipe.recv)
        while len({key for key, _ in node.seen}) < wanted:
            await asyncio.sleep(0.005)
        pipe.send(node.seen)
        await task

    asyncio.run(main())


def _replica(folder: Path, name: str) -> tuple[LmdbReplica, Any]:
    return open_replica(folder, SystemClock(), cluster_id="c-bench", node=name, tenure=1)
