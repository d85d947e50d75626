"""Whom a gossip round goes to, as a function of the view."""

from __future__ import annotations

from collections.abc import Collection

from node.core.ids import NodeId
from node.core.rng import Rng
from node.gossip.state import GossipState
from node.gossip.view import ClusterView

# The rest keeps a lost exchange or a bad link from holding everything up.
BIAS = 0.8


def candidates(view: ClusterView, state: GossipState) -> list[NodeId]:
    """The members in reach; one that this node itself does not see only where nobody else is left, one that only
    others do not see like any other."""
    me = view.me
    peers = [m.id for m in view.members.values() if m.id != me and view.reachable(m.node)]
    return [node for node in peers if state.sees(me, node)] or peers


def choose(near: list[NodeId], seen: Collection[NodeId], rng: Rng) -> NodeId | None:
    """One of them: with a probability of `BIAS` one that is not known to hold the present state, if there is any."""
    behind = [node for node in near if node not in seen]
    if behind and rng.random() < BIAS:
        near = behind
    return rng.choice(near) if near else None
