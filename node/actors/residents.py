"""Which entities stay in memory: passivation by idleness, and by least-recent use above a limit.

Using a cell costs it nothing here: the dispatcher stamps `used_ns`, and a cell is looked at when its turn comes, by
the stamp. Two structures over the same cells, 8 bytes a cell each:

- *idle*: slots of time; a cell waits in the slot in which it could be idle at the earliest, and is filed anew if it
  was used since. It passivates at most a sixteenth of its idle time late.
- *recency*: a segmented LRU. A new cell is on *probation*, first in, first out; one that was used again, more than
  `correlated_use_ms` after it came (uses in one breath are one use), is *protected*, in up to `protected_ratio` of the
  room. Room is made among those on probation first, so that a replay or a crawl that touches everything once
  evicts itself and not what people use. What is declared `background` does not stamp.

Only types with an `idle_ms` take part: the others have not said that they may be stopped. A cell with a timer is not
at rest: an operation that polls, a confirmation that is tried again. A quarantined one takes no room: it holds no
actor, can't be stopped before an operator looks, and would evict those that work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from node.actors.cell import Cell, Phase
from node.actors.kernel import Kernel
from node.actors.timers import Call
from node.core import limits
from node.core.clock import MS
from node.core.hashing import forget_names

K = TypeVar("K")
V = TypeVar("V")
_GRAINS = 16
_COMPACT_FROM = 256


class Residents:
    """`leave(cell)` passivates a cell, and tells whether it is gone already."""

    def __init__(self, kernel: Kernel, residents_max: int, leave: Callable[[Cell], bool]) -> None:
        self._kernel = kernel
        self._max = residents_max
        self._protected_max = int(residents_max * limits.protected_ratio)
        self._leave = leave
        self._slots: dict[int, list[Cell]] = {}
        self._probation: deque[Cell] = deque()
        self._protected: deque[Cell] = deque()
        self._parked: set[Cell] = set()  # quarantined
        self._gone = 0  # cells that are gone or parked, and still filed
        self._compacting = False
        self._retrying = False
        self.count = 0

    def admit(self, cell: Cell) -> None:
        """A new cell, or one that was released; room is made for it first."""
        self.count += 1
        self._parked.discard(cell)
        for _ in range(2):  # ahead of need, so that making room finds those who may go at the front
            if self._probation and self._used_again(self._probation[0]):
                self._promote(self._probation.popleft())
        if self.count > self._max:
            self._make_room()
        self._probation.append(cell)
        self._file(cell)

    def park(self, cell: Cell) -> None:
        """It is quarantined, until it is admitted again or gone."""
        self._left()
        self._parked.add(cell)

    def gone(self, cell: Cell) -> None:
        """One of the cells is gone."""
        if cell in self._parked:
            self._parked.discard(cell)
        else:
            self._left()

    def _left(self) -> None:
        self.count -= 1
        self._gone += 1
        if self._gone >= _COMPACT_FROM and self._gone > self.count and not self._compacting:
            self._compacting = True
            self._kernel.later(self._compact)  # not while a handler's context holds the table of cells

    # ---- idleness

    def _file(self, cell: Cell) -> None:
        idle_ns = cell.type.idle_ms * MS
        grain_ns = max(MS, idle_ns // _GRAINS)
        slot_ns = -(-(cell.used_ns + idle_ns) // grain_ns) * grain_ns
        found = self._slots.get(slot_ns)
        if found is None:
            self._slots[slot_ns] = [cell]
            self._kernel.timers.add(slot_ns, Call(lambda now_ns: self._look(slot_ns, now_ns)))
        else:
            found.append(cell)

    def _look(self, slot_ns: int, now_ns: int) -> None:
        for cell in self._slots.pop(slot_ns):
            if not _takes_part(cell):
                continue
            if cell.used_ns + cell.type.idle_ms * MS > now_ns:
                self._file(cell)
            elif not cell.at_rest or not self._leave(cell):
                self._file_again(cell, now_ns)

    def _file_again(self, cell: Cell, now_ns: int) -> None:
        """A busy one: it is looked at after another idle time."""
        before, cell.used_ns = cell.used_ns, now_ns
        self._file(cell)
        cell.used_ns = before

    # ---- recency

    def _make_room(self) -> None:
        """Evict until the count is within the limit; what is busy is passed over, so the search is bounded."""
        self._kernel.count("evictions_sought")
        for _ in range(limits.evict_looks_max):
            if self.count <= self._max:
                return
            if self._probation:
                self._look_at_probation(self._probation.popleft())
            elif self._protected:
                self._look_at_protected(self._protected.popleft())
        if self.count > self._max and not self._retrying:
            self._kernel.count("over_limit")
            self._retrying = True
            again_ns = self._kernel.clock.mono_ns() + limits.evict_retry_ms * MS
            self._kernel.timers.add(again_ns, Call(lambda _: self._retry()))

    def _retry(self) -> None:
        self._retrying = False
        if self.count > self._max:
            self._make_room()

    def _look_at_probation(self, cell: Cell) -> None:
        if not _takes_part(cell):
            return
        if self._used_again(cell):
            self._promote(cell)
        elif not self._evict(cell):
            self._probation.append(cell)

    def _used_again(self, cell: Cell) -> bool:
        return cell.used_ns - cell.filed_ns > limits.correlated_use_ms * MS and _takes_part(cell)

    def _promote(self, cell: Cell) -> None:
        cell.filed_ns = cell.used_ns
        self._protected.append(cell)
        if len(self._protected) > self._protected_max:
            self._look_at_protected(self._protected.popleft())

    def _look_at_protected(self, cell: Cell) -> None:
        """Its oldest goes back on probation, unless it was used since."""
        if not _takes_part(cell):
            return
        if cell.used_ns > cell.filed_ns:
            self._protected.append(cell)
        else:
            self._probation.append(cell)
        cell.filed_ns = cell.used_ns

    def _evict(self, cell: Cell) -> bool:
        evicted = cell.at_rest and cell is not self._kernel.current and self._leave(cell)
        if evicted:
            self._kernel.count("evicted")
        return evicted

    # ---- memory

    def _compact(self) -> None:
        """Let go of cells that are gone, of the tables that were made for so many, and of what is scattered among
        them: one small object keeps a megabyte of the allocator's."""
        self._probation = deque(_living(self._probation))
        self._protected = deque(_living(self._protected))
        for slot_ns, cells in self._slots.items():
            self._slots[slot_ns] = list(_living(cells))
        self._gone = 0
        self._compacting = False
        kernel = self._kernel
        _shrink(kernel.cells)
        for shard in kernel.shards.values():
            _shrink(shard.cells)
        kernel.spare.clear()
        while len(kernel.flight) > limits.flight_turns_kept_min:
            kernel.flight.popleft()
        forget_names()
        kernel.ports.freed()


def _takes_part(cell: Cell) -> bool:
    return cell.phase is not Phase.GONE and cell.phase is not Phase.QUARANTINED


def _living(cells: Iterable[Cell]) -> Iterable[Cell]:
    return (cell for cell in cells if _takes_part(cell))


def _shrink(table: dict[K, V]) -> None:
    """A dict keeps the size that it once had. In place: it is held elsewhere, and a new one would lie behind all that
    was just let go of."""
    kept = tuple(table.items())
    table.clear()
    table.update(kept)
