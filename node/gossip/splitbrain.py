"""What is done about a standing unreachability: a pure function of a view, and the record of each decision.

Safety never rests on it: a side that wrongly goes on is stopped by the store's fence (I1). What it buys is one living
side soon.

- Counted are members with the role (all members where nobody has it) that are `up` or `leaving`; those that are
  joining or weakly up go with the side they are on. Whom we have put out counts against us until all have seen it:
  whoever is out of reach may not know, and count it for themselves. So two decisions in a row take no more members
  from a cluster than one of them could.
- The side that would stay looks a second time, granting the other side its best case: its joining members were made
  `up` and our leaving ones have left, just before the cut and unseen here. Only the leader does that, so the look is
  needed only where the leader is over there. Where the two answers differ, both sides go down.
- The count is the gossip's, and no durable roster's: the store has the names and incarnations that were ever started,
  not who is in, so the living can't be told from those that left. What a roster would add is small. A member is made
  `up` only when all that are in reach hold the same state and nobody undecided is out of reach, so two sides of a cut
  differ by one step of the leader before it, which is what the second look grants. Who starts with no gossip at all
  counts nothing: it asks the seeds, and only the first seed may form a cluster again.
- Pairs that can't see each other though others see both are settled as `indirect.py` says, by the rest. With a cut on
  top of them, the cut is judged with these members and once more without; two contradictory answers end everybody.
  The rest must be right without those that it sends away: they count against it, and so do those put out before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from node.core.clock import MS, rfc3339
from node.core.ids import NodeId
from node.gossip.indirect import bad_pairs, to_go
from node.gossip.member import COUNTED, UNDECIDED, Member, Status, address_order
from node.gossip.settings import MembershipSettings
from node.gossip.strategies import RULES, Count
from node.gossip.view import ClusterView, leader_of
from node.wire.registry import Lane, wire_type

Outcome = Literal["down_unreachable", "down_indirect", "down_self", "down_all"]


@wire_type("gossip.decision_member", lane=Lane.CONTROL)
class Weighed(msgspec.Struct, frozen=True):
    """One member as a decision saw it; `observers` reported it unreachable, `goes` says what became of it."""

    node: NodeId
    status: Status
    counted: bool
    reachable: bool
    goes: bool
    observers: tuple[NodeId, ...] = ()


@wire_type("gossip.decision", lane=Lane.CONTROL, version=2)
class Decision(msgspec.Struct, frozen=True):
    """One decision with all its inputs. `node` decided; `required` and `available` are counted members on its side;
    `tie_break` names the member that decided where numbers did not; `second_look` is the answer that differed, in
    words; `lease` the store's answer where the rule asks for one; `bound` says that the view never stood still and the
    worst one was judged; `leader` leads those that stay."""

    node: NodeId
    number: int
    at_ms: int
    strategy: str
    role: str
    outcome: Outcome
    members: tuple[Weighed, ...]
    pairs: tuple[tuple[NodeId, NodeId], ...]
    required: int
    available: int
    reason: str
    tie_break: str = ""
    second_look: str = ""
    lease: str = ""
    unreachable_for_ms: int = 0
    bound: bool = False
    leader: str = ""

    @property
    def id(self) -> str:
        """Unique for ever, since a restart is another incarnation."""
        return f"{self.node.name}.{self.node.incarnation}-{self.number}"

    @property
    def reachable(self) -> tuple[NodeId, ...]:
        return tuple(m.node for m in self.members if m.reachable)

    @property
    def unreachable(self) -> tuple[NodeId, ...]:
        return tuple(m.node for m in self.members if not m.reachable)

    @property
    def goes(self) -> tuple[NodeId, ...]:
        return tuple(m.node for m in self.members if m.goes)

    @property
    def acts(self) -> str:
        """Who carries it out: the leader of those that stay, so that it is done once. A side that goes down needs no
        leader for it, and whoever got the lease acts on it."""
        staying = self.outcome in ("down_unreachable", "down_indirect")
        return self.leader if staying and not self.lease else self.node.name

    def text(self) -> str:
        """One line for a person."""
        return f"{self.strategy} at {self.node}: {self.reason}"

    def cause(self) -> str:
        """What stands in the record of a member that goes by it: short, since records are gossiped."""
        tie = f", {self.tie_break} decides" if self.tie_break else ""
        counts = f"{self.available} counted, {self.required} required{tie}"
        return f"at {rfc3339(self.at_ms)} by decision {self.id}, {self.strategy}: {counts}"


@dataclass(frozen=True, slots=True)
class Lease:
    """The store's answer to who may go on. `holder` has it now; empty where the store did not answer."""

    granted: bool
    holder: str = ""

    def words(self) -> str:
        if self.granted:
            return "granted"
        return f"held by {self.holder}" if self.holder else "the store does not answer"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A count, and the second look's where that differed."""

    count: Count
    second: Count | None = None

    @property
    def stays(self) -> bool:
        return self.count.stays and self.second is None


