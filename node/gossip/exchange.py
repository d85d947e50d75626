"""One node's side of the gossip: its state, who is known to hold the same, and the messages that say so."""

from __future__ import annotations

from collections.abc import Iterable

from node.core.ids import NodeId
from node.gossip.messages import Digest, StateMessage
from node.gossip.state import GossipState


class Exchange:
    """`seen` are the members known to hold the state of the present digest, this node always among them."""

    def __init__(self, me: NodeId, control: str, formation: str, cluster_id: str) -> None:
        self.formation = formation
        self.cluster_id = cluster_id
        self.state = GossipState()
        self.seen: frozenset[NodeId] = frozenset((me,))
        self._me = me
        self._control = control

    def adopt(self, state: GossipState) -> bool:
        """A later state holds from now on, and nobody else is known to hold it; False if it is no other."""
        if state is self.state:
            return False
        self.state = state
        self.seen = frozenset((self._me,))
        return True

    def saw(self, nodes: Iterable[NodeId]) -> bool:
        """These hold the same state; whether that is news."""
        before = self.seen
        self.seen = before | {n for n in nodes if self.state.live(n)}
        return self.seen != before

    def digest(self) -> Digest:
        return Digest(self.formation, self.state.digest, tuple(sorted(self.seen)), self._control)

    def whole(self, *, reply: bool) -> StateMessage:
        s = self.state
        return StateMessage(
            formation=self.formation,
            cluster_id=self.cluster_id,
            members=tuple(s.sorted_members()),
            rows=tuple(s.sorted_rows()),
            up_mark=s.up_mark,
            seen=tuple(sorted(self.seen)),
            reply=reply,
        )
