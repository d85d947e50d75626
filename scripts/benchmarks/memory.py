"""What entities at rest cost in memory: a node's runtime in a process of its own, with and without them.

Resident memory is read before, with all of them at rest, and after all of them were passivated; the difference to
*before* is what they cost. The bytes of an idle actor are of entities without any state.
"""

from __future__ import annotations

import gc
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from node.actors.actor import Context, EntityType
from node.actors.memory import give_back
from node.actors.system import ActorSystem
from node.core.clock import MS, ManualClock
from node.core.hashing import SHARD_COUNT
from node.core.ids import EntityRef, NodeId
from node.engine import engine, nodeservice  # noqa: F401 - an empty node has all of its code loaded
from node.store.memory import MemoryStore
from node.wire.registry import wire_type
from scripts.benchmarks.alone import ports_to
from scripts.benchmarks.measure import spread

ENTITIES = 100_000
IDLE_MS = 60_000
FIELDS = {"resident_mb": "MB", "passivated_mb": "MB", "bytes_each": "B", "unmailed_bytes_each": "B"}
AIMS = {
    "holding_resident_mb": 100,
    "holding_passivated_mb": 5,
    "bare_bytes_each": 1_500,
    "bare_unmailed_bytes_each": 600,
}


@wire_type("bench.small_state")
class Small(msgspec.Struct, frozen=True):
    """About what an advertiser keeps: a few numbers and two short texts."""

    name: str = ""
    status: str = "active"
    spent: int = 0
    budget: int = 0
    seen: int = 0


@wire_type("bench.touch")
class Touch(msgspec.Struct, frozen=True):
    number: int


class Holding:
    """An entity with a small state of its own."""

    __slots__ = ("_id", "_state")

    def __init__(self, entity: str) -> None:
        self._id = entity
        self._state = Small()

    def start(self, ctx: Context, state: Any) -> None:
        self._state = Small(name=f"entity {self._id}", budget=10**6, seen=1)

    def receive(self, ctx: Context, message: Any) -> None:
        self._state = msgspec.structs.replace(self._state, spent=message.number, seen=self._state.seen + 1)


class Bare:
    """Nothing of its own: what is left is the runtime's."""

    __slots__ = ()
    one: Any = None

    def start(self, ctx: Context, state: Any) -> None:
        pass

    def receive(self, ctx: Context, message: Any) -> None:
        pass


Bare.one = Bare()


def measure(runs: int) -> dict[str, Any]:
    """Each run is a fresh process."""
    found: dict[str, Any] = {"entities": ENTITIES}
    for kind in ("holding", "bare"):
        rows = [_in_a_process(kind) for _ in range(runs)]
        for field, unit in FIELDS.items():
            found[f"{kind}_{field}"] = spread([row[field] for row in rows], unit)
    found["aims_max"] = AIMS
    found["met"] = {name: found[name]["median"] <= aim for name, aim in AIMS.items()}
    return found


def _in_a_process(kind: str) -> dict[str, float]:
    command = [sys.executable, "-m", "scripts.benchmarks.memory", kind]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    row: dict[str, float] = json.loads(done.stdout)
    return row


def _resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def once(kind: str) -> dict[str, float]:
    clock = ManualClock(mono_ns=1_000 * MS)
    store = MemoryStore(clock)
    ports = ports_to(store, freed=give_back)
    types = (
        EntityType("holding", Holding, idle_ms=IDLE_MS),
        EntityType("bare", lambda _: Bare.one, idle_ms=IDLE_MS),
    )
    system = ActorSystem(NodeId("bench", 1), clock, random.Random(1), types, ports)
    for shard in range(SHARD_COUNT):
        system.shard_started(shard, 1)

    def settle() -> None:
        while system.turn(clock.mono_ns()):
            pass

    def touch(prefix: str, count: int, every: int = 1_000) -> None:
        for number in range(count):
            system.tell(EntityRef(kind, f"{prefix}-{number}.example.com"), Touch(number))
            if number % every == 0:
                clock.advance_ns(MS)
                settle()
        settle()

    def go() -> None:
        clock.advance_ns(2 * IDLE_MS * MS)
        settle()
        clock.advance_ns(2 * IDLE_MS * MS)
        settle()

    touch("warm", 1_000)
    go()
    before = _resident()
    for number in range(ENTITIES):
        system.restart(EntityRef(kind, f"site-{number}.example.com"))
        if number % 1_000 == 0:
            settle()
    settle()
    unmailed = _resident()
    touch("site", ENTITIES)
    resident = _resident()
    if system.stats()["cells"] != ENTITIES:
        raise RuntimeError(f"{system.stats()['cells']} entities instead of {ENTITIES}")
    go()
    if system.stats()["cells"]:
        raise RuntimeError("not all were passivated")
    passivated = _resident()
    return {
        "resident_mb": (resident - before) / 1e6,
        "passivated_mb": (passivated - before) / 1e6,
        "bytes_each": (resident - before) / ENTITIES,
        "unmailed_bytes_each": (unmailed - before) / ENTITIES,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(once(sys.argv[1])) + "\n")