def judge(ours: Sequence[Member], theirs: Sequence[Member], role: str, settings: MembershipSettings) -> Judgement:
    """Both looks at one cut; the members are all that are not decided yet."""
    rule = RULES[settings.strategy]
    first = rule(counted(ours, role), counted(theirs, role), settings.quorum)
    if not first.stays or settings.strategy == "lease-majority" or not _leader_among(theirs, ours):
        return Judgement(first)
    sure = [m for m in counted(ours, role) if m.status is not Status.LEAVING]
    second = rule(sure, with_role(theirs, role), settings.quorum)
    return Judgement(first, None if second.stays else second)


def decide(
    view: ClusterView,
    settings: MembershipSettings,
    now_ns: int,
    *,
    at_ms: int = 0,
    number: int = 0,
    bound: bool = False,
    lease: Lease | None = None,
) -> Decision:
    """What follows from a view in which somebody is unreachable. `lease` is the store's answer, where the rule needs
    one; without it the answer is who would ask for it first."""
    undecided = [m for m in view.members.values() if m.status in UNDECIDED]
    ours = [m for m in undecided if m.node not in view.unreachable]
    theirs = [m for m in undecided if m.node in view.unreachable]
    role = settings.majority_role if counted(undecided, settings.majority_role) else ""
    pairs = bad_pairs(view)
    leaves = to_go(pairs, view.members)
    rest = [m for m in ours if m.id not in leaves]
    against = [*theirs, *_put_out(view)] if theirs or leaves else []
    outcome, judged, reason = _outcome(ours, against, rest, role, settings, lease, cut=bool(theirs))
    if leaves and outcome in ("down_unreachable", "down_indirect"):
        reason = f"{reason}; of pairs that can't see each other {', '.join(n.name for n in leaves)} goes"
    going = {
        "down_unreachable": {*leaves, *(m.id for m in theirs)},
        "down_indirect": set(leaves),
        "down_self": {m.id for m in ours},
        "down_all": {m.id for m in undecided},
    }[outcome]
    return Decision(
        node=view.me,
        number=number,
        at_ms=at_ms,
        strategy=settings.strategy,
        role=role,
        outcome=outcome,
        members=tuple(_weighed(m, view, role, going) for m in sorted(undecided, key=lambda m: m.id)),
        pairs=pairs,
        required=judged.count.required,
        available=judged.count.available,
        reason=reason,
        tie_break=judged.count.tie_break,
        second_look=judged.second.reason if judged.second else "",
        lease=lease.words() if lease else "",
        unreachable_for_ms=max((now_ns - u.since_ns for u in view.unreachable.values()), default=0) // MS,
        bound=bound,
        leader=leader_of(rest),
    )


def _outcome(
    ours: list[Member],
    theirs: list[Member],
    rest: list[Member],
    role: str,
    settings: MembershipSettings,
    lease: Lease | None,
    *,
    cut: bool,
) -> tuple[Outcome, Judgement, str]:
    """`theirs`: who counts against us; `cut`: whether some of them are out of reach, and not only put out before."""
    judged = judge(ours, theirs, role, settings)
    reason = judged.count.reason
    if lease is not None and cut:
        stays, reason = lease.granted, f"{reason}; the lease: {lease.words()}"
    else:
        stays = judged.stays
    if settings.strategy == "down-all":
        return "down_all", judged, reason
    if judged.second is not None:
        text = f"{reason}, but if their joining members are up and our leaving ones gone: {judged.second.reason}"
        return "down_all", judged, text
    if not stays:
        return "down_self", judged, reason
    if len(rest) < len(ours) and lease is None:
        again = judge(rest, [*theirs, *(m for m in ours if m not in rest)], role, settings)
        if not again.stays:
            words = (again.second or again.count).reason
            return "down_all", judged, f"{reason}, but without those with a bad link: {words}"
    return ("down_unreachable" if cut else "down_indirect"), judged, reason


def _put_out(view: ClusterView) -> list[Member]:
    """Members that are down and not yet gone, as others may still count them."""
    down = [m for m in view.members.values() if m.status is Status.DOWN and m.up_number]
    return [msgspec.structs.replace(m, status=Status.UP) for m in down]


def _weighed(member: Member, view: ClusterView, role: str, going: set[NodeId]) -> Weighed:
    lost = view.unreachable.get(member.node)
    is_counted = bool(counted([member], role))
    observers = lost.observers if lost else tuple(o for o, s in view.indirect if s == member.id)
    return Weighed(member.id, member.status, is_counted, lost is None, member.id in going, observers)


def _leader_among(theirs: Sequence[Member], ours: Sequence[Member]) -> bool:
    candidates = counted([*ours, *theirs], "")
    return bool(candidates) and min(candidates, key=address_order) in theirs


def with_role(members: Sequence[Member], role: str) -> list[Member]:
    return [m for m in members if not role or role in m.roles]


def counted(members: Sequence[Member], role: str) -> list[Member]:
    """Those that count for a majority."""
    return [m for m in with_role(members, role) if m.status in COUNTED]
