"""Actors in one process: ours beside a bare loop, asyncio.Queue per actor, and the peers that are installed.

Each subject is a process; they take turns, so that a slow minute of the machine is everybody's.
"""

from __future__ import annotations

import importlib.metadata
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from node.actors.actor import Context, EntityType
from node.actors.system import ActorSystem
from node.core.clock import SystemClock
from node.core.hashing import SHARD_COUNT
from node.core.ids import EntityRef, NodeId
from node.store.memory import MemoryStore
from node.wire.registry import wire_type
from scripts.benchmarks.actor_subjects import ABREAST, MANY, PEERS, SUBJECTS, expect, missing, rate
from scripts.benchmarks.alone import ports_to
from scripts.benchmarks.measure import spread

MESSAGES = 100_000
ASKS = 20_000
ONE = EntityRef("counting", "one")
# What we aim for: the figure, of ours, over that of whom, and the least or (memory) greatest ratio or value.
RATIO_AIMS = (
    ("tell", "floor", 0.25),
    ("tell", "tapio", 3.0),
    ("ask", "tapio", 5.0),
    ("fan_out", "asyncio_queue", 2.0),
)
BYTES_AIMS = (("bytes_idle", 600), ("bytes_after_mail", 1_500))


@wire_type("bench.tick")
class Tick(msgspec.Struct, frozen=True):
    number: int


@wire_type("bench.ask")
class Ask(msgspec.Struct, frozen=True):
    number: int


@wire_type("bench.run")
class Run(msgspec.Struct, frozen=True):
    """Asks so many times, one after the other."""

    asks: int


class Counting:
    """Counts what it is told, answers what it is asked, and asks in its turn when told to run."""

    all: list[Counting] = []  # noqa: RUF012 - what a round has to look at in the end

    def __init__(self, _id: str) -> None:
        self.seen = 0
        self.rounds = 0
        Counting.all.append(self)

    def start(self, ctx: Context, state: None) -> None:
        pass

    def receive(self, ctx: Context, message: Any) -> None:
        if type(message) is Tick:
            self.seen += 1
        elif type(message) is Ask:
            ctx.reply(message)
        elif message.asks:
            self.rounds += 1
            ctx.ask(ONE, Ask(message.asks), 60_000, lambda outcome: Run(outcome.number - 1))


def measure(runs: int) -> dict[str, Any]:
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in SUBJECTS if not missing(name)}
    for _ in range(runs):
        for name, found in rows.items():
            sys.stderr.write(f"  {name}\n")
            command = [sys.executable, "-m", "scripts.benchmarks.actor_subjects", name]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
            found.append(json.loads(done.stdout))
    report: dict[str, Any] = {
        name: {field: spread([row[field] for row in found], _unit(field)) for field in found[0]}
        for name, found in rows.items()
    }
    report["versions"] = {name: importlib.metadata.version(PEERS[name]) for name in PEERS if name in rows}
    report["missing"] = [name for name in PEERS if name not in rows]
    report["aims"] = _aims(rows)
    return report


def _unit(field: str) -> str:
    return "B" if field.startswith("bytes") else "1/s of processor time"


def _aims(rows: dict[str, list[dict[str, float]]]) -> list[dict[str, Any]]:
    """Ratios of medians of one run of the benchmark; what is missing is said, not guessed."""

    def median(name: str, field: str) -> float | None:
        return statistics.median(row[field] for row in rows[name]) if name in rows else None

    found: list[dict[str, Any]] = []
    for field, other, least in RATIO_AIMS:
        mine, theirs = median("ours", field), median(other, field)
        ratio = None if mine is None or theirs is None else round(mine / theirs, 2)
        met = None if ratio is None else ratio >= least
        found.append({"figure": field, "over": other, "ratio": ratio, "at_least": least, "met": met})
    for field, most in BYTES_AIMS:
        mine = median("ours", field)
        found.append({"figure": field, "bytes": mine, "at_most": most, "met": mine is not None and mine <= most})
    return found


def once() -> dict[str, float]:
    """One round of ours."""
    ours = _Ours()
    row = {"tell": rate(MESSAGES, ours.tell), "fan_out": rate(MESSAGES, ours.fan_out), "ask": rate(ASKS, ours.ask)}
    expect(sum(actor.seen for actor in Counting.all), 4 * MESSAGES)
    row["ask_actor_to_actor"] = rate(ASKS, ours.ping_pong)
    expect(sum(actor.rounds for actor in Counting.all), 2 * ASKS)
    return row


class _Ours:
    """One node's system that owns every shard."""

    def __init__(self) -> None:
        self._system = _system()
        self._clock = SystemClock()
        for shard in range(SHARD_COUNT):
            self._system.shard_started(shard, 1)
        self._many = [EntityRef("counting", f"actor-{number}") for number in range(MANY)]
        self._message = Tick(1)

    def tell(self) -> None:
        tell, message = self._system.tell, self._message
        for _ in range(MESSAGES // MANY):
            for _ in range(MANY):
                tell(ONE, message)
            self._settle()

    def fan_out(self) -> None:
        tell, message = self._system.tell, self._message
        for _ in range(MESSAGES // MANY):
            for to in self._many:
                tell(to, message)
            self._settle()

    def ask(self) -> None:
        answers: list[Any] = []
        for _ in range(ASKS // ABREAST):
            for _ in range(ABREAST):
                self._system.ask(ONE, Ask(1), 60_000, answers.append)
            self._settle()
        expect(sum(isinstance(answer, Ask) for answer in answers), ASKS)

    def ping_pong(self) -> None:
        self._system.tell(EntityRef("counting", "pinger"), Run(ASKS))
        self._settle()

    def _settle(self) -> None:
        while self._system.turn(self._clock.mono_ns()):
            pass


def _system() -> ActorSystem:
    clock = SystemClock()
    store = MemoryStore(clock)
    ports = ports_to(store)
    return ActorSystem(NodeId("bench", 1), clock, random.Random(1), (EntityType("counting", Counting),), ports)
