"""The Nodes: the nodes, the shards of one, the entities of one of those."""

from __future__ import annotations

from typing import Final

from promovolvectl.tui.actions import Action
from promovolvectl.tui.screens import changes_of_nodes as changes
from promovolvectl.tui.screens.listing import Listing, bindings_of
from promovolvectl.tui.tables import entities, nodes, shards
from promovolvectl.tui.views import View

VIEWS: Final[tuple[View, ...]] = (View("nodes", (nodes.LEVEL, shards.OF_NODE, entities.OF_SHARD)),)
ACTIONS: Final[tuple[Action, ...]] = (
    Action("C", "cordon", "Cordon", "Cordon the node, or lift it", changes.cordon, changes.cordon_or_not, of=("node",)),
    Action(
        "D", "drain", "Drain", "Drain the node, or end its drain", changes.drain, changes.drain_or_not, of=("node",)
    ),
    Action("X", "restart", "Restart", "Restart the node", changes.restart, of=("node",)),
)


class Nodes(Listing):
    """Enter goes from a node to its shards, to their entities."""

    NAME = "nodes"
    VIEWS = VIEWS
    ACTIONS = ACTIONS
    BINDINGS = bindings_of(VIEWS, ACTIONS)
