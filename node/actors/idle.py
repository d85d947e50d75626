"""Passivation of entities that nobody uses: one entry in the timer heap per cell, moved only when it comes due."""

from __future__ import annotations

from collections.abc import Callable

from node.actors.cell import Cell, Phase
from node.actors.kernel import Kernel
from node.core.clock import MS


class IdleCheck:
    """Looks at a cell when it may have been idle long enough; using the cell costs it nothing."""

    __slots__ = ("_cell", "_kernel", "_settle", "live")

    def __init__(self, kernel: Kernel, cell: Cell, settle: Callable[[Cell], None]) -> None:
        self.live = True
        self._kernel = kernel
        self._cell = cell
        self._settle = settle
        kernel.timers.add(cell.used_ns + cell.type.idle_ms * MS, self)

    def fire(self, now_ns: int) -> None:
        """Passivate, or look again when it could be idle at the earliest."""
        cell = self._cell
        idle_ns = cell.type.idle_ms * MS
        due_ns = cell.used_ns + idle_ns
        if cell.phase is Phase.RUNNING and cell.quiet and due_ns <= now_ns:
            cell.idle = None
            cell.leaving = True
            self._settle(cell)
        else:
            self._kernel.timers.add(due_ns if due_ns > now_ns else now_ns + idle_ns, self)
