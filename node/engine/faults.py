"""The faults that hold at this node now: each has a code, an object, words and the time since which it holds."""

from __future__ import annotations

from node.core.clock import Clock
from node.engine.messages import FaultReport


class Faults:
    """A fault is put as often as it is seen and keeps its first time; empty words clear it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[tuple[str, str], FaultReport] = {}

    def put(self, code: str, about: str, text: str) -> None:
        known = self._held.get((code, about))
        if not text:
            self.clear(code, about)
        elif known is None or known.message != text:
            since_ms = known.since_ms if known else self._clock.wall_ms()
            self._held[(code, about)] = FaultReport(code, about, text, since_ms)

    def clear(self, code: str, about: str) -> None:
        self._held.pop((code, about), None)

    def all(self) -> tuple[FaultReport, ...]:
        return tuple(self._held[key] for key in sorted(self._held))
