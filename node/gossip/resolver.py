"""When a split is decided: after the view has stood still for `stable_after`, at the latest twice that after the first
unreachability, and then on the worst view since. An episode ends when all has been reachable for `stable_after`, so
that a flapping link postpones nothing for ever.

Under `lease-majority` the leader of a side asks the store before anything is decided: at once where it counts a
majority, else after a pause, so that the larger side is first wherever both reach the store. Its driver owes it an
answer; one that does not come in time is a no.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from node.core import limits
from node.core.clock import MS
from node.gossip.indirect import bad_pairs
from node.gossip.member import COUNTED, UNDECIDED
from node.gossip.settings import MembershipSettings
from node.gossip.splitbrain import Decision, Lease, decide
from node.gossip.view import ClusterView


@dataclass(slots=True)
class Resolver:
    """`wall_zero_ms` is the wall clock at monotonic zero: decisions carry a time that people can read."""

    settings: MembershipSettings
    wall_zero_ms: int = 0
    _standing: tuple[object, ...] = ()
    _stable_since_ns: int = 0
    _first_ns: int = -1
    _worst: ClusterView | None = field(default=None)
    _count: int = 0
    _ask_ns: int = -1
    _asked_ns: int = -1

    def observe(self, view: ClusterView, now_ns: int) -> Decision | None:
        """Take in the present view; the decision when one is due."""
        lost = _trouble(view)
        standing = (lost, tuple((m.node, m.incarnation, m.status) for m in view.members.values()))
        if standing != self._standing:
            self._standing, self._stable_since_ns = standing, now_ns
            self._ask_ns = -1
        quiet_ns = now_ns - self._stable_since_ns
        if not lost:
            if quiet_ns >= self.settings.stable_after_ns:
                self._first_ns, self._worst, self._ask_ns, self._asked_ns = -1, None, -1, -1
            return None
        if self._first_ns < 0:
            self._first_ns = now_ns
        if self._worst is None or _severity(view) >= _severity(self._worst):
            self._worst = view
        if self._asked_ns >= 0:
            late = now_ns - self._asked_ns >= limits.split_lease_answer_ms_max * MS
            return self.answered(view, Lease(False), now_ns) if late else None
        if quiet_ns >= self.settings.stable_after_ns:
            return self._due(view, now_ns, bound=False)
        if now_ns - self._first_ns >= 2 * self.settings.stable_after_ns:
            return self._due(self._worst, now_ns, bound=True)
        return None

    def due_ns(self) -> int | None:
        """When `observe` will have a decision if the view stays as it is; None when none is due. Under a lease the
        store sets the pace: what is due then is found at the next heartbeat."""
        if self._first_ns < 0 or not self._standing[0] or self.settings.strategy == "lease-majority":
            return None
        stable_ns = self.settings.stable_after_ns
        return min(self._stable_since_ns + stable_ns, self._first_ns + 2 * stable_ns)

    def wants_lease(self, now_ns: int) -> bool:
        """Whether the store is to be asked now; once for each decision."""
        if self._ask_ns < 0 or self._asked_ns >= 0 or now_ns < self._ask_ns:
            return False
        self._asked_ns = now_ns
        return True

    def answered(self, view: ClusterView, lease: Lease, now_ns: int) -> Decision | None:
        """The store's answer; None if nobody waits for it any more, or all are well again."""
        if self._asked_ns < 0:
            return None
        self._ask_ns = self._asked_ns = -1
        return self._decide(view, now_ns, bound=False, lease=lease) if _trouble(view) else None

    def forgive(self, late_ns: int) -> None:
        """This process was not running for so long; what it saw before is no standing view."""
        self._stable_since_ns += late_ns
        if self._first_ns >= 0:
            self._first_ns += late_ns

    def _due(self, view: ClusterView, now_ns: int, *, bound: bool) -> Decision | None:
        if self.settings.strategy != "lease-majority" or not _lost(view):
            return self._decide(view, now_ns, bound=bound)
        if self._ask_ns < 0 and view.leader == view.me.name:
            first = decide(view, self.settings, now_ns).outcome == "down_unreachable"
            self._ask_ns = now_ns + (0 if first else limits.split_lease_minority_wait_ms * MS)
        return None

    def _decide(self, view: ClusterView, now_ns: int, *, bound: bool, lease: Lease | None = None) -> Decision:
        # A decision ends the episode: if it changes nothing, the next one is taken on what is seen from now on.
        self._stable_since_ns, self._first_ns, self._worst = now_ns, -1, None
        self._count += 1
        at_ms = self.wall_zero_ms + now_ns // MS
        return decide(view, self.settings, now_ns, at_ms=at_ms, number=self._count, bound=bound, lease=lease)


def _trouble(view: ClusterView) -> tuple[object, ...]:
    """None before anybody was up, as far as this node knows: what has not formed can't be split, and owns nothing. Who
    is slow to start then is waited for, as whoever is missing is, and nobody stops itself for it."""
    if not any(member.up_number or member.status in COUNTED for member in view.members.values()):
        return ()
    return (*_lost(view), *bad_pairs(view))


def _severity(view: ClusterView) -> tuple[int, int]:
    return (len(_lost(view)), len(bad_pairs(view)))


def _lost(view: ClusterView) -> list[str]:
    return [name for name in sorted(view.unreachable) if view.members[name].status in UNDECIDED]
