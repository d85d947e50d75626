"""What is under way in a node's cells, by name: who waits for a drain or a hand-off reads it here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from node.actors.cell import Cell
from node.actors.kernel import Kernel
from node.core.ids import EntityRef


class Unfinished(NamedTuple):
    """A cell that can't go yet. `stopping`: its shard is being handed over; `writes`: a write of it is under way;
    `why` in words."""

    ref: EntityRef
    stopping: bool
    writes: bool
    why: str


def unfinished(kernel: Kernel) -> Iterator[Unfinished]:
    """Every cell with something under way, in the order of their start; read only."""
    for cell in kernel.cells.values():
        why = _why(cell)
        if why:
            yield Unfinished(cell.ref, cell.shard.stopping, cell.writer is not None, why)


def _why(cell: Cell) -> str:
    if cell.writer is not None:
        return "a write is under way"
    if cell.extras is not None and cell.extras.kept:
        return f"{len(cell.extras.kept)} replies are owed"
    if cell.open:
        return f"{cell.open} answers are awaited"
    if cell.mailbox:
        return f"{len(cell.mailbox)} messages wait"
    return ""
