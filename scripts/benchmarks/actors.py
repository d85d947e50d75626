"""Tell and ask inside one process, beside a deque and a loop of calls."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import msgspec

from node.actors.actor import Context, EntityType
from node.actors.ports import Ports
from node.actors.system import ActorSystem
from node.core.clock import SystemClock
from node.core.ids import EntityRef, NodeId
from node.store.memory import MemoryStore
from node.wire.registry import wire_type
from scripts.benchmarks.measure import rates, spread

MESSAGES = 100_000
ASKS = 20_000


@wire_type("bench.tick")
class Tick(msgspec.Struct, frozen=True):
    number: int


class Counting:
    """Counts what it is told, answers what it is asked."""

    def __init__(self, _id: str) -> None:
        self.seen = 0

    def start(self, ctx: Context, state: None) -> None:
        pass

    def receive(self, ctx: Context, message: Any) -> None:
        self.seen += 1
        ctx.reply(message)


class _Nobody:
    def reply(self, message: object) -> None:
        pass


_NOBODY: Any = _Nobody()


def measure(runs: int) -> dict[str, Any]:
    system = _system()
    target = EntityRef("counting", "one")
    system.shard_started(target.shard, 1)
    message = Tick(1)
    clock = SystemClock()

    def floor() -> None:
        queue: deque[tuple[Any, Tick]] = deque()
        actor = Counting("")
        for _ in range(MESSAGES):
            queue.append((actor, message))
        while queue:
            to, item = queue.popleft()
            to.receive(_NOBODY, item)

    def settle() -> None:
        while system.turn(clock.mono_ns()):
            pass

    def tell() -> None:
        for begin in range(0, MESSAGES, 1_000):
            for _ in range(begin, begin + 1_000):
                system.tell(target, message)
            settle()

    def ask() -> None:
        answers: list[Any] = []
        for begin in range(0, ASKS, 100):
            for _ in range(begin, begin + 100):
                system.ask(target, message, 5_000, answers.append)
            settle()
        if len(answers) != ASKS or not isinstance(answers[0], Tick):
            raise RuntimeError(f"{len(answers)} of {ASKS} asks were answered, the first with {answers[:1]}")

    told, floor_rates = rates(MESSAGES, runs, tell), rates(MESSAGES, runs, floor)
    return {
        "tell": spread(told, "1/s"),
        "ask_round_trip": spread(rates(ASKS, runs, ask), "1/s"),
        "floor_deque_loop": spread(floor_rates, "1/s"),
        "tell_to_floor_ratio": round(sorted(told)[runs // 2] / sorted(floor_rates)[runs // 2], 3),
    }


def _system() -> ActorSystem:
    clock = SystemClock()
    store = MemoryStore(clock)
    ports = Ports(
        submit=lambda request, done: done(store.apply([request])[0]),
        execute=lambda executor, fn, args, done: False,
        route=lambda envelope: None,
        publish=lambda topic, event: None,
        wake=lambda: None,
        bounce=lambda envelope: None,
        fenced=lambda shard, epoch, found: None,
    )
    return ActorSystem(NodeId("bench", 1), clock, random.Random(1), (EntityType("counting", Counting),), ports)
