"""What the rest of the node sees of membership: one immutable picture, replaced whole at each change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from node.core.ids import NodeId
from node.gossip.member import COUNTED, UNDECIDED, Member, Status, address_order
from node.gossip.ring import reachable_from
from node.gossip.state import GossipState


@dataclass(frozen=True, slots=True)
class Unreachability:
    """Who reports a member unreachable, and since when this node has known (its own monotonic nanoseconds)."""

    observers: tuple[NodeId, ...]
    since_ns: int


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster as `me` knows it.

    `members`: by name, without the removed. `unreachable`: nobody that this node is connected with sees them.
    `indirect`: pairs (observer, subject) that can't see each other although both are reachable; nothing is done about
    them yet, the split-brain rule is the place. `converged`: every reachable member holds the state of this digest
    and nothing undecided is unreachable; `blocked_by` names who keeps it from that.
    """

    me: NodeId
    cluster_id: str = ""
    formation: str = ""
    members: Mapping[str, Member] = field(default_factory=dict)
    unreachable: Mapping[str, Unreachability] = field(default_factory=dict)
    indirect: tuple[tuple[NodeId, NodeId], ...] = ()
    leader: str = ""
    converged: bool = False
    blocked_by: tuple[str, ...] = ()
    digest: str = ""

    def member(self, name: str) -> Member | None:
        return self.members.get(name)

    def reachable(self, name: str) -> bool:
        """Whether the node is a member that somebody here can see."""
        member = self.members.get(name)
        return member is not None and member.status is not Status.DOWN and name not in self.unreachable

    def up(self, role: str | None = None) -> list[Member]:
        """The members that are `up`, reachable or not, oldest first."""
        found = [m for m in self.members.values() if m.status is Status.UP and (role is None or role in m.roles)]
        return sorted(found, key=_age)

    def oldest(self, role: str) -> Member | None:
        """The member with the role that has been `up` for longest, also while it leaves; it hosts singletons."""
        found = [m for m in self.members.values() if m.status in COUNTED and role in m.roles]
        return min(found, key=_age, default=None)

    @property
    def joined(self) -> bool:
        """Whether this node has been made `up` by its cluster and isn't on its way out."""
        mine = self.members.get(self.me.name)
        return mine is not None and mine.status in (Status.UP, Status.WEAKLY_UP)


def _age(member: Member) -> tuple[int, str]:
    return (member.up_number, member.node)


def look(
    state: GossipState,
    me: NodeId,
    seen: frozenset[NodeId],
    neighbours: int,
    *,
    before: ClusterView,
    now_ns: int,
) -> ClusterView:
    """The view that follows from the gossiped state; `before` lends the times at which unreachability was learned."""
    members = {m.node: m for m in state.sorted_members() if m.status is not Status.REMOVED}
    connected = reachable_from(state, me, neighbours)
    unreachable: dict[str, Unreachability] = {}
    for member in members.values():
        if member.id in connected or member.status is Status.DOWN:
            continue
        observers = tuple(sorted(r.observer for r in state.rows.values() if r.subject == member.id and not r.reachable))
        known = before.unreachable.get(member.node)
        same = known is not None and before.members[member.node].id == member.id
        unreachable[member.node] = Unreachability(observers, known.since_ns if known and same else now_ns)
    indirect = tuple(
        (r.observer, r.subject)
        for r in state.sorted_rows()
        if not r.reachable and r.observer in connected and r.subject in connected
    )
    taking_part = {m.id for m in members.values() if m.node not in unreachable and m.status is not Status.DOWN}
    blocked = {n.name for n in taking_part - seen}
    blocked |= {name for name in unreachable if members[name].status in UNDECIDED}
    return ClusterView(
        me=me,
        cluster_id=before.cluster_id,
        formation=before.formation,
        members=members,
        unreachable=unreachable,
        indirect=indirect,
        leader=leader_of(members[n.name] for n in taking_part),
        converged=not blocked,
        blocked_by=tuple(sorted(blocked)),
        digest=state.digest,
    )


def leader_of(reachable: Iterable[Member]) -> str:
    """The lowest address among the reachable `up` and `leaving`; among those joining only when there are none."""
    candidates = list(reachable)
    for statuses in (COUNTED, frozenset({Status.JOINING, Status.WEAKLY_UP})):
        found = [m for m in candidates if m.status in statuses]
        if found:
            return min(found, key=address_order).node
    return ""
