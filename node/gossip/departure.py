"""What a cluster is left with when one member goes: the live split-brain rule, counted with and without it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from node.gossip.member import UNDECIDED
from node.gossip.settings import MembershipSettings
from node.gossip.splitbrain import counted
from node.gossip.strategies import RULES, Count
from node.gossip.view import ClusterView


@dataclass(frozen=True, slots=True)
class Tally:
    """Counted members, those of them that are in reach, those that the rule requires, and whether they would go on if
    whoever is unreachable now stayed so."""

    counted: int
    available: int
    required: int
    goes_on: bool

    def words(self) -> str:
        return f"{self.available} of {self.counted} counted members in reach, {self.required} required"


@dataclass(frozen=True, slots=True)
class Departure:
    before: Tally
    after: Tally

    @property
    def loses_majority(self) -> bool:
        """Whether it is this departure after which those in reach would not go on."""
        return self.before.goes_on and not self.after.goes_on


def departure(view: ClusterView, settings: MembershipSettings, name: str) -> Departure:
    """With the member and without it; it may be any member, in reach or not."""
    return Departure(_tally(view, settings, ""), _tally(view, settings, name))


def _tally(view: ClusterView, settings: MembershipSettings, without: str) -> Tally:
    undecided = [m for m in view.members.values() if m.status in UNDECIDED]
    role = settings.majority_role if counted(undecided, settings.majority_role) else ""
    left = [m for m in counted(undecided, role) if m.node != without]
    ours = [m for m in left if m.node not in view.unreachable]
    theirs = [m for m in left if m.node in view.unreachable]
    found: Count = RULES[settings.strategy](ours, theirs, settings.quorum)
    # Under `down-all` nobody goes on with a part; with nobody away there is no part.
    goes_on = not theirs if settings.strategy == "down-all" else found.stays
    return Tally(len(left), len(ours), found.required, goes_on)
