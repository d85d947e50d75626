"""Background clients that talk to probes: everything they send is unique, and each outcome goes into the history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import msgspec

from node.core.clock import MS, SECOND
from node.core.ids import EntityRef
from node.sim import history as h
from node.sim import probe
from node.sim.host import Host
from node.sim.outcomes import judge
from node.sim.probe import SHORT_LIVED
from node.sim.world import World

TIMEOUT_MS = 5_000
RETRY_MS = 600
REPEATED_RATIO = 0.1  # of acknowledged keys that are asked for once more
SLOTS = 4
SHORT_MS = 4_000
POISONED = "bad"


class Pending:
    """One ask. `outcome`: the reply, `Failed`, REFUSED, or None where nobody will ever know."""

    def __init__(self, asked_ns: int) -> None:
        self.asked_ns = asked_ns
        self.ended_ns = 0
        self.ended = False
        self.outcome: Any = None

    def end(self, outcome: Any, now_ns: int) -> None:
        self.ended, self.outcome, self.ended_ns = True, outcome, now_ns

    @property
    def took_s(self) -> float:
        return (self.ended_ns - self.asked_ns) / SECOND


@dataclass(frozen=True, slots=True)
class Rates:
    """Messages a second of each kind. `asks`: idempotent adds; `tries`: how often one is asked at most until it is
    acknowledged. `notes`: numbered tells. `works`: asks that are answered after a while. `puts`: writes and removals in
    the ServeIndex. `poison`: tells that no handler survives."""

    asks: float = 0.0
    tries: int = 1
    notes: float = 0.0
    works: float = 0.0
    puts: float = 0.0
    poison: float = 0.0


class Load:
    """`ops` are the asks, `sent` counts the notes of all by (sender, entity): a sender is one process of a host. The
    entities are `name`0, `name`1, …; the first are used most, the last hardly ever, so that they are passivated."""

    def __init__(self, world: World, rates: Rates, name: str, entities: int, only_at: tuple[str, ...] = ()) -> None:
        self._world = world
        self._rates = rates
        self._rng = world.scheduler.derive(f"load/{name}/{world.scheduler.now_ns}")
        self._entities = tuple(f"{name}{number}" for number in range(entities))
        self._only_at = only_at
        self._stopped = False
        self._poisons = 0
        self.ops: list[h.Op] = []
        self.sent = world.history.notes
        kinds: dict[str, Callable[[Host], object]] = {
            "asks": self._add,
            "notes": self._note,
            "works": self._work,
            "puts": self._put,
            "poison": self._poison,
        }
        for field in fields(rates):
            per_s = getattr(rates, field.name)
            if field.name in kinds and per_s:
                world.scheduler.after(0, self._each, round(SECOND / per_s), kinds[field.name])

    def stop(self) -> None:
        """Nothing new; what was asked still has its outcome."""
        self._stopped = True

    def why_open(self) -> str:
        """Which asks have no outcome yet, in words."""
        waiting = [op.key for op in self.ops if op.outcome is h.Outcome.OPEN]
        return f"{len(waiting)} asks are open, the oldest {'/'.join(waiting[0])}" if waiting else ""

    def outcomes(self, outcome: h.Outcome) -> list[h.Op]:
        return [op for op in self.ops if op.outcome is outcome]

    def slowest_ms(self) -> int:
        """Of those that were acknowledged."""
        return max(((op.ended_ns - op.invoked_ns) // MS for op in self.outcomes(h.Outcome.OK)), default=0)

    # ---- one message after the other

    def _each(self, period_ns: int, what: Callable[[Host], object]) -> None:
        if self._stopped:
            return
        host = self._any_host()
        if host is not None:
            what(host)
        self._world.scheduler.after(self._rng.randrange(2 * period_ns) or 1, self._each, period_ns, what)

    def _any_host(self) -> Host | None:
        """One whose process has joined and takes work, as a balancer in front would choose."""
        ready = [
            host
            for name, host in self._world.hosts.items()
            if (not self._only_at or name in self._only_at) and _takes_work(host)
        ]
        return ready[self._rng.randrange(len(ready))] if ready else None

    def _entity(self) -> str:
        return self._entities[int(len(self._entities) * self._rng.random() ** 1.5)]

    def _ask(self, host: Host, verb: str, entity: str, key: str, message: msgspec.Struct, then: Any = None) -> None:
        world = self._world
        op = world.history.begin(verb, (entity, key), host.name, world.scheduler.now_ns)
        self.ops.append(op)
        world.ask(host, EntityRef(probe.KIND, entity), message, TIMEOUT_MS, partial(self._ended, op, then))

    def _ended(self, op: h.Op, then: Any, outcome: Any) -> None:
        op.ended_ns = self._world.scheduler.now_ns
        op.outcome, op.detail, op.answer = judge(outcome)
        fate = f"{op.outcome.value} {op.detail}"
        words = f"load {op.verb} at {op.node}"
        self._world.trace.message(words, op.key[1], fate, routine=op.outcome is h.Outcome.OK)
        if then is not None:
            then(op)

    def _add(self, host: Host) -> None:
        self._try(self._rates.tries, self._entity(), f"k{len(self._world.history.ops)}", host)

    def _try(self, left: int, entity: str, key: str, host: Host | None) -> None:
        if self._stopped or not left:
            return
        if host is None:
            self._again(left, entity, key)
            return

        def ended(op: h.Op) -> None:
            if op.outcome is not h.Outcome.OK or self._rng.random() < REPEATED_RATIO:
                self._again(left - 1, entity, key)

        self._ask(host, "add", entity, key, probe.Add(key), ended if self._rates.tries > 1 else None)

    def _again(self, left: int, entity: str, key: str) -> None:
        """Another host may be asked: the key is what makes it the same."""
        self._world.scheduler.after(RETRY_MS * MS, lambda: self._try(left, entity, key, self._any_host()))

    def _work(self, host: Host) -> None:
        key = f"w{len(self._world.history.ops)}"
        self._ask(host, "work", self._entity(), key, probe.Work(key, self._rng.randrange(1, probe.WORK_MS_MAX)))

    def _put(self, host: Host) -> None:
        key = f"v{len(self._world.history.ops)}"
        slot = f"s{self._rng.randrange(SLOTS)}"
        # One slot always lives so short: a later write never expires before an earlier one.
        ttl_ms = SHORT_MS if slot == SHORT_LIVED else 0
        put = probe.Put(slot, key, remove=self._rng.random() < 0.4, ttl_ms=ttl_ms)
        self._ask(host, "put", self._entity(), key, put)

    def _note(self, host: Host) -> None:
        entity, process = self._entity(), host.process
        if process is None:
            return
        sender = str(process.me)
        number = self.sent.get((sender, entity), 0) + 1
        self.sent[(sender, entity)] = number
        self._world.history.told_ns.setdefault((sender, entity), []).append(self._world.scheduler.now_ns)
        self._tell(host, entity, probe.Note(sender, number))

    def _poison(self, host: Host) -> None:
        self._poisons += 1
        self._tell(host, POISONED, probe.Poison(self._poisons))

    def _tell(self, host: Host, entity: str, message: msgspec.Struct) -> None:
        process = host.process
        if process is not None and process.engine is not None:
            process.run(process.engine.system.tell, EntityRef(probe.KIND, entity), message)
            process.run(process.wake)


def _takes_work(host: Host) -> bool:
    process = host.process
    engine = process.engine if process is not None and not process.paused else None
    return engine is not None and engine.view.joined and engine.drain.accepts_work
