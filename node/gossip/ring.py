"""Who watches whom, as a function of the gossiped state, so that all nodes agree on it.

Members stand on a ring in the order of a hash of their names; each watches the next `neighbours` that it does not
itself report unreachable, and keeps watching those that it does. So a run of dead neighbours never hides who is
behind it, and a node that comes back is noticed by whoever missed it.
"""

from __future__ import annotations

import xxhash

from node.core.ids import NodeId
from node.gossip.member import NEW, TAKING_PART
from node.gossip.state import GossipState


def ring_of(state: GossipState) -> list[NodeId]:
    """The members that take part, in ring order."""
    nodes = [m.id for m in state.members.values() if m.status in TAKING_PART]
    return sorted(nodes, key=lambda n: (int(xxhash.xxh64_intdigest(n.name.encode(), 0)), n))


def watched_by(state: GossipState, ring: list[NodeId], observer: NodeId, neighbours: int) -> list[NodeId]:
    """Whom `observer` watches, in ring order from it on; empty if it is not on the ring."""
    if observer not in ring:
        return []
    at = ring.index(observer)
    watched: list[NodeId] = []
    healthy = 0
    for subject in ring[at + 1 :] + ring[:at]:
        fine = state.sees(observer, subject)
        if fine and healthy == neighbours:
            continue
        healthy += fine
        watched.append(subject)
    return watched


def reachable_from(state: GossipState, me: NodeId, neighbours: int) -> set[NodeId]:
    """The nodes that `me` is connected with: itself, and whoever is watched and not reported unreachable by one of
    them. A subject whose watchers among these all report it is unreachable; where one of them vouches for it, it is
    one bad link, not a dead node. Vouching starts at `me`, so two nodes on the far side of a cut can't vouch for each
    other. Silence vouches only for the next `neighbours`, who have been watched all along: whom a node began to watch
    because others failed, it vouches for once it has said so. So does one that is only joining for whom others report:
    it has watched nobody yet, and its coming must not make a silent node look alive."""
    ring = ring_of(state)
    reported = {row.subject for row in state.rows.values() if not row.reachable}
    found = {me}
    queue = [me]
    while queue:
        observer = queue.pop()
        all_along = set(next_on(ring, observer, neighbours))
        known = state.members.get(observer.name)
        if known is not None and known.status in NEW:
            all_along -= reported
        for subject in watched_by(state, ring, observer, neighbours):
            row = state.rows.get((observer, subject))
            if subject not in found and (row.reachable if row else subject in all_along):
                found.add(subject)
                queue.append(subject)
    return found


def next_on(ring: list[NodeId], observer: NodeId, neighbours: int) -> list[NodeId]:
    """Whom `observer` watches while all are well; empty if it is not on the ring."""
    if observer not in ring:
        return []
    at = ring.index(observer)
    return (ring[at + 1 :] + ring[:at])[:neighbours]
