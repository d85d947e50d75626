"""Draining one node: the phases of `cluster.md` section 5, in order, each with its share of the deadline.

The machine only decides; its driver does what the effects say and answers with facts at each tick. A phase that
overruns its share is marked so and left behind, so that a node that was told to stop always stops.

```
readiness ▶ ingestion ▶ singletons ▶ shards ▶ asks ▶ replicas ▶ outboxes ▶ flush ▶ leave
```
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

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
# A second signal, or an operator who can't wait: only what must not be lost.
FLUSH_ONLY = (Step.FLUSH,)
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


@dataclass(frozen=True, slots=True)
class Facts:
    """What keeps each phase from ending, as counts of this node."""

    executing: int = 0
    singletons: int = 0
    shards: int = 0
    buffered: int = 0
    asks: int = 0
    unacknowledged: int = 0
    writes: int = 0
    uncommitted: int = 0

    def blockers(self, step: Step) -> tuple[str, ...]:
        """Why a phase has not ended, in words; empty when it may end."""
        waiting = {
            Step.INGESTION: ((self.executing, "classifications running"),),
            Step.SINGLETONS: ((self.singletons, "singletons here"),),
            Step.SHARDS: ((self.shards, "shards here"), (self.buffered, "messages buffered")),
            Step.ASKS: ((self.asks, "asks in flight"),),
            Step.REPLICAS: ((self.unacknowledged, "entries unacknowledged"),),
            Step.OUTBOXES: ((self.writes, "writes under way"),),
            Step.FLUSH: ((self.uncommitted, "entries uncommitted"), (self.writes, "writes under way")),
        }
        return tuple(f"{count} {what}" for count, what in waiting.get(step, ()) if count)


class Drain:
    """One drain. `current` is the phase that runs, None when all are over."""

    def __init__(self, steps: tuple[Step, ...], deadline_ms: int, now_ns: int) -> None:
        self._steps = steps
        self._deadline_ms = deadline_ms
        self._at = 0
        self._entered_ns = now_ns
        self._history: list[Phase] = []
        self._blockers: tuple[str, ...] = ()

    @property
    def current(self) -> Step | None:
        return self._steps[self._at] if self._at < len(self._steps) else None

    def hurry(self, now_ns: int) -> None:
        """Skip to the flush: what was not handed over is recovered as after a crash."""
        while self.current not in (Step.FLUSH, None):
            self._finish("overran", now_ns)

    def advance(self, facts: Facts, now_ns: int) -> Step | None:
        """The phase that has just begun, when one ended; call until it answers None."""
        step = self.current
        if step is None or step is Step.LEAVE:
            return None
        self._blockers = facts.blockers(step)
        share_ns = int(self._deadline_ms * SHARES[step]) * MS
        if self._blockers and now_ns - self._entered_ns < share_ns:
            return None
        self._finish("overran" if self._blockers else "done", now_ns)
        return self.current

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

    def _finish(self, state: str, now_ns: int) -> None:
        step = self._steps[self._at]
        self._history.append(
            Phase(step.value, state, (now_ns - self._entered_ns) // MS, "", self._blockers if state != "done" else ())
        )
        self._at += 1
        self._entered_ns = now_ns
        self._blockers = ()
