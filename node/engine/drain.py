"""Draining one node: the phases of `cluster.md` section 5, in order, each with its share of one deadline.

The machine only decides. Its driver owes it, at each tick: whether the current phase's beginning is on record
(`begin`), then what keeps that phase from ending (`end`), until the latter answers False. A phase begins once it is on
record, so that after a crash the record names the phase that was under way; a record that can't be had is not waited
for longer than `drain_record_ms_max`. A phase that overruns its share is marked so and left behind: a node that was
told to stop always stops.

```
readiness ▶ ingestion ▶ singletons ▶ shards ▶ asks ▶ replicas ▶ outboxes ▶ flush ▶ leave
```
"""

from __future__ import annotations

import enum

from node.core import limits
from node.core.clock import MS
from node.flows.messages import Phase


class Step(enum.StrEnum):
    """The phases, in order. The values are what operators read."""

    READINESS = "readiness"
    INGESTION = "ingestion"
    SINGLETONS = "singletons"
    SHARDS = "shards"
    ASKS = "asks"
    REPLICAS = "replicas"
    OUTBOXES = "outboxes"
    FLUSH = "flush"
    LEAVE = "leave"


ALL = tuple(Step)
# Stopping with the whole cluster: nothing is handed to anybody, since everybody goes.
WITHOUT_MOVES = (Step.READINESS, Step.INGESTION, Step.ASKS, Step.REPLICAS, Step.OUTBOXES, Step.FLUSH)
# Not up yet: nothing is here that could be handed over, but the others may know of it already.
JOINING = (Step.READINESS, Step.FLUSH, Step.LEAVE)
# A second signal before anything: only what must not be lost.
FLUSH_ONLY = (Step.FLUSH,)
# Phases from which there is no way back: what was flushed may be written by others now.
FINAL = (Step.FLUSH, Step.LEAVE)
SHARES = {
    Step.READINESS: 0.02,
    Step.INGESTION: 0.08,
    Step.SINGLETONS: 0.1,
    Step.SHARDS: 0.5,
    Step.ASKS: 0.08,
    Step.REPLICAS: 0.08,
    Step.OUTBOXES: 0.04,
    Step.FLUSH: 0.05,
    Step.LEAVE: 0.05,
}


class Drain:
    """One drain. `current` is the phase that runs or is about to, None when all are over."""

    def __init__(self, steps: tuple[Step, ...], deadline_ms: int, now_ns: int) -> None:
        self._steps = steps
        self._deadline_ms = deadline_ms
        self._at = 0
        self._begun = False
        self._entered_ns = now_ns
        self._history: list[Phase] = []
        self._blockers: tuple[str, ...] = ()

    @property
    def current(self) -> Step | None:
        return self._steps[self._at] if self._at < len(self._steps) else None

    @property
    def leaves(self) -> bool:
        """Whether it ends with leaving the cluster."""
        return Step.LEAVE in self._steps

    @property
    def sequence(self) -> int:
        """Grows with each phase that ends; later reports have greater ones."""
        return self._at

    @property
    def begun(self) -> bool:
        """Whether the current phase has begun, rather than waiting to be on record."""
        return self._begun

    def before(self, step: Step) -> bool:
        """Whether the phase has still to begin."""
        at = self._steps.index(step) if step in self._steps else len(self._steps)
        return self._at < at or (self._at == at and not self._begun)

    @property
    def complete(self) -> bool:
        """Whether every phase that is over came to its own end."""
        return all(phase.state == "done" for phase in self._history)

    def begin(self, recorded: bool, now_ns: int) -> Step | None:
        """The current phase when it begins now; None when it has begun before, or must be on record first."""
        step = self.current
        if step is None or self._begun:
            return None
        wait_ns = min(limits.drain_record_ms_max * MS, self._share_ns(step))
        if not recorded and now_ns - self._entered_ns < wait_ns:
            return None
        self._begun = True
        return step

    def end(self, blockers: tuple[str, ...], now_ns: int) -> bool:
        """Whether the current phase, which has begun, is over now. Leaving ends with the process, not here."""
        step = self.current
        if step is None or not self._begun or step is Step.LEAVE:
            return False
        self._blockers = blockers
        if blockers and now_ns - self._entered_ns < self._share_ns(step):
            return False
        self._finish("overran" if blockers else "done", now_ns)
        return True

    def hurry(self, now_ns: int) -> None:
        """Skip to the flush: what was not handed over is recovered as after a crash."""
        while self.current not in (*FINAL, None):
            self._finish("skipped", now_ns)

    def phases(self, now_ns: int) -> tuple[Phase, ...]:
        """All phases with their states, for the operation and for a person."""
        rows = list(self._history)
        for step in self._steps[self._at :]:
            running = step is self.current
            rows.append(
                Phase(
                    step.value,
                    "running" if running else "waiting",
                    (now_ns - self._entered_ns) // MS if running else 0,
                    "",
                    self._blockers if running else (),
                )
            )
        return tuple(rows)

    def _share_ns(self, step: Step) -> int:
        return int(self._deadline_ms * SHARES[step]) * MS

    def _finish(self, state: str, now_ns: int) -> None:
        step = self._steps[self._at]
        self._history.append(
            Phase(step.value, state, (now_ns - self._entered_ns) // MS, "", self._blockers if state != "done" else ())
        )
        self._at += 1
        self._begun = False
        self._entered_ns = now_ns
        self._blockers = ()
