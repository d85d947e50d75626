"""The Shards: a map, and a list; the entities of a shard."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from textual.widget import Widget

from promovolvectl.tui.actions import Action
from promovolvectl.tui.screens import changes_of_shards as changes
from promovolvectl.tui.screens.listing import Listing, bindings_of
from promovolvectl.tui.state import State
from promovolvectl.tui.tables import entities, shards
from promovolvectl.tui.views import View, Where
from promovolvectl.tui.widgets.shardgrid import ShardGrid

_MAP = "map"
_LIST = "list"
VIEWS: Final[tuple[View, ...]] = (
    View(_MAP, (shards.ALL, entities.OF_SHARD)),
    View(_LIST, (shards.ALL, entities.OF_SHARD)),
)
ACTIONS: Final[tuple[Action, ...]] = (
    Action("M", "move", "Move", "Move the shard to another node", changes.move, of=("shard",)),
    Action("N", "pin", "Pin", "Pin shards to a node, or unpin them", changes.pin, of=("shard",)),
    Action("B", "rebalance", "Rebalance", "Even the load out", changes.rebalance, whole="shards"),
    Action("R", "repair", "Repair", "Mend what the check finds", changes.repair, whole="shards"),
)


class Shards(Listing):
    """On the map the cursor goes over all 256 shards; the list can be sorted, filtered and marked."""

    NAME = "shards"
    VIEWS = VIEWS
    ACTIONS = ACTIONS
    BINDINGS = bindings_of(VIEWS, ACTIONS)
    CSS = """
    Shards #grid { display: none; height: 20; padding: 0 1; }
    Shards.mapped #grid { display: block; }
    Shards.mapped Table { display: none; }
    Shards.mapped #pane { height: 1fr; }
    Shards.medium.mapped #grid { height: 1fr; max-height: 18; min-height: 12; }
    Shards.medium.mapped #pane { height: 4; }
    Shards.small.mapped #grid { height: 1fr; }
    Shards.zoomed #grid { display: none; }
    Shards.medium.mapped.zoomed #pane { height: 1fr; }
    """

    def __init__(self) -> None:
        self.grid = ShardGrid()
        super().__init__()

    def lead(self) -> Iterable[Widget]:
        yield self.grid

    @property
    def mapped(self) -> bool:
        """Whether the map is what is seen."""
        return self.view.name == _MAP and not self.where

    @property
    def cursor(self) -> str:
        return str(self.grid.cursor) if self.mapped else super().cursor

    @property
    def rowless(self) -> bool:
        return not self.mapped and super().rowless

    @property
    def chosen(self) -> tuple[str, ...]:
        return (self.cursor,) if self.mapped else super().chosen

    def show(self, state: State, now_ns: int) -> None:
        self.set_class(self.mapped, "mapped")
        self.grid.show(state, now_ns)
        super().show(state, now_ns)

    def _fill(self, state: State, now_ns: int) -> None:
        """The list is not seen while the map is."""
        if not self.mapped:
            super()._fill(state, now_ns)

    def go(self, view: str, where: Where) -> None:
        super().go(view, where)
        if self.mapped and where and where[-1].isdigit():
            self.grid.put(int(where[-1]))

    def action_filter(self) -> None:
        """Of the map nothing could be left out: what a filter finds is listed."""
        if self.mapped:
            self.go(_LIST, ())
        super().action_filter()

    @property
    def rests_on(self) -> Widget:
        return self.grid if self.mapped else self.table
