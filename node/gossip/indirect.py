"""Pairs that can't see each other although others see both: a bad link, not a dead node.

The rule which of them goes. The pairs are the edges of a graph; as long as one is left, the member with the most bad
links goes, since it is the likeliest culprit and takes the most edges with it; of equals the youngest, since the oldest
hosts the coordinator and the singletons, whose move costs most. So of one pair exactly one goes, never a third, and
everybody who holds the same gossip names the same one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from node.core.ids import NodeId
from node.gossip.member import UNDECIDED, Member
from node.gossip.strategies import age_order
from node.gossip.view import ClusterView

Pair = tuple[NodeId, NodeId]


def bad_pairs(view: ClusterView) -> tuple[Pair, ...]:
    """The pairs that the split-brain rule has to settle, each once, lower name first; a member that is on its way out
    anyway makes none."""
    found = {(min(pair), max(pair)) for pair in view.indirect if all(_undecided(view, node) for node in pair)}
    return tuple(sorted(found))


def to_go(pairs: Iterable[Pair], members: Mapping[str, Member]) -> tuple[NodeId, ...]:
    """Who goes so that the rest is fully connected, in the order of being chosen."""
    left = set(pairs)
    chosen: list[NodeId] = []
    while left:
        links = Counter(node for pair in left for node in pair)
        worst = max(links, key=lambda node: (links[node], age_order(members[node.name])))
        chosen.append(worst)
        left = {pair for pair in left if worst not in pair}
    return tuple(chosen)


def _undecided(view: ClusterView, node: NodeId) -> bool:
    member = view.members.get(node.name)
    return member is not None and member.id == node and member.status in UNDECIDED
