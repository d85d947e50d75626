"""One heap for everything that happens at a time: keyed timers of cells, deadlines of asks, back-offs, idle checks.

Cancelling marks an entry; it leaves the heap when its time comes, or when marked entries outnumber the others.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Protocol

_COMPACT_FROM = 256


class Due(Protocol):
    """Something with a time. `live` is cleared by cancelling."""

    live: bool

    def fire(self, now_ns: int) -> None: ...


class Timers:
    """`on_earlier` is called when a new entry is due before all others."""

    __slots__ = ("_dead", "_heap", "_on_earlier", "_sequence")

    def __init__(self, on_earlier: Callable[[], None]) -> None:
        self._heap: list[tuple[int, int, Due]] = []
        self._sequence = 0
        self._dead = 0
        self._on_earlier = on_earlier

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, when_ns: int, due: Due) -> None:
        """Calls `due.fire` at `when_ns` unless it is cancelled; entries of one instant fire in the order of adding."""
        self._sequence += 1
        entry = (when_ns, self._sequence, due)
        heapq.heappush(self._heap, entry)
        if self._heap[0] is entry:
            self._on_earlier()

    def cancel(self, due: Due) -> None:
        """It will not fire; idempotent."""
        if not due.live:
            return
        due.live = False
        self._dead += 1
        if self._dead >= _COMPACT_FROM and self._dead * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].live]
            heapq.heapify(self._heap)
            self._dead = 0

    def fire_due(self, now_ns: int) -> None:
        """Fires all entries that are due. What they add for the same instant fires in the next call."""
        last = self._sequence
        held: list[tuple[int, int, Due]] = []
        while self._heap and self._heap[0][0] <= now_ns:
            entry = heapq.heappop(self._heap)
            if not entry[2].live:
                self._dead -= 1
            elif entry[1] > last:
                held.append(entry)
            else:
                entry[2].fire(now_ns)
        for entry in held:
            heapq.heappush(self._heap, entry)

    def next_ns(self) -> int | None:
        """When the next live entry is due."""
        while self._heap and not self._heap[0][2].live:
            heapq.heappop(self._heap)
            self._dead -= 1
        return self._heap[0][0] if self._heap else None


class Call:
    """A plain call at a time."""

    __slots__ = ("_fn", "live")

    def __init__(self, fn: Callable[[int], None]) -> None:
        self.live = True
        self._fn = fn

    def fire(self, now_ns: int) -> None:
        self.live = False
        self._fn(now_ns)
