"""The ServeIndex: maps against replicas, removals that wait, tombstones, the roster."""

from __future__ import annotations

from typing import Final

from promovolvectl.tui.actions import Action
from promovolvectl.tui.screens import changes_of_shards as changes
from promovolvectl.tui.screens.listing import Listing, bindings_of
from promovolvectl.tui.tables import index

ACTIONS: Final[tuple[Action, ...]] = (
    Action("R", "repair", "Repair", "Mend what the map's replicas hold differently", changes.repair_index, of=("map",)),
)


class ServeIndex(Listing):
    """Enter goes from a map to its keys."""

    NAME = "serveindex"
    VIEWS = index.VIEWS
    ACTIONS = ACTIONS
    BINDINGS = bindings_of(index.VIEWS, ACTIONS)
