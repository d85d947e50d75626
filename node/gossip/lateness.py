"""A node that runs late: it must hold nothing against others for it, must say so, and others should know.

A silence that this process slept through is its own. `noticed` measures it at each step; heartbeats carry it for a
while, so that whoever sees this node flap also sees why.
"""

from __future__ import annotations

from node.core.clock import MS
from node.core.ids import NodeId
from node.gossip.settings import MembershipSettings

_BEATS_SHOWN = 25


class Lateness:
    """`ms` is this node's own worst lateness of late, 0 when it has been on time for a while; `peers` is what others
    say of themselves."""

    def __init__(self, settings: MembershipSettings) -> None:
        self._settings = settings
        self._until_ns = 0
        self.ms = 0
        self.peers: dict[NodeId, int] = {}

    def noticed(self, late_ns: int, now_ns: int) -> bool:
        """Whether a step came so late that silence before it is held against nobody: two intervals or more."""
        if late_ns < 2 * self._settings.heartbeat_ns:
            return False
        self.ms = max(self.ms, late_ns // MS)
        self._until_ns = now_ns + _BEATS_SHOWN * self._settings.heartbeat_ns
        return True

    def passed(self, now_ns: int) -> bool:
        """Whether this node is on time again, said once."""
        if self.ms == 0 or now_ns < self._until_ns:
            return False
        self.ms = 0
        return True

    def heard(self, peer: NodeId, late_ms: int) -> bool:
        """A peer says how late it runs; whether that is news."""
        if self.peers.get(peer, 0) == late_ms:
            return False
        if late_ms > 0:
            self.peers[peer] = late_ms
        else:
            del self.peers[peer]
        return True

    def forget(self, living: set[NodeId]) -> list[NodeId]:
        """Who was late and is no member any more."""
        gone = [peer for peer in self.peers if peer not in living]
        for peer in gone:
            del self.peers[peer]
        return gone
