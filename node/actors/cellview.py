"""One cell as read models and operators may see it."""

from __future__ import annotations

from typing import NamedTuple

from node.actors.actor import Actor
from node.actors.cell import Cell, Phase
from node.core.ids import EntityRef


class CellView(NamedTuple):
    """One cell as a read model may see it. `actor` is None unless it runs; `asks_open` counts asks and piped calls of
    its own, `failures` those that still count."""

    ref: EntityRef
    actor: Actor | None
    depth: int
    phase: Phase
    epoch: int
    asks_open: int
    revision: int
    used_ns: int
    failures: int


def view_of(cell: Cell) -> CellView:
    """Of this moment; not kept beyond the call."""
    failures = cell.extras.failures if cell.extras is not None else None
    return CellView(
        cell.ref,
        cell.actor,
        cell.depth,
        cell.phase,
        cell.shard.epoch,
        cell.open,
        cell.revision,
        cell.used_ns,
        len(failures) if failures else 0,
    )
