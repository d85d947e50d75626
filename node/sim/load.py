"""Background clients of a story: unique keys and numbered notes to probes, each outcome written into the history."""

from __future__ import annotations

from functools import partial
from typing import Any

from node.core.clock import MS, SECOND
from node.core.ids import EntityRef
from node.sim import history as h
from node.sim import probe
from node.sim.host import Host
from node.sim.outcomes import judge
from node.sim.world import World

TIMEOUT_MS = 5_000


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


class Load:
    """`ops` are the asks; `sent` counts the notes of all by (sender, entity): a sender is one process of a host."""

    def __init__(
        self, world: World, asks_per_s: float, notes_per_s: float, entities: int, only_at: tuple[str, ...]
    ) -> None:
        self._world = world
        self._rng = world.scheduler.derive(f"load/{world.scheduler.now_ns}")
        self._entities = tuple(f"e{number}" for number in range(entities))
        self._only_at = only_at
        self._stopped = False
        self.ops: list[h.Op] = []
        self.sent = world.history.notes
        for per_s, what in ((asks_per_s, self._ask), (notes_per_s, self._note)):
            if per_s:
                world.scheduler.after(0, self._each, round(SECOND / per_s), what)

    def stop(self) -> None:
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

    def _each(self, period_ns: int, what: Any) -> None:
        if self._stopped:
            return
        host = self._any_host()
        if host is not None:
            what(host, self._rng.choice(self._entities))
        self._world.scheduler.after(self._rng.randrange(2 * period_ns) or 1, self._each, period_ns, what)

    def _any_host(self) -> Host | None:
        """One whose process has joined and takes work, as a balancer in front would choose."""
        ready = [
            host
            for name, host in self._world.hosts.items()
            if (not self._only_at or name in self._only_at) and _takes_work(host)
        ]
        return ready[self._rng.randrange(len(ready))] if ready else None

    def _ask(self, host: Host, entity: str) -> None:
        world = self._world
        op = world.history.begin(
            "add", (entity, f"{entity}-{len(world.history.ops)}"), host.name, world.scheduler.now_ns
        )
        self.ops.append(op)
        to = EntityRef(probe.KIND, entity)
        world.ask(host, to, probe.Add(op.key[1]), TIMEOUT_MS, partial(self._ended, op))

    def _ended(self, op: h.Op, outcome: Any) -> None:
        op.ended_ns = self._world.scheduler.now_ns
        op.outcome, op.detail, op.answer = judge(outcome)
        fate = f"{op.outcome.value} {op.detail}"
        self._world.trace.message(f"load at {op.node}", op.key[1], fate, routine=op.outcome is h.Outcome.OK)

    def _note(self, host: Host, entity: str) -> None:
        process = host.process
        if process is None or process.engine is None:
            return
        sender = str(process.me)
        number = self.sent.get((sender, entity), 0) + 1
        self.sent[(sender, entity)] = number
        process.run(process.engine.system.tell, EntityRef(probe.KIND, entity), probe.Note(sender, number))
        process.run(process.wake)


def _takes_work(host: Host) -> bool:
    process = host.process
    engine = process.engine if process is not None and not process.paused else None
    return engine is not None and engine.view.joined and engine.drain.accepts_work
