"""Crash points in a simulation: a chosen node dies, or stops for a while, at the n-th reaching of a chosen point.

`node.core.faultpoints` calls this module's hook with the name of a point; whose code that was, `current` says. The
points of the state store are reached by the simulated store itself, at the same steps as the adapters'.
"""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from node.core import faultpoints

if TYPE_CHECKING:
    from node.sim.process import Process


class Fate(enum.Enum):
    """What becomes of the process that reached a point."""

    GOES_ON = "goes on"
    DIES = "dies"
    STOPS = "stops"


class NodeDiedError(BaseException):
    """Unwinds a handler whose process died in the middle of it. No handler may catch it: it is no `Exception`."""


@dataclass(slots=True)
class Trap:
    """Springs at the `left`-th reaching of `point` by one of `hosts` from now on."""

    point: str
    hosts: frozenset[str]
    left: int
    fate: Fate
    for_ms: int


class Points:
    """All traps of one run. `reached` and `fired` count by point."""

    def __init__(self) -> None:
        self.current: Process | None = None
        self.reached: Counter[str] = Counter()
        self.fired: Counter[str] = Counter()
        self._traps: list[Trap] = []
        self._healed = False

    def arm(self, trap: Trap) -> None:
        if not self._healed:
            self._traps.append(trap)

    def heal(self) -> None:
        """Nothing springs any more; reaching is still counted."""
        self._healed = True
        self._traps.clear()

    def __enter__(self) -> Points:
        faultpoints.arm(self._hook)
        return self

    def __exit__(self, *_: object) -> None:
        faultpoints.arm(None)

    def _hook(self, point: str) -> None:
        """A point in the code of the process that runs now."""
        process = self.current
        if process is not None and self.reach(process, point) is Fate.DIES:
            raise NodeDiedError(point)

    def reach(self, process: Process, point: str) -> Fate:
        """A process is at a point; one that is to stop has been stopped when this returns, one that is to die dies
        by its caller."""
        self.reached[point] += 1
        for trap in self._traps:
            if trap.point != point or process.host.name not in trap.hosts:
                continue
            trap.left -= 1
            if trap.left > 0:
                continue
            self._traps.remove(trap)
            self.fired[point] += 1
            process.host.trace.add(f"{process.me} {trap.fate.value} at {point}")
            if trap.fate is Fate.STOPS:
                process.host.pause_for(trap.for_ms)
            else:
                process.doomed_ms = trap.for_ms
            return trap.fate
        return Fate.GOES_ON
