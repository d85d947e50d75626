"""The engine's side of a drain: gathers the facts that each phase waits for, and does what each phase begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from node.core.clock import SECOND
from node.core.ids import SINGLETON_SHARD, EntityRef
from node.engine import topology
from node.engine.config import Exit
from node.engine.drain import ALL, FLUSH_ONLY, WITHOUT_MOVES, Drain, Facts, Step
from node.flows.messages import BeginDrain, DrainProgress
from node.wire.envelope import Envelope

if TYPE_CHECKING:
    from node.engine.engine import Engine

REPEAT_NS = SECOND


class NodeDrain:
    """At most one drain at a time; asking for what is under way changes nothing."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._drain: Drain | None = None
        self._operation = ""
        self._shards_at_start = 0
        self._said_ns = 0
        engine.services[BeginDrain] = self._begin_wanted

    @property
    def active(self) -> bool:
        return self._drain is not None

    @property
    def accepts_work(self) -> bool:
        """False as soon as readiness is off: the edges refuse new work and say retry."""
        return self._drain is None

    def phases(self) -> tuple[str, ...]:
        """The phases so far, in words."""
        if self._drain is None:
            return ()
        return tuple(f"{p.name}: {p.state}" for p in self._drain.phases(self._engine.world.clock.mono_ns()))

    def begin(self, *, moves: bool, operation: str = "") -> None:
        """Drain and leave, or (`moves` false, for a whole cluster that stops) flush and end."""
        engine = self._engine
        if self._drain is not None:
            self._operation = self._operation or operation
            return
        self._operation = operation
        self._shards_at_start = engine.sharding.region.held()
        now_ns = engine.world.clock.mono_ns()
        self._drain = Drain(ALL if moves else WITHOUT_MOVES, engine.config.drain_deadline_ms, now_ns)
        engine.emit("node.draining", f"node/{engine.me.name}", "drains" if moves else "stops with the cluster")
        if not moves:
            engine.sharding.step_down()
        engine.world.wake()

    def hurry(self) -> None:
        """A second signal: only what must not be lost."""
        engine = self._engine
        now_ns = engine.world.clock.mono_ns()
        if self._drain is None:
            self._drain = Drain(FLUSH_ONLY, engine.config.drain_deadline_ms, now_ns)
        self._drain.hurry(now_ns)
        engine.world.wake()

    def tick(self, now_ns: int) -> None:
        drain = self._drain
        if drain is None:
            return
        while True:
            begun = drain.advance(self._facts(now_ns), now_ns)
            if begun is None:
                break
            self._enter(begun)
        if now_ns - self._said_ns >= REPEAT_NS:
            self._said_ns = now_ns
            if drain.current not in (Step.READINESS, Step.INGESTION) and self._handing_over():
                self._engine.say_draining(True)
            self._report(now_ns)
        if drain.current is None:
            self._engine.exit(Exit("drained" if self._handing_over() else "stopped"))

    def _handing_over(self) -> bool:
        return self._drain is not None and any(p.name == Step.LEAVE for p in self._drain.phases(0))

    def _enter(self, step: Step) -> None:
        engine = self._engine
        if step is Step.SINGLETONS:
            engine.say_draining(True)
            engine.sharding.step_down()
        elif step is Step.SHARDS:
            engine.sharding.drain(True)
        elif step is Step.LEAVE:
            engine.leave()
        self._report(engine.world.clock.mono_ns())

    def _facts(self, now_ns: int) -> Facts:
        engine = self._engine
        stats = engine.system.stats()
        owned = engine.system.owned()
        return Facts(
            executing=engine.executing,
            singletons=int(SINGLETON_SHARD in owned and len(engine.view.up("singleton")) > 1),
            shards=engine.sharding.region.held() if self._somebody_takes_shards() else 0,
            buffered=engine.sharding.region.waiting(),
            asks=stats["asks_open"],
            unacknowledged=engine.replication.unacknowledged(now_ns),
            writes=engine.writing,
            uncommitted=engine.replication.unwritten(),
        )

    def _somebody_takes_shards(self) -> bool:
        """False when every other entity node drains too: waiting for them would be waiting for nothing."""
        engine = self._engine
        nodes = topology.entity_nodes(engine.view, engine.draining_nodes()).nodes
        return any(node.takes_shards for node in nodes if node.node != engine.me)

    def _report(self, now_ns: int) -> None:
        if self._operation and self._drain is not None:
            moved = self._shards_at_start - self._engine.sharding.region.held()
            progress = DrainProgress(self._drain.phases(now_ns), moved, self._engine.sharding.lost)
            self._engine.system.tell(EntityRef("operation", self._operation), progress)

    def _begin_wanted(self, envelope: Envelope) -> None:
        message = envelope.message
        if isinstance(message, BeginDrain) and message.incarnation == self._engine.me.incarnation:
            self.begin(moves=True, operation=message.operation)
            self._report(self._engine.world.clock.mono_ns())
