"""Changes of nodes: cordon, drain, restart."""

from __future__ import annotations

from node.admin.protocol import StageCordon, StageDrain, StageRestart, Undrain
from promovolvectl.client.changes import Change
from promovolvectl.tui.absent import absent_node, words
from promovolvectl.tui.actions import Focus, Offer
from promovolvectl.tui.state import State
from promovolvectl.tui.tables.nodes import node_row
from promovolvectl.tui.widgets.figures import drains, state_words


def _why_not(state: State, focus: Focus) -> str:
    """Why there is no node here that could be changed; empty where there is one."""
    if not focus.place:
        return "no node is selected"
    missed = absent_node(state, focus.place[0])
    if missed is not None:
        return f"{missed.name} is {words(state, missed)}, there is nothing to change: {missed.back} brings it back"
    row = node_row(state, focus.place[0])
    if row is None:
        return f"{focus.place[0]} is no member any more: there is nothing to change"
    return ""


def _why_deaf(state: State, focus: Focus) -> str:
    """Why the node here can do nothing that it is told to; empty where it can."""
    row = node_row(state, focus.place[0]) if focus.place else None
    if row is not None and (not row.reachable or row.status == "down"):
        return f"{row.name} is {state_words(row)}: it can't be told anything, the others decide about it"
    return _why_not(state, focus)


def cordon(state: State, focus: Focus) -> Offer:
    """Cordons the node, or lifts it where it is cordoned: the shards' coordinator does it, whatever the node does."""
    node = focus.place[0] if focus.place else ""
    if _cordoned(state, node):
        return Change(("node", "uncordon", node), StageCordon(node=node, on=False))
    if why := _why_not(state, focus):
        return why
    return Change(("node", "cordon", node), StageCordon(node=node))


def drain(state: State, focus: Focus) -> Offer:
    """Drains the node, or ends its drain."""
    if why := _why_deaf(state, focus):
        return why
    node = focus.place[0]
    if _drains(state, focus):
        return Change(("node", "undrain", node), Undrain(node=node), "ends its drain; what has moved stays where it is")
    return Change(("node", "drain", node), StageDrain(node=node))


def _drains(state: State, focus: Focus) -> bool:
    row = node_row(state, focus.place[0]) if focus.place else None
    return row is not None and drains(row)


def drain_or_not(state: State, focus: Focus) -> str:
    """Which of the two its key does."""
    return "Undrain" if _drains(state, focus) else "Drain"


def _cordoned(state: State, name: str) -> bool:
    row = node_row(state, name)
    return row is not None and row.cordoned is True


def cordon_or_not(state: State, focus: Focus) -> str:
    """Which of the two its key does."""
    return "Uncordon" if focus.place and _cordoned(state, focus.place[0]) else "Cordon"


def restart(state: State, focus: Focus) -> Offer:
    """Restarts the node's process once its shards are elsewhere."""
    if why := _why_deaf(state, focus):
        return why
    node = focus.place[0]
    note = f"who starts it again is its supervisor, or, where 'up' started it, 'promovolvectl node start {node}'"
    return Change(("node", "restart", node), StageRestart(node=node), note)
