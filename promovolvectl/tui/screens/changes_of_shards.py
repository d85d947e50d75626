"""Changes of shards and of the ServeIndex: move, pin, rebalance, repair."""

from __future__ import annotations

from node.admin.protocol import StageIndexRepair, StageMove, StagePin, StageRebalance, StageRepair
from promovolvectl.client.changes import Change, Question
from promovolvectl.tui.actions import Focus, Offer, entity_nodes
from promovolvectl.tui.state import State
from promovolvectl.tui.tables.shards import shard_of

_NO_SHARD = "no shard is selected"


def _shards(focus: Focus) -> tuple[int, ...]:
    """The shards that are meant: on the map and the list the marked ones, deeper the one that was entered."""
    names = focus.chosen if len(focus.place) == 1 else focus.place[:1]
    return tuple(int(name) for name in names)


def move(state: State, focus: Focus) -> Offer:
    """Moves the shard to a node that is asked for."""
    shards = _shards(focus)
    if not shards:
        return _NO_SHARD
    if len(shards) > 1:
        return "one shard is moved at a time; N pins several"
    shard = shards[0]
    item = shard_of(state, str(shard))
    words = ("shard", "move", str(shard), "--to")
    choices = entity_nodes(state, item.node or "" if item else "")
    return Question(words, "to which node", choices, lambda to: Change((*words, to), StageMove(shard=shard, to=to)))


def pin(state: State, focus: Focus) -> Offer:
    """Pins the shards to a node that is asked for, or unpins them where all are pinned."""
    shards = _shards(focus)
    if not shards:
        return _NO_SHARD
    items = [shard_of(state, str(shard)) for shard in shards]
    numbers = tuple(map(str, shards))
    if all(item is not None and item.pinned for item in items):
        return Change(("shard", "unpin", *numbers), StagePin(shards=shards))
    words = ("shard", "pin", *numbers, "--to")
    return Question(
        words, "to which node", entity_nodes(state), lambda to: Change((*words, to), StagePin(shards=shards, to=to))
    )


def rebalance(_state: State, _focus: Focus) -> Offer:
    """Evens the load out now."""
    return Change(("shard", "rebalance"), StageRebalance())


def repair(_state: State, _focus: Focus) -> Offer:
    """Mends what a check of the shards finds."""
    return Change(("shard", "repair"), StageRepair())


def repair_index(_state: State, focus: Focus) -> Offer:
    """Mends what a comparison of the map's replicas finds."""
    if focus.view != "maps" or not focus.place:
        return "choose a map among the maps first"
    name = focus.place[0]
    return Change(("serveindex", "repair", "--map", name), StageIndexRepair(maps=(name,)))
