"""What the leader does, as a function of the view: there is no election, everybody can compute who it is."""

from __future__ import annotations

from node.gossip.member import Member, Status, address_order, moved
from node.gossip.view import ClusterView


def actions(view: ClusterView, up_mark: int) -> list[Member]:
    """The records that the leader moves in a converged view: joining members become `up` in address order, leaving
    ones `exiting`, exiting and down ones are removed. One step each, so that every member sees every status."""
    if view.leader != view.me.name or not view.converged:
        return []
    changed: list[Member] = []
    for member in sorted(view.members.values(), key=address_order):
        match member.status:
            case Status.JOINING | Status.WEAKLY_UP:
                up_mark += 1
                changed.append(moved(member, Status.UP, up_number=up_mark))
            case Status.LEAVING:
                changed.append(moved(member, Status.EXITING))
            case Status.EXITING:
                changed.append(moved(member, Status.REMOVED, cause="left"))
            case Status.DOWN:
                changed.append(moved(member, Status.REMOVED))
            case Status.UP | Status.REMOVED:
                pass
    return changed


def weakly_up(view: ClusterView) -> list[Member]:
    """The reachable joining members, let in without a vote while the cluster can't agree. They take part, yet host
    nothing and count for no majority."""
    if view.leader != view.me.name or view.converged:
        return []
    return [
        moved(m, Status.WEAKLY_UP)
        for m in view.members.values()
        if m.status is Status.JOINING and view.reachable(m.node)
    ]
