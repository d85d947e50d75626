"""Everything that happens at a time: keyed timers of cells, deadlines of asks, back-offs, idle checks.

One heap holds what may come at any time. Cancelling marks an entry; it leaves the heap when its time comes, or when
marked entries outnumber the others.

Deadlines are many, alike and nearly always withdrawn: those with the same delay stand in one line, for they come due in
the order in which they were added. Only one that is due and was not withdrawn ever gets into the heap.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Protocol

_COMPACT_FROM = 256
_LINES_MAX = 16  # all are looked at in each turn
_LINE_MAX = 4_096  # behind one that waits for long


class Due(Protocol):
    """Something with a time. `live` is cleared by cancelling."""

    live: bool

    def fire(self, now_ns: int) -> None: ...


_Entry = tuple[int, int, Due]


class Timers:
    """`on_earlier` is called when a new entry may be due before all others."""

    __slots__ = ("_cancelled", "_heap", "_lines", "_on_earlier", "_sequence")

    def __init__(self, on_earlier: Callable[[], None]) -> None:
        self._heap: list[_Entry] = []
        self._lines: dict[int, deque[_Entry]] = {}  # by delay
        self._sequence = 0
        self._cancelled = 0  # in the heap, since it was last rid of such
        self._on_earlier = on_earlier

    def __len__(self) -> int:
        return len(self._heap) + sum(map(len, self._lines.values()))

    def add(self, when_ns: int, due: Due) -> None:
        """Calls `due.fire` at `when_ns` unless it is cancelled; entries of one instant fire in the order of adding."""
        self._sequence += 1
        entry = (when_ns, self._sequence, due)
        heapq.heappush(self._heap, entry)
        if self._heap[0] is entry:
            self._on_earlier()

    def add_after(self, now_ns: int, delay_ns: int, due: Due) -> None:
        """`add` of one among many with this delay; `now_ns` never goes back. It is withdrawn by clearing `live`."""
        line = self._lines.get(delay_ns)
        if line is None and len(self._lines) < _LINES_MAX:
            line = self._lines[delay_ns] = deque()
        if line is None or len(line) >= _LINE_MAX:
            self.add(now_ns + delay_ns, due)
            return
        while line and not line[0][2].live:
            line.popleft()
        self._sequence += 1
        line.append((now_ns + delay_ns, self._sequence, due))
        if len(line) == 1:
            self._on_earlier()

    def cancel(self, due: Due) -> None:
        """What was added will not fire; idempotent."""
        if not due.live:
            return
        due.live = False
        self._cancelled += 1
        if self._cancelled >= _COMPACT_FROM and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].live]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def fire_due(self, now_ns: int) -> None:
        """Fires all entries that are due. What they add for the same instant fires in the next call."""
        last = self._sequence
        held: list[_Entry] = []
        for line in self._lines.values():
            while line and (line[0][0] <= now_ns or not line[0][2].live):
                entry = line.popleft()
                if entry[2].live:
                    heapq.heappush(self._heap, entry)
        while self._heap and self._heap[0][0] <= now_ns:
            entry = heapq.heappop(self._heap)
            if not entry[2].live:
                continue
            if entry[1] > last:
                held.append(entry)
            else:
                entry[2].fire(now_ns)
        for entry in held:
            heapq.heappush(self._heap, entry)

    def next_ns(self) -> int | None:
        """When the next live entry is due."""
        while self._heap and not self._heap[0][2].live:
            heapq.heappop(self._heap)
        first = self._heap[0][0] if self._heap else None
        for delay_ns, line in list(self._lines.items()):
            while line and not line[0][2].live:
                line.popleft()
            if not line:
                del self._lines[delay_ns]
            elif first is None or line[0][0] < first:
                first = line[0][0]
        return first


class Call:
    """A plain call at a time."""

    __slots__ = ("_fn", "live")

    def __init__(self, fn: Callable[[int], None]) -> None:
        self.live = True
        self._fn = fn

    def fire(self, now_ns: int) -> None:
        self.live = False
        self._fn(now_ns)
