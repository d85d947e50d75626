"""How far this node's wall clock is ahead of the others': writes stamped from the future are refused by whoever gets
them, so a node that is ahead of most had better refuse them itself, and say so (`reliability.md` T1).
"""

from __future__ import annotations

from collections.abc import Collection

from node.core import limits
from node.core.ids import NodeId


class Skew:
    """Fed by heartbeats, which carry their sender's wall clock; the way they take only makes this node look further
    ahead, by far less than what matters."""

    def __init__(self) -> None:
        self._ahead_ms: dict[NodeId, int] = {}
        self._said_ms = 0

    def heard(self, peer: NodeId, theirs_ms: int, ours_ms: int) -> None:
        """A heartbeat of `peer` arrived; a clock that is not known (0) says nothing."""
        if theirs_ms > 0 and ours_ms > 0:
            self._ahead_ms[peer] = ours_ms - theirs_ms

    def forget(self, living: Collection[NodeId]) -> None:
        self._ahead_ms = {peer: ms for peer, ms in self._ahead_ms.items() if peer in living}

    def ahead_ms(self) -> int:
        """By how much this node is ahead of more than half of its peers, at least; 0 when it is behind, or alone."""
        found = sorted(self._ahead_ms.values(), reverse=True)
        return max(0, found[len(found) // 2]) if found else 0

    def news(self) -> int | None:
        """The lead that most would refuse writes for, when that begins, and 0 when it ends; else None."""
        ahead_ms = self.ahead_ms()
        ahead_ms = ahead_ms if ahead_ms > limits.hlc_ahead_ms_max else 0
        if bool(ahead_ms) == bool(self._said_ms):
            return None
        self._said_ms = ahead_ms
        return ahead_ms
