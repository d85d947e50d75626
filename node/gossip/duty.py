"""The leader's patience: what it does, and what it says, while somebody keeps the cluster from agreeing."""

from __future__ import annotations

from node.core import limits
from node.core.clock import MS
from node.gossip import leader
from node.gossip.member import Member, Status
from node.gossip.settings import MembershipSettings
from node.gossip.view import ClusterView

_WAITING = frozenset({Status.JOINING, Status.WEAKLY_UP, Status.LEAVING, Status.EXITING, Status.DOWN})


class Duty:
    """`blocked` is why this node, as the leader, can't act on members that wait for it; empty when it can."""

    def __init__(self, settings: MembershipSettings) -> None:
        self._settings = settings
        self._apart_ns = -1
        self._blocked_ns = -1
        self.blocked = ""

    def admits(self, view: ClusterView, now_ns: int) -> list[Member]:
        """Once an interval: whom to let in without a vote, since the cluster has not agreed for `weakly_up_after`."""
        if view.converged:
            self._apart_ns = -1
        elif self._apart_ns < 0:
            self._apart_ns = now_ns
        elif now_ns - self._apart_ns >= self._settings.weakly_up_after_ns:
            return leader.weakly_up(view)
        return []

    def complain(self, view: ClusterView, now_ns: int) -> str | None:
        """Once an interval: the words that hold from now on, where they changed; empty when all is well again."""
        waiting = sorted(name for name, m in view.members.items() if m.status in _WAITING)
        if view.leader != view.me.name or view.converged or not waiting:
            self._blocked_ns = -1
        elif self._blocked_ns < 0:
            self._blocked_ns = now_ns
        blocked = ""
        if self._blocked_ns >= 0 and now_ns - self._blocked_ns >= limits.leader_blocked_ms * MS:
            blocked = (
                f"for {limits.leader_blocked_ms // 1_000} s and more {', '.join(waiting)} could not be moved on: "
                f"no agreement with {', '.join(view.blocked_by)}"
            )
        if blocked == self.blocked:
            return None
        self.blocked = blocked
        return blocked
