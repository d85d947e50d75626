"""Answering those who ask to be let in: whether, and if not, why, said once to this node's own log."""

from __future__ import annotations

from node.core import limits
from node.core.ids import NodeId
from node.gossip.admission import refusal
from node.gossip.events import TurnedAway
from node.gossip.messages import JoinRefused, JoinRequest
from node.gossip.settings import ClusterIdentity, MembershipSettings
from node.gossip.state import GossipState


class Door:
    """Remembers whom it has turned away for what: a node that is refused asks again and again."""

    def __init__(self, cluster: ClusterIdentity, settings: MembershipSettings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._turned_away: dict[str, str] = {}

    def refuse(
        self, sender: NodeId, request: JoinRequest, state: GossipState, *, joined: bool
    ) -> tuple[JoinRefused, TurnedAway | None] | None:
        """The answer to a node that can't be a member, and the note about it if it is news; None for one that can."""
        found = refusal(request, self._cluster, state.members, self._settings)
        if found is None:
            return None
        answer = JoinRefused(found.key, found.joiner, found.member, "member" if joined else "joiner")
        reason = f"{found.key} is {found.joiner!r} there and {found.member!r} here"
        if self._turned_away.get(sender.name) == reason:
            return answer, None
        if len(self._turned_away) >= limits.guests_max:
            self._turned_away.clear()
        self._turned_away[sender.name] = reason
        return answer, TurnedAway(sender, reason)
