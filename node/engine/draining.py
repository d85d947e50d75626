"""The engine's side of a drain: does what each phase begins with, and keeps the drain's operation up to date.

Whoever wants this node drained (an operator, a signal, the stop of a cluster) gets the same drain: the node names its
operation, once, and everybody follows that.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from node.core import faultpoints
from node.core.clock import MS
from node.core.ids import EntityRef
from node.core.limits import drain_report_ms, drains_cancelled_kept
from node.engine.blockers import blockers, somebody_takes_shards
from node.engine.config import Exit
from node.engine.drain import ALL, FINAL, FLUSH_ONLY, JOINING, WITHOUT_MOVES, Drain, Step
from node.flows.messages import (
    BeginDrain,
    CancelDrain,
    DrainCancelled,
    DrainName,
    DrainProgress,
    GetDrainName,
    OperationStatus,
    Recorded,
    StartOperation,
)
from node.wire.envelope import Envelope

if TYPE_CHECKING:
    from node.engine.engine import Engine

RECORD_ASK_MS = 1_000


class _Record:
    """How far the drain's operation knows what happened. Without an operation everything counts as known."""

    def __init__(self, engine: Engine, operation: str, *, exists: bool, reason: str) -> None:
        self.operation = operation
        self._engine = engine
        self._exists = exists or not operation
        self._reason = reason
        self._asking = False
        self._asked_ns = 0
        self._sequence = -1

    def holds(self, drain: Drain) -> bool:
        return not self.operation or self._sequence >= drain.sequence

    def follow(self, drain: Drain, now_ns: int, progress: DrainProgress) -> None:
        """Report when there is news, and each `drain_report_ms`; one report is under way at a time."""
        due = not self.holds(drain) or now_ns - self._asked_ns >= drain_report_ms * MS
        if not self.operation or self._asking or not due:
            return
        engine = self._engine
        if self._exists:
            message: Any = progress
        else:
            message = StartOperation("drain", engine.me.name, engine.me.incarnation, reason=self._reason)
        self._asking = True
        self._asked_ns = now_ns
        engine.ask(EntityRef("operation", self.operation), message, RECORD_ASK_MS, self._answered)

    def _answered(self, outcome: object) -> None:
        self._asking = False
        if isinstance(outcome, OperationStatus):
            self._exists = True
        elif isinstance(outcome, Recorded):
            self._sequence = max(self._sequence, outcome.sequence)
        else:
            self._engine.counters["drain_reports_failed"] += 1
            return
        self._engine.drain.tick(self._engine.world.clock.mono_ns())


