"""The state store that all hosts share: the reference store behind seeded latency. It survives every crash.

Requests of one process are applied and answered in order. What a checker needs is written down when the store has
accepted it, whatever becomes of the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from node.core.clock import MS, US
from node.sim import history as h
from node.sim.faults import Knobs
from node.sim.points import Fate, Points
from node.sim.recorder import Recorder
from node.sim.scheduler import Scheduler
from node.sim.trace import Trace
from node.store.port import Answer, Fenced, Request, StateChange, StateStore, StoreFailed

if TYPE_CHECKING:
    from node.sim.process import Process

AWAY_MS: Final = 100
# The steps of a transaction before it is durable, and whether it is open there.
_BEFORE_COMMIT: Final = (
    ("store.before_begin", False),
    ("store.in_transaction", True),
    ("store.before_commit", True),
)


class SimStore:
    """`record` is called with each accepted change, in commit order."""

    def __init__(
        self,
        scheduler: Scheduler,
        trace: Trace,
        knobs: Knobs,
        store: StateStore,
        record: Callable[[h.Event], None],
        points: Points,
    ) -> None:
        self._scheduler = scheduler
        self._trace = trace
        self._knobs = knobs
        self._store = store
        self.recorder = Recorder(trace, record)
        self._points = points
        self._holder: Process | None = None  # was stopped inside a transaction
        self._waiting: list[tuple[Process, Request, Callable[[Answer], None]]] = []
        self._rng = scheduler.derive("store")
        self._calm = False
        self.requests = 0
        self.failures = 0
        self.slow_ms = 0  # what each request takes longer
        self.away: set[str] = set()  # hosts that can't reach it

    def heal(self) -> None:
        """No failures and no slow requests from now on, and within everybody's reach."""
        self._calm = True
        self.away.clear()
        self._release()

    def now(self, request: Request) -> Answer:
        """Ask outside of time: for checkers at the end."""
        return self._store.apply([request])[0]

    def submit(self, process: Process, request: Request, done: Callable[[Answer], None]) -> None:
        """`Ports.submit` for one process."""
        self.requests += 1
        at_ns = max(self._scheduler.now_ns + self._delay_ns(), process.applied_ns + 1)
        process.applied_ns = at_ns
        self._scheduler.at(at_ns, self._apply, process, request, done)

    def _delay_ns(self) -> int:
        knobs, rng = self._knobs, self._rng
        if self.slow_ms:
            return int((0.5 + rng.random()) * self.slow_ms * MS)
        if not self._calm and knobs.store_slow_ratio and rng.random() < knobs.store_slow_ratio:
            return rng.randrange(knobs.store_slow_ms * MS)
        return int((0.5 + rng.random()) * knobs.store_us * US)

    def _apply(self, process: Process, request: Request, done: Callable[[Answer], None]) -> None:
        knobs, rng = self._knobs, self._rng
        if not process.alive and rng.random() >= knobs.orphan_ratio:
            return
        if process.paused and knobs.embedded:
            process.run(self._apply, process, request, done)  # its thread stands still as well
            return
        if self._blocked():
            self._waiting.append((process, request, done))
            return
        if process.host.name in self.away:
            self.failures += 1
            self._unreached(process, done, StoreFailed("E-STORE", "no way to the store", definite=True))
            return
        failing = not self._calm and knobs.store_failure_ratio and process.booted
        if failing and rng.random() < knobs.store_failure_ratio:
            definite, applied = rng.random() < 0.5, rng.random() < 0.5
            if applied and not definite:
                self.recorder.applied(self._scheduler.now_ns, process.me, request, self._store.apply([request])[0])
            self.failures += 1
            self._trace.add(f"{process.me} store {type(request).__name__} failed")
            self._answer(process, request, done, StoreFailed("E-STORE", "simulated", definite))
            return
        self._transact(process, request, done, 0)

    def _unreached(self, process: Process, done: Callable[[Answer], None], answer: StoreFailed) -> None:
        # The driver's patience: an answer at once would let a node ask thousands of times a second.
        self._scheduler.after(AWAY_MS * MS, process.run, done, answer)

    # ---- one transaction, step by step

    def _blocked(self) -> bool:
        """Whether a process of this machine is stopped inside its transaction: every other writer waits for it."""
        holder = self._holder
        if holder is not None and holder.alive and holder.paused and not self._calm:
            return True
        self._holder = None
        return False

    def _transact(self, process: Process, request: Request, done: Callable[[Answer], None], step: int) -> None:
        """From a step on; a process may die or be stopped at each. One that is dead already is past caring: its
        request is under way in the store."""
        while step < len(_BEFORE_COMMIT) and process.alive:
            point, open_transaction = _BEFORE_COMMIT[step]
            step += 1
            match self._points.reach(process, point):
                case Fate.DIES:
                    process.die()
                    return  # nothing was committed, and an open transaction is rolled back
                case Fate.STOPS:
                    if open_transaction and self._knobs.embedded:
                        self._holder = process
                        process.until_killed(self._release)
                    process.run(self._resume, process, request, done, step)
                    return
                case Fate.GOES_ON:
                    pass
        answer = self._store.apply([request])[0]
        self.recorder.applied(self._scheduler.now_ns, process.me, request, answer)
        if process.alive and self._points.reach(process, "store.after_commit") is Fate.DIES:
            process.die()
            return
        self._answer(process, request, done, answer)

    def _resume(self, process: Process, request: Request, done: Callable[[Answer], None], step: int) -> None:
        self._transact(process, request, done, step)
        self._release()

    def _release(self) -> None:
        """Whoever held the store has gone on, or is dead."""
        if self._blocked():
            return
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            self._scheduler.after(0, self._apply, *each)

    def _answer(self, process: Process, request: Request, done: Callable[[Answer], None], answer: Answer) -> None:
        at_ns = max(self._scheduler.now_ns + self._knobs.store_us * US // 4, process.answered_ns + 1)
        process.answered_ns = at_ns
        self._scheduler.at(at_ns, process.run, self._answered, process, request, done, answer)

    def _answered(self, process: Process, request: Request, done: Callable[[Answer], None], answer: Answer) -> None:
        if isinstance(request, StateChange) and isinstance(answer, Fenced):
            process.once_at_rest(partial(self.recorder.refused_to, process.me, request))
        done(answer)
        if self._points.reach(process, "store.after_answer") is Fate.DIES:
            process.die()
