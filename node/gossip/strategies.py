"""The five split-brain rules: which side of a cut goes on, as functions of the counted members on either side.

Each answers for *our* side alone and is asked on every side, so a rule is right when no two sides of any cut are told
to stay. What counts as a member is said in `splitbrain.py`; here only the counting is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from node.gossip.member import Member, address_order


@dataclass(frozen=True, slots=True)
class Count:
    """One counting. `required` and `available` are counted members on this side; `tie_break` names the member that
    decided where numbers did not."""

    stays: bool
    required: int
    available: int
    reason: str
    tie_break: str = ""


Side = Sequence[Member]
# (our counted members, theirs, the quorum where the rule has one)
Rule = Callable[[Side, Side, int], Count]


def keep_majority(ours: Side, theirs: Side, _quorum: int) -> Count:
    """More than half stays; of two halves the one with the lowest address; where nobody counts, nobody stays."""
    total = len(ours) + len(theirs)
    required = total // 2 + 1
    found = f"{len(ours)} of {total} counted members are reachable"
    if 2 * len(ours) != total or total == 0:
        return Count(len(ours) >= required, required, len(ours), f"{found}, {required} required")
    lowest = min([*ours, *theirs], key=address_order)
    side = "this" if lowest in ours else "the other"
    text = f"{found}: even, and the lowest address, {lowest.node}, is on {side} side"
    return Count(lowest in ours, required, len(ours), text, lowest.node)


def static_quorum(ours: Side, theirs: Side, quorum: int) -> Count:
    """At least `quorum` stays. More than 2·quorum - 1 members could be two quorums, so then nobody does; joins that
    would bring that about are refused (`admission.py`), and this holds for those that slipped in before."""
    total, most = len(ours) + len(theirs), 2 * quorum - 1
    if total > most:
        text = f"{total} counted members, and a quorum of {quorum} is safe for at most {most}"
        return Count(False, quorum, len(ours), text)
    text = f"{len(ours)} counted members are reachable, {quorum} required"
    return Count(len(ours) >= quorum, quorum, len(ours), text)


def keep_oldest(ours: Side, theirs: Side, _quorum: int) -> Count:
    """The side of the member that has been `up` for longest stays, unless it is alone there and two or more are not:
    one crash must not take the cluster with it."""
    everybody = [*ours, *theirs]
    if not everybody:
        return Count(False, 1, 0, "no counted member is left")
    oldest = min(everybody, key=age_order)
    with_oldest, without = (ours, theirs) if oldest in ours else (theirs, ours)
    here = oldest in ours
    alone = len(with_oldest) == 1 and len(without) >= 2
    where = "on this side" if here else "on the other side"
    text = f"the oldest, {oldest.node}, is {where}" + (f" alone against {len(without)}" if alone else "")
    return Count(here != alone, 2 if len(everybody) > 2 else 1, len(ours), text, oldest.node)


def down_all(ours: Side, theirs: Side, _quorum: int) -> Count:
    """Nobody goes on with a part of the cluster."""
    total = len(ours) + len(theirs)
    return Count(False, total, len(ours), f"{len(ours)} of {total} counted members are reachable, all required")


def age_order(member: Member) -> tuple[bool, int, tuple[str, int, str]]:
    """Oldest first; those that were never `up` last."""
    return (member.up_number == 0, member.up_number, address_order(member))


# lease-majority counts as keep-majority does, to say who may ask for the lease at once; the store then decides.
RULES: Final[Mapping[str, Rule]] = {
    "keep-majority": keep_majority,
    "static-quorum": static_quorum,
    "keep-oldest": keep_oldest,
    "lease-majority": keep_majority,
    "down-all": down_all,
}