class NodeDrain:
    """At most one drain at a time; asking for what is under way changes nothing."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._drain: Drain | None = None
        self._record = _Record(engine, "", exists=True, reason="")
        self._name = ""
        self._cancelled: deque[str] = deque(maxlen=drains_cancelled_kept)
        self._last_way = False  # a signal began it, or went with it: whoever sent it ends this process anyway
        self._shards_at_start = 0
        self._said_ns = 0
        engine.services |= {
            BeginDrain: self._begin_wanted,
            CancelDrain: self._cancel_wanted,
            GetDrainName: self._name_wanted,
        }

    @property
    def active(self) -> bool:
        return self._drain is not None

    @property
    def accepts_work(self) -> bool:
        """False as soon as readiness is off: the edges refuse new work and say retry."""
        return self._drain is None

    @property
    def operation(self) -> str:
        """The drain's operation; empty while none is under way, or while it has none."""
        return self._record.operation

    def name(self) -> str:
        """The name of the operation of the drain under way, or of the next one."""
        self._name = self._name or f"op-{self._engine.world.rng.getrandbits(40):010x}"
        return self._record.operation or self._name

    def phases(self) -> tuple[str, ...]:
        """The phases so far, in words."""
        if self._drain is None:
            return ()
        return tuple(f"{p.name}: {p.state}" for p in self._drain.phases(self._engine.world.clock.mono_ns()))

    def begin(self, *, moves: bool, operation: str = "", reason: str = "", final: bool = False) -> None:
        """Drain and leave, or (`moves` false, for a whole cluster that stops) flush and end. `operation` exists;
        without one, a drain that moves shards starts its own. `final`: it can't be cancelled."""
        engine = self._engine
        self._last_way |= final
        if self._drain is not None:
            return
        now_ns = engine.world.clock.mono_ns()
        steps: tuple[Step, ...] = WITHOUT_MOVES
        if moves:
            steps = ALL if engine.view.joined else JOINING
        own = self.name() if steps is ALL else ""
        self._record = _Record(engine, operation or own, exists=bool(operation), reason=reason)
        self._shards_at_start = engine.sharding.region.held()
        self._drain = Drain(steps, engine.config.drain_deadline_ms, now_ns)
        what = "drains" if moves else "stops with the cluster"
        engine.emit("node.draining", f"node/{engine.me.name}", f"{what} ({reason})" if reason else what)
        if self._drain.leaves:
            # From now on nothing is placed here; what is here stays until its phase.
            engine.say_draining(True, closing=True)
        else:
            engine.sharding.step_down()
        engine.world.wake()

    def hurry(self) -> None:
        """A second signal: only what must not be lost."""
        engine = self._engine
        now_ns = engine.world.clock.mono_ns()
        self._last_way = True
        if self._drain is None:
            self._drain = Drain(FLUSH_ONLY, engine.config.drain_deadline_ms, now_ns)
        self._drain.hurry(now_ns)
        engine.world.wake()

    def cancel(self) -> str:
        """Take part again; why not, when it is too late. What has moved stays where it is."""
        engine = self._engine
        drain = self._drain
        if drain is None:
            return ""
        if drain.current in (*FINAL, None):
            return f"{engine.me.name} has begun to flush; there is no way back"
        if self._last_way or not drain.leaves:
            return f"{engine.me.name} was told to end; whoever told it would end it anyway"
        self._cancelled.append(self.operation)
        self._drain = None
        self._name = ""
        self._record = _Record(engine, "", exists=True, reason="")
        engine.say_draining(False)
        engine.sharding.drain(False)
        engine.sharding.step_up()
        engine.emit("node.undrained", f"node/{engine.me.name}", "takes part again; what has moved stays")
        engine.world.wake()
        return ""

    def tick(self, now_ns: int) -> None:
        drain = self._drain
        if drain is None:
            return
        while True:
            begun = drain.begin(self._record.holds(drain), now_ns)
            if begun is not None:
                self._enter(begun)
            step = drain.current
            if step is None or not drain.end(blockers(self._engine, step, now_ns), now_ns):
                break
        if now_ns - self._said_ns >= drain_report_ms * MS:
            self._said_ns = now_ns
            self._say(drain)
        self._record.follow(drain, now_ns, self._progress(drain, now_ns))
        if drain.current is None:
            self._engine.exit(Exit("drained" if drain.leaves else "stopped", overran=not drain.complete))

    @property
    def overran(self) -> bool:
        """Whether a phase was left behind: what it waited for is recovered as after a crash."""
        return self._drain is not None and not self._drain.complete

    def _progress(self, drain: Drain, now_ns: int) -> DrainProgress:
        sharding = self._engine.sharding
        moved = max(0, self._shards_at_start - sharding.region.held())
        return DrainProgress(drain.phases(now_ns), moved, sharding.lost, drain.sequence)

    def _say(self, drain: Drain) -> None:
        """The others forget a drain that they do not hear of."""
        if drain.leaves:
            self._engine.say_draining(True, closing=drain.before(Step.SINGLETONS))

    def _enter(self, step: Step) -> None:
        engine = self._engine
        faultpoints.reach(f"drain.{step}")
        if step is Step.SINGLETONS:
            engine.say_draining(True)
        elif step is Step.SHARDS and somebody_takes_shards(engine):
            engine.sharding.drain(True)
        elif step is Step.ASKS:  # only now: while nobody else could coordinate, its own shards wanted it
            engine.sharding.step_down()
        elif step is Step.LEAVE:
            engine.leave()

    # ---- services

    def _begin_wanted(self, envelope: Envelope) -> None:
        message = envelope.message
        engine = self._engine
        if not isinstance(message, BeginDrain) or message.incarnation != engine.me.incarnation:
            return
        if message.operation in self._cancelled:
            # Sent before it knew, or it missed the answer: an operation asks until it knows.
            engine.system.tell(EntityRef("operation", message.operation), DrainCancelled())
            return
        self.begin(moves=True, operation=message.operation)
        if self._drain is not None and message.operation != self.operation:
            # Started while this node could not be asked for the name: it follows, too.
            now_ns = engine.world.clock.mono_ns()
            engine.system.tell(EntityRef("operation", message.operation), self._progress(self._drain, now_ns))

    def _name_wanted(self, envelope: Envelope) -> None:
        self._engine.reply(envelope, DrainName(self.name(), self.active))

    def _cancel_wanted(self, envelope: Envelope) -> None:
        message = envelope.message
        if isinstance(message, CancelDrain) and message.incarnation == self._engine.me.incarnation:
            drain, now_ns = self._drain, self._engine.world.clock.mono_ns()
            progress = self._progress(drain, now_ns) if drain is not None else None
            self._engine.reply(envelope, DrainCancelled(self.cancel(), progress))
