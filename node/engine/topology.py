"""What follows from a cluster view for sharding and singletons: pure."""

from __future__ import annotations

from collections.abc import Collection

from node.core.ids import NodeId
from node.gossip.member import COUNTED, Member, Status
from node.gossip.view import ClusterView
from node.sharding.nodes import EntityNode, EntityNodes

_OWNERS = COUNTED | {Status.EXITING}


def singleton_home(view: ClusterView, draining: Collection[NodeId]) -> NodeId | None:
    """The oldest `singleton` member that is not handing over; the oldest of all when every one of them is."""
    members = [m for m in view.members.values() if m.status in COUNTED and "singleton" in m.roles]
    oldest = min(_staying(members, draining) or members, key=_age, default=None)
    return oldest.id if oldest else None


def coordinator_home(view: ClusterView, draining: Collection[NodeId], storeless: Collection[NodeId]) -> NodeId | None:
    """Where the singletons are, unless the store does not answer that node and does answer another that could."""
    members = [m for m in view.members.values() if m.id not in storeless and "singleton" in m.roles]
    oldest = min(_staying(members, draining), key=_age, default=None)
    return oldest.id if oldest else singleton_home(view, draining)


def _staying(members: Collection[Member], draining: Collection[NodeId]) -> list[Member]:
    return [m for m in members if m.id not in draining and m.status is Status.UP]


def entity_nodes(
    view: ClusterView,
    draining: Collection[NodeId],
    closing: Collection[NodeId] = (),
    *,
    storeless: Collection[NodeId] = (),
    held: bool = False,
) -> EntityNodes:
    """Who may own shards, and who coordinates. `closing` nodes keep what they have and get no more; while it is `held`
    nothing is moved for balance."""
    nodes = tuple(
        EntityNode(
            member.id,
            float(member.capacity),
            member.app_version,
            view.reachable(member.node),
            member.status is not Status.UP or member.id in draining,
            cordoned=member.id in closing,
        )
        for member in sorted(view.members.values(), key=_age)
        if member.status in _OWNERS and "entity" in member.roles
    )
    unreachable = tuple(sorted(name for name in view.members if not view.reachable(name)))
    joining = tuple(sorted(m.node for m in view.members.values() if m.status in (Status.JOINING, Status.WEAKLY_UP)))
    return EntityNodes(nodes, coordinator_home(view, draining, storeless), unreachable, joining, held)


def peers(view: ClusterView) -> frozenset[str]:
    """The other members that can be reached now, by name: who gets deltas, topic events and homes."""
    return frozenset(
        name
        for name, member in view.members.items()
        if name != view.me.name and member.status in _OWNERS and view.reachable(name)
    )


def entity_majority(view: ClusterView) -> tuple[int, int]:
    """Entity members required for a majority, and those that can be reached."""
    counted = [m for m in view.members.values() if m.status in COUNTED and "entity" in m.roles]
    return len(counted) // 2 + 1 if counted else 0, sum(view.reachable(m.node) for m in counted)


def _age(member: Member) -> tuple[int, str]:
    return (member.up_number, member.node)
