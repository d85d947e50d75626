"""Which side of a split goes on: the rule as a pure function of a view, and the record of each decision.

Safety never rests on it: a side that wrongly goes on is stopped by the store's fence (I1). What it buys is one living
side soon. Statuses `up` and `leaving` count; those that are joining go with the side they are on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from node.core.ids import NodeId
from node.gossip.member import COUNTED, UNDECIDED, Member, Status, address_order
from node.gossip.settings import MembershipSettings
from node.gossip.view import ClusterView
from node.wire.registry import Lane, wire_type

Outcome = Literal["down_unreachable", "down_self"]


@wire_type("gossip.decision", lane=Lane.CONTROL)
class Decision(msgspec.Struct, frozen=True):
    """One decision with all its inputs. `required` and `available` are counted members on this side; `tie_break` names
    the member whose address decided an even split; `node` is who decided."""

    node: NodeId
    strategy: str
    role: str
    outcome: Outcome
    reachable: tuple[NodeId, ...]
    unreachable: tuple[NodeId, ...]
    required: int
    available: int
    reason: str
    tie_break: str = ""
    unreachable_for_ms: int = 0

    def text(self) -> str:
        """One line for a person."""
        return f"{self.strategy} at {self.node}: {self.reason}"


def decide(view: ClusterView, settings: MembershipSettings, now_ns: int) -> Decision:
    """Keep-majority, counted over the members with the role (over all where nobody has it); on equality the side with
    the lowest counted address stays.

    The side that would stay looks a second time, granting the other side its best case: its joining members were made
    `up` and our leaving ones have left, just before the cut and unseen here. Only the leader does that, so the look is
    needed only where the leader is over there. Where the second answer differs, this side goes down as well.
    """
    undecided = [m for m in view.members.values() if m.status in UNDECIDED]
    ours = [m for m in undecided if m.node not in view.unreachable]
    theirs = [m for m in undecided if m.node in view.unreachable]
    role = settings.majority_role if _counted(undecided, settings.majority_role) else ""
    first = _stays(_counted(ours, role), _counted(theirs, role))
    stays, reason, tie = first.stays, first.reason, first.tie_break
    if stays and _leader_among(theirs, ours):
        sure = [m for m in _counted(ours, role) if m.status is not Status.LEAVING]
        second = _stays(sure, _with_role(theirs, role))
        if not second.stays:
            stays, tie = False, second.tie_break
            reason = f"{reason}, but if their joining members are up and our leaving ones gone: {second.reason}"
    return Decision(
        node=view.me,
        strategy=settings.strategy,
        role=role,
        outcome="down_unreachable" if stays else "down_self",
        reachable=tuple(sorted(m.id for m in ours)),
        unreachable=tuple(sorted(m.id for m in theirs)),
        required=first.required,
        available=first.available,
        reason=reason,
        tie_break=tie,
        unreachable_for_ms=max((now_ns - u.since_ns for u in view.unreachable.values()), default=0) // 1_000_000,
    )


@dataclass(frozen=True, slots=True)
class _Count:
    stays: bool
    required: int
    available: int
    reason: str
    tie_break: str


def _stays(ours: list[Member], theirs: list[Member]) -> _Count:
    total = len(ours) + len(theirs)
    required = total // 2 + 1
    words = f"{len(ours)} of {total} counted members are reachable, {required} required"
    if 2 * len(ours) != total:
        return _Count(len(ours) >= required, required, len(ours), words, "")
    if total == 0:
        return _Count(False, required, 0, words, "")
    lowest = min([*ours, *theirs], key=address_order)
    side = "this" if lowest in ours else "the other"
    return _Count(
        lowest in ours,
        required,
        len(ours),
        f"{len(ours)} of {total} counted members are reachable: even, and the lowest address, {lowest.node}, "
        f"is on {side} side",
        lowest.node,
    )


def _leader_among(theirs: list[Member], ours: list[Member]) -> bool:
    counted = _counted([*ours, *theirs], "")
    return bool(counted) and min(counted, key=address_order) in theirs


def _with_role(members: list[Member], role: str) -> list[Member]:
    return [m for m in members if not role or role in m.roles]


def _counted(members: list[Member], role: str) -> list[Member]:
    return [m for m in _with_role(members, role) if m.status in COUNTED]


@dataclass(slots=True)
class Resolver:
    """When to decide: after the view has stood still for `stable_after`, at the latest twice that after the first
    unreachability, and then on the worst view since. An episode ends when all has been reachable for `stable_after`,
    so that a flapping link postpones nothing for ever."""

    settings: MembershipSettings
    _standing: tuple[object, ...] = ()
    _stable_since_ns: int = 0
    _first_ns: int = -1
    _worst: ClusterView | None = field(default=None)

    def observe(self, view: ClusterView, now_ns: int) -> Decision | None:
        """Take in the present view; the decision when one is due."""
        lost = _lost(view)
        standing = (lost, tuple((m.node, m.incarnation, m.status) for m in view.members.values()))
        if standing != self._standing:
            self._standing, self._stable_since_ns = standing, now_ns
        quiet_ns = now_ns - self._stable_since_ns
        if not lost:
            if quiet_ns >= self.settings.stable_after_ns:
                self._first_ns, self._worst = -1, None
            return None
        if self._first_ns < 0:
            self._first_ns = now_ns
        if self._worst is None or len(lost) >= len(_lost(self._worst)):
            self._worst = view
        if quiet_ns >= self.settings.stable_after_ns:
            return self._decide(view, now_ns)
        if now_ns - self._first_ns >= 2 * self.settings.stable_after_ns:
            return self._decide(self._worst, now_ns)
        return None

    def _decide(self, view: ClusterView, now_ns: int) -> Decision:
        # A decision ends the episode: if it changes nothing, the next one is taken on what is seen from now on.
        self._stable_since_ns, self._first_ns, self._worst = now_ns, -1, None
        return decide(view, self.settings, now_ns)

    def forgive(self, late_ns: int) -> None:
        """This process was not running for so long; what it saw before is no standing view."""
        self._stable_since_ns += late_ns
        if self._first_ns >= 0:
            self._first_ns += late_ns


def _lost(view: ClusterView) -> tuple[str, ...]:
    return tuple(name for name in sorted(view.unreachable) if view.members[name].status in UNDECIDED)
