"""Virtual time: a heap of `(time, tie, what)`, and the one seed from which every draw of a run comes.

Two things due at the same instant happen in the order in which they were asked for, never by hash or address.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any

from node.core.clock import MS

START_WALL_MS = 1_800_000_000_000


class Scheduler:
    """`now_ns` is the world's true time, nanoseconds from 0, where a run begins unless it says otherwise; hosts see it
    through clocks of their own."""

    __slots__ = ("_heap", "_tie", "now_ns", "seed", "steps")

    def __init__(self, seed: int, now_ns: int = 0) -> None:
        self.seed = seed
        self.now_ns = now_ns
        self.steps = 0
        self._tie = 0
        self._heap: list[tuple[int, int, Callable[..., object], tuple[Any, ...]]] = []

    def derive(self, name: str) -> random.Random:
        """A generator of its own for one part of the world, so that a draw more in one changes no other."""
        return random.Random(f"{self.seed}/{name}")  # noqa: S311 - reproducible is what it is for

    def at(self, time_ns: int, what: Callable[..., object], *args: Any) -> None:
        """Call at a time; one that has passed means next."""
        self._tie += 1
        heapq.heappush(self._heap, (time_ns if time_ns > self.now_ns else self.now_ns, self._tie, what, args))

    def after(self, delay_ns: int, what: Callable[..., object], *args: Any) -> None:
        self._tie += 1
        heapq.heappush(self._heap, (self.now_ns + delay_ns, self._tie, what, args))

    def run_until(self, end_ns: int, stop: Callable[[], bool]) -> None:
        """Let time pass up to `end_ns`, or until `stop` says so between two events."""
        heap, pop = self._heap, heapq.heappop
        while heap and heap[0][0] <= end_ns:
            self.now_ns, _, what, args = pop(heap)
            self.steps += 1
            what(*args)
            if stop():
                return
        self.now_ns = end_ns


class HostClock:
    """One host's clocks: monotonic from another start than its neighbours' and at a slightly other speed (`drift_ppm`,
    parts in a million), wall time off by some milliseconds."""

    __slots__ = ("_drift_ppm", "_mono_offset_ns", "_scheduler", "_skew_ms", "_stepped_ms")

    def __init__(
        self, scheduler: Scheduler, mono_offset_ns: int = 0, wall_skew_ms: int = 0, drift_ppm: int = 0
    ) -> None:
        self._scheduler = scheduler
        self._mono_offset_ns = mono_offset_ns
        self._skew_ms = START_WALL_MS + wall_skew_ms
        self._stepped_ms = 0
        self._drift_ppm = drift_ppm

    def mono_ns(self) -> int:
        now_ns = self._scheduler.now_ns
        return now_ns + now_ns * self._drift_ppm // 1_000_000 + self._mono_offset_ns

    def wall_ms(self) -> int:
        # Time servers keep the wall clock from drifting; what they can't help is the skew.
        return self._scheduler.now_ns // MS + self._skew_ms + self._stepped_ms

    def world_ns(self, mono_ns: int) -> int:
        """The true time of one of this host's instants, never early."""
        return -(-(mono_ns - self._mono_offset_ns) * 1_000_000 // (1_000_000 + self._drift_ppm))

    def step_wall_ms(self, delta_ms: int) -> None:
        """The wall clock jumps, as by an administrator or a bad time server."""
        self._stepped_ms += delta_ms

    def set_right(self) -> None:
        """All jumps are taken back."""
        self._stepped_ms = 0
