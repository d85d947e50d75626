"""Who is let in, and what is done about a second cluster of the same name: rules without effects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from node.core import limits
from node.core.ids import NodeId
from node.gossip.member import UNDECIDED, Member, Status
from node.gossip.messages import JoinRequest, StateMessage
from node.gossip.ring import reachable_from
from node.gossip.settings import ClusterIdentity, MembershipSettings, Mismatch, compare
from node.gossip.splitbrain import with_role
from node.gossip.state import GossipState, build

# What a refusal may name that time, or somebody else, can change; all else is this node's own cluster and settings.
# `node.name`: the address is another node's; under `*@` every name is tried at every address.
PASSING: Final = frozenset({"incarnation", "counted members", "members", "names ever used", "node.name", "greeting"})


def refusal(
    request: JoinRequest, ours: ClusterIdentity, members: Mapping[str, Member], settings: MembershipSettings
) -> Mismatch | None:
    """Why a node can't be a member, or None: another cluster or settings, an incarnation that is over, no room, or one
    more than two quorums can't share."""
    mismatch = compare(ClusterIdentity(request.cluster_name, request.cluster_id, request.agreed), ours)
    if mismatch is not None:
        return mismatch
    joiner = request.member
    known = members.get(joiner.node)
    if settings.counted_max is not None:
        alike = [m for m in members.values() if m.status in UNDECIDED and m.node != joiner.node]
        count = 1 + len(with_role(alike, settings.majority_role))
        if with_role([joiner], settings.majority_role) and count > settings.counted_max:
            at_most = f"at most {settings.counted_max}, or two sides could have a quorum of {settings.quorum}"
            return Mismatch("counted members", str(count), at_most)
    if known is None:
        living = sum(m.status is not Status.REMOVED for m in members.values())
        if living >= limits.members_max:
            return Mismatch("members", str(living + 1), f"at most {limits.members_max}")
        if len(members) >= limits.member_names_max:
            return Mismatch("names ever used", str(len(members) + 1), f"at most {limits.member_names_max}")
        return None
    over = known.incarnation == joiner.incarnation and known.status >= Status.DOWN
    if known.incarnation > joiner.incarnation or over:
        gone = f", {known.status.word}: {known.cause}" if known.status >= Status.DOWN else ""
        return Mismatch("incarnation", str(joiner.incarnation), f"{known.incarnation}{gone}")
    return None


def sound(message: StateMessage) -> bool:
    """Whether a state from outside keeps within the bounds; one that doesn't is counted and dropped."""
    return (
        len(message.members) <= limits.member_names_max
        and len(message.rows) <= limits.observations_max
        and message.up_mark >= 0
        and all(m.incarnation >= 0 and m.up_number >= 0 for m in message.members)
        and all(len(m.cause) <= limits.member_cause_chars_max for m in message.members)
    )


def over(known: Member | None, node: NodeId) -> str:
    """By which decision this incarnation is no member any more; empty if it is one, or was never heard of."""
    if known is None or known.incarnation < node.incarnation:
        return ""
    if known.incarnation > node.incarnation:
        return f"replaced by incarnation {known.incarnation}"
    return (known.cause or "removed") if known.status is Status.REMOVED else ""


class Rival:
    """A second formation of this cluster: it exists when a first seed was cut off from all others while it started.

    The smaller one gives way, on an equal count the one with the greater token; its nodes restart and join the other.
    Counted is whom a node is connected with, after the conflict has lasted for long enough that failure detectors
    have noticed who is gone: a process that was paused for an hour still believes in its old cluster for a moment.
    """

    def __init__(self, settings: MembershipSettings) -> None:
        self._settings = settings
        self._formation = ""
        self._first_ns = 0
        self._last_ns = 0

    def gives_way(
        self, ours: GossipState, me: NodeId, formation: str, theirs: StateMessage, sender: NodeId, now_ns: int
    ) -> str:
        """Why this node's formation ends, or an empty text."""
        wait_ns = 2 * self._settings.acceptable_pause_ns
        if theirs.formation != self._formation or now_ns - self._last_ns > wait_ns:
            self._formation, self._first_ns = theirs.formation, now_ns
        self._last_ns = now_ns
        if now_ns - self._first_ns < wait_ns:
            return ""
        here = self._connected(ours, me)
        there = self._connected(build(theirs.members, theirs.rows, theirs.up_mark), sender)
        if (there, formation) <= (here, theirs.formation):
            return ""
        return f"this cluster was formed twice: here with {here} members up, which gives way to {there} around {sender}"

    def _connected(self, state: GossipState, node: NodeId) -> int:
        connected = reachable_from(state, node, self._settings.neighbours)
        return sum(m.status is Status.UP and m.id in connected for m in state.members.values())
