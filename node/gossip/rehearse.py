"""What a cut that has not happened would come to: the live rule asked on every side of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from node.core import limits
from node.core.errors import BadInput
from node.core.ids import NodeId
from node.gossip.member import UNDECIDED, Member
from node.gossip.settings import MembershipSettings
from node.gossip.splitbrain import Decision, Lease, decide
from node.gossip.view import ClusterView, Unreachability, leader_of


@dataclass(frozen=True, slots=True)
class Case:
    """One rehearsed cut: who crashes in it, and the decision on each side that is left."""

    lost: tuple[str, ...]
    decisions: tuple[Decision, ...]

    @property
    def survivors(self) -> tuple[str, ...]:
        stay = (set(d.reachable) - set(d.goes) for d in self.decisions)
        return tuple(sorted(node.name for node in set().union(*stay)))


def cut(view: ClusterView, settings: MembershipSettings, sides: Sequence[Sequence[str]]) -> Case:
    """Every link between the sides is gone, none within. The sides hold each member that is in reach, once; raises
    BadInput otherwise. Members that are unreachable already are so for every side."""
    living = _living(view)
    named = [name for side in sides for name in side]
    for name in named:
        if name not in living:
            raise BadInput("cut", f"{name!r} is no member in reach: they are {', '.join(sorted(living))}")
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise BadInput("cut", f"{', '.join(twice)} is on more than one side")
    left_out = sorted(living.keys() - set(named))
    if left_out:
        raise BadInput("cut", f"{', '.join(left_out)} is on no side")
    if len(sides) < 2 or not all(sides):
        raise BadInput("cut", "needs two sides or more, none of them empty: a,b/c,d,e")
    return Case((), tuple(_side(view, settings, frozenset(side)) for side in sides))


def lose(view: ClusterView, settings: MembershipSettings, count: int) -> Iterator[Case]:
    """Every way to lose so many members at once by a crash. Raises BadInput for none, all, or too many ways to list."""
    living = sorted(_living(view))
    if not 0 < count < len(living):
        raise BadInput("lose", f"between 1 and {len(living) - 1} of the {len(living)} members in reach can be lost")
    ways = math.comb(len(living), count)
    if ways > limits.rehearsed_cases_max:
        raise BadInput("lose", f"{ways} ways, at most {limits.rehearsed_cases_max} are judged at once; name a cut")
    return (
        Case(lost, (_side(view, settings, frozenset(living) - set(lost)),))
        for lost in itertools.combinations(living, count)
    )


def fatal(view: ClusterView, settings: MembershipSettings, without: str = "") -> tuple[Case, ...]:
    """The crashes of a single member after which nobody would go on: now, or once the member `without` has left in good
    order. Of a cluster of one there is none to be told."""
    left = replace(view, members={name: m for name, m in view.members.items() if name != without})
    if len(_living(left)) < 2:
        return ()
    return tuple(case for case in lose(left, settings, 1) if not case.survivors)


def _living(view: ClusterView) -> Mapping[str, Member]:
    return {
        name: member
        for name, member in view.members.items()
        if member.status in UNDECIDED and name not in view.unreachable
    }


def _side(view: ClusterView, settings: MembershipSettings, side: frozenset[str]) -> Decision:
    """The decision of a side's leader, as if the view had stood still for long enough. Under `lease-majority` all
    sides reach the store and a majority asks first; where there is none, whoever does goes on, and nobody can foretell
    who."""
    beyond: dict[str, Unreachability] = {
        name: view.unreachable.get(name, Unreachability(_ids(view, side), 0))
        for name, member in view.members.items()
        if member.status in UNDECIDED and name not in side
    }
    leader = leader_of(view.members[name] for name in side) or min(side)
    seen = replace(
        view,
        me=view.members[leader].id,
        unreachable=beyond,
        indirect=tuple(pair for pair in view.indirect if all(node.name in side for node in pair)),
        leader=leader,
    )
    first = decide(seen, settings, 0)
    if settings.strategy != "lease-majority":
        return first
    return decide(seen, settings, 0, lease=Lease(first.outcome == "down_unreachable", "the side that asks first"))


def _ids(view: ClusterView, names: frozenset[str]) -> tuple[NodeId, ...]:
    return tuple(sorted(view.members[name].id for name in names))
