"""Changes of nodes: cordon, drain, restart."""

from __future__ import annotations

from node.admin.protocol import StageCordon, StageDrain, StageRestart, Undrain
from promovolvectl.client.changes import Change
from promovolvectl.tui.actions import Focus, Offer
from promovolvectl.tui.state import State
from promovolvectl.tui.tables.nodes import cordoned, node_row

_NO_NODE = "no node is selected"


def cordon(state: State, focus: Focus) -> Offer:
    """Cordons the node, or lifts it where it is cordoned."""
    if not focus.place:
        return _NO_NODE
    node = focus.place[0]
    if cordoned(state, node):
        return Change(("node", "uncordon", node), StageCordon(node=node, on=False))
    return Change(("node", "cordon", node), StageCordon(node=node))


def drain(state: State, focus: Focus) -> Offer:
    """Drains the node, or ends its drain."""
    if not focus.place:
        return _NO_NODE
    node = focus.place[0]
    row = node_row(state, node)
    if row is not None and row.status == "draining":
        return Change(("node", "undrain", node), Undrain(node=node), "ends its drain; what has moved stays where it is")
    return Change(("node", "drain", node), StageDrain(node=node))


def restart(_state: State, focus: Focus) -> Offer:
    """Restarts the node's process once its shards are elsewhere."""
    if not focus.place:
        return _NO_NODE
    node = focus.place[0]
    note = f"who starts it again is its supervisor, or, where 'up' started it, 'promovolvectl node start {node}'"
    return Change(("node", "restart", node), StageRestart(node=node), note)
