"""A replica in a process of its own: the replicator over its file, without peers, told what to do line by line.

`python replica_process.py DIRECTORY` is the process; `ReplicaProcess` is its handle. Each line is answered by one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from node.actors.runtime import Runtime
from node.core.clock import SystemClock
from node.engine.faults import Faults
from node.gossip import replica_io as io
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replicator import Replicator
from node.store.replica_open import open_replica
from node.wiring.replica_care import ReplicaCare


class ReplicaProcess:
    """The process, and questions to it."""

    def __init__(self, folder: Path, env: dict[str, str], asked: Sequence[Sequence[str]] = ()) -> None:
        """`asked`: what is in the pipe before the replica is open; `answered` reads the answers."""
        command = [sys.executable, __file__, str(folder)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **env}
        )
        self._write(*asked)
        self.opened: dict[str, Any] = self.answered()

    def ask(self, what: str, *values: str) -> Any:
        self._write([what, *values])
        return self.answered()

    def put(self, key: str, value: str) -> None:
        self.ask("put", key, value)

    def get(self, key: str) -> str | None:
        found: str | None = self.ask("get", key)
        return found

    def until(self, what: str, *values: str) -> Any:
        """Asks until the answer is one; a test's own time limit ends it."""
        while not (answer := self.ask(what, *values)):
            pass
        return answer

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _write(self, *asked: Sequence[str]) -> None:
        assert self.process.stdin is not None
        for line in asked:
            self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()

    def answered(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the replica's process ended with {self.process.wait()}"
        return json.loads(line)


@contextlib.contextmanager
def replica_process(folder: Path, env: dict[str, str] | None = None) -> Iterator[ReplicaProcess]:
    process = ReplicaProcess(folder, env or {})
    try:
        yield process
    finally:
        process.kill()


class Driver:
    """Carries out what the replicator asks, as the engine does."""

    def __init__(self, folder: Path) -> None:
        self._clock = SystemClock()
        self.replica, self.opening = open_replica(folder, self._clock, cluster_id="c-1", node="n1", tenure=1)
        self.lost: list[str] = []
        self.faults = Faults(self._clock)
        self.care = ReplicaCare(self.replica, Runtime(self._clock, {"disk": 1}).execute, self._clock, self.lost.append)
        settings = io.ReplicationSettings(commit_ns=20_000_000, commit_retry_ns_max=100_000_000)
        self.machine = Replicator("n1", self.replica, settings, random.Random(1))
        self._step(io.RosterKnown(ReplicaRoster()))
        self._step(io.PeersChanged(frozenset()))
        self._known: frozenset[str] = frozenset()

    async def run(self) -> None:
        while True:
            damaged, suspects = self.replica.damaged, self.replica.take_suspects()
            if damaged - self._known or suspects:
                self._step(io.Damaged(damaged - self._known, suspects))
            self._known = damaged
            self._step(io.Tick())
            await asyncio.sleep(0.005)

    def answer(self, what: str, *values: str) -> Any:
        now_ns, wall_ms = self._clock.mono_ns(), self._clock.wall_ms()
        match what, *values:
            case "put", key, value:
                self._carry_out(self.machine.put(key, value.encode(), 1, 0, now_ns, wall_ms)[1])
                return True
            case "remove", key:
                self._carry_out(self.machine.remove(key, 2, now_ns, wall_ms)[1])
                return True
            case "get", key:
                entry = self.machine.get(key, wall_ms)
                return None if entry is None else entry.value.decode()
            case ("committed",):
                return self.machine.uncommitted() == 0 and not self.care.busy
            case "counter", name:
                return self.machine.counters().get(name, 0)
            case ("faults",):
                return {fault.code: fault.message for fault in self.faults.all()}
            case "fault", code:
                return next((f.message for f in self.faults.all() if f.code == code), "")
            case "no-fault", code:
                return all(fault.code != code for fault in self.faults.all())
            case ("health",):
                return msgspec.to_builtins(self.replica.health())
            case ("mended",):
                return self.care.mended
            case ("lost",):
                return self.lost
        raise ValueError(what)

    def _step(self, event: io.Event) -> None:
        self._carry_out(self.machine.step(event, self._clock.mono_ns(), self._clock.wall_ms()))

    def _carry_out(self, effects: Iterable[io.Effect]) -> None:
        for effect in effects:
            match effect:
                case io.Commit(token, batch):
                    self.care.commit(batch, lambda ok, error, token=token: self._step(io.Committed(token, ok, error)))
                case io.Fault(code, subject, text):
                    self.faults.put(code, subject, text)
                case io.FaultCleared(code, subject):
                    self.faults.clear(code, subject)


async def main(folder: Path) -> None:
    driver = Driver(folder)
    work = [asyncio.create_task(driver.run()), asyncio.create_task(driver.care.watch(driver.faults))]
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    print(json.dumps(msgspec.to_builtins(driver.opening)), flush=True)
    async for line in lines:
        print(json.dumps(driver.answer(*json.loads(line))), flush=True)
    for task in work:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
