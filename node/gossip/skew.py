"""How far this node's wall clock is ahead of the others': writes stamped from the future are refused by whoever gets
them, so a node that is ahead of most had better refuse them itself, and say so (`reliability.md` T1).
"""

from __future__ import annotations

from collections.abc import Collection

from node.core import limits
from node.core.clock import MS
from node.core.ids import NodeId


class Skew:
    """Fed by heartbeats, which carry their sender's wall clock; the way they take only makes this node look further
    ahead, by far less than what matters. Others' clocks are remembered against this node's monotonic one: should its
    wall clock be set ahead, that shows before anybody is heard again."""

    def __init__(self) -> None:
        self._zero_ms: dict[NodeId, int] = {}  # others' wall clocks at this node's monotonic zero
        self._said_ms = 0

    def heard(self, peer: NodeId, theirs_ms: int, now_ns: int) -> None:
        """A heartbeat of `peer` arrived; a clock that is not known (0) says nothing."""
        if theirs_ms > 0:
            self._zero_ms[peer] = theirs_ms - now_ns // MS

    def forget(self, living: Collection[NodeId]) -> None:
        """Only who lives counts; `living`: the others. Where none of them has been heard yet, as after every peer was
        started again, what they said is still true of this node's clock."""
        self._zero_ms = {peer: ms for peer, ms in self._zero_ms.items() if peer in living} or self._zero_ms

    def ahead_ms(self, now_ns: int, wall_ms: int) -> int:
        """By how much this node is ahead of more than half of its peers, at least; 0 when that is no more than they
        accept, or nobody was heard yet."""
        if not self._zero_ms:
            return 0
        zeros_ms = sorted(self._zero_ms.values())
        ahead_ms = wall_ms - now_ns // MS - zeros_ms[len(zeros_ms) // 2]
        return ahead_ms if ahead_ms > limits.hlc_ahead_ms_max else 0

    def news(self, now_ns: int, wall_ms: int) -> int | None:
        """The lead that most would refuse writes for, when that begins, and 0 when it ends; else None."""
        ahead_ms = self.ahead_ms(now_ns, wall_ms)
        if bool(ahead_ms) == bool(self._said_ms):
            return None
        self._said_ms = ahead_ms
        return ahead_ms
