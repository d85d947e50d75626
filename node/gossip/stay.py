"""What the roster makes of this replica: whether it counts, what it must do before it does, whom it may believe.

A replica *counts* while the roster has its node under the tenure in its own file. Any other is an *outsider*: a new
one, one whose node was taken off the roster meanwhile, a copy, an old backup. It takes over what the replicas of the
roster have (its *sources*), and then joins under a new tenure. What an outsider found in its file is *suspect* until
the take-over is whole: it is not served, offered or merged into others, and values that no source has are discarded.
What was written since is not suspect: `proven`.

Nobody waits for an outsider before a removal is forgotten, also for one that has taken over and is about to join. So a
take-over holds for a while only (`ReplicationSettings.fresh_ns`), unless a comparison with a source renews it: an
outsider that was cut off or stood still for longer takes over again.

When no source exists there is nothing to take over and nothing to protect: the roster is empty (a new cluster), or all
others on it have said that they don't count either. Then outsiders merge by version, as the replicas of the roster do
after a whole-cluster restart.

The tenure that an outsider will join under is on its own disk before the coordinator hears of it. So a crash in between
leaves a file of a tenure that the roster doesn't have, and the take-over is done again; and a file can't be of the
roster's tenure without being the replica that joined.
"""

from __future__ import annotations

from node.gossip.replica_roster import ReplicaRoster


class Stay:
    """Of the node `me`, whose file is of `tenure` (0: a new one) and held `entries` when it was opened."""

    def __init__(self, me: str, tenure: int, *, entries: bool) -> None:
        self.me = me
        self._found = entries
        self.cleared = False  # whether it has taken over, or found that there was nothing to
        self._cleared_ns = 0
        self._vacant: set[str] = set()
        self._roster: ReplicaRoster | None = None
        self._counts = False  # asked for at every message, so it is kept
        self.tenure = tenure
        self.proven: set[str] = set()

    @property
    def known(self) -> bool:
        """Whether there is a roster to go by."""
        return self._roster is not None

    @property
    def roster(self) -> ReplicaRoster:
        return self._roster or ReplicaRoster()

    @property
    def counts(self) -> bool:
        """Whether this replica is on the roster."""
        return self._counts

    @property
    def vote(self) -> int:
        """The tenure under which this replica counts, 0 when it doesn't."""
        return self.tenure if self.counts else 0

    @property
    def sources(self) -> frozenset[str]:
        """Whom an outsider has to take over from."""
        return self.roster.names() - {self.me} - self._vacant

    @property
    def taking_over(self) -> bool:
        """Whether this replica is an outsider that has not taken over yet, and there is something to."""
        return self.known and not self.counts and not self.cleared and bool(self.sources)

    @property
    def suspect(self) -> bool:
        """Whether what is held here must be kept from everybody."""
        if self._roster is None:
            return True
        return self._found and not self.cleared and self.taking_over

    def adopt(self, roster: ReplicaRoster) -> bool:
        """Another roster holds, if it is newer; says whether it is."""
        if self._roster is not None and roster.version <= self._roster.version:
            return False
        counted, self._roster = self._counts, roster
        self._judge()
        self._vacant &= roster.names()
        if counted and not self.counts:
            # Taken off while it ran: what it holds may be what was removed meanwhile.
            self._take_over()
        return True

    def outdated(self, by_ns: int) -> bool:
        """An outsider whose take-over is of that time or older has to take over again; says whether this one has."""
        if self._counts or not self.cleared or self._cleared_ns > by_ns or not self.sources:
            return False
        self._take_over()
        return True

    def _take_over(self) -> None:
        self._found, self.cleared = True, False
        self.proven.clear()

    def became(self, tenure: int) -> None:
        """The file is of that tenure now."""
        self.tenure = tenure
        self._judge()

    def _judge(self) -> None:
        self._counts = self.tenure > 0 and self.roster.tenure_of(self.me) == self.tenure

    def heard(self, peer: str, tenure: int, version: int) -> None:
        """A peer, which knows the roster of that version, said under which tenure its replica counts."""
        if tenure and tenure == self.roster.tenure_of(peer):
            self._vacant.discard(peer)
        elif version >= self.roster.version and peer in self.roster.names():
            self._vacant.add(peer)

    def prove(self, key: str) -> None:
        """The key was written since, here or at a peer."""
        if self.suspect:
            self.proven.add(key)

    def vouches(self, peer: str, tenure: int) -> bool:
        """Whether a comparison with the peer shows that this replica has all that counts."""
        if self.counts or not self.sources:
            return True
        return peer in self.sources and tenure == self.roster.tenure_of(peer)

    def taken_over(self, at_ns: int) -> None:
        """All that the sources had then is here, and nothing else."""
        self.cleared = True
        self._cleared_ns = at_ns
        self.proven.clear()

    def wish(self) -> int:
        """The tenure to join under: one that was never used."""
        return max(self.tenure, self.roster.last_tenure_of(self.me)) + 1
