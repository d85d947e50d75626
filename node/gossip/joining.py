"""The roster as this replica hears of it, tells it, and asks to be on it."""

from __future__ import annotations

from node.core.clock import MS
from node.gossip.antientropy import AntiEntropy
from node.gossip.caretaker import Caretaker
from node.gossip.committing import Committer
from node.gossip.replica_io import Effect, Fault, FaultCleared, JoinRoster, ReplicationSettings, Send
from node.gossip.replica_messages import RosterNews
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.stay import Stay

_AWAITED = "E-REPLICA-AWAITED"


class Joining:
    """News of the roster go to all peers when it changes, and regularly from whoever knows it at first hand."""

    def __init__(
        self,
        stay: Stay,
        antientropy: AntiEntropy,
        committer: Committer,
        caretaker: Caretaker,
        settings: ReplicationSettings,
    ) -> None:
        self._stay = stay
        self._antientropy = antientropy
        self._committer = committer
        self._caretaker = caretaker
        self._settings = settings
        self._said_ns: int | None = None
        self._asked_ns: int | None = None
        self._wish = 0
        self._awaiting = False

    def known(self, roster: ReplicaRoster, now_ns: int, peers: frozenset[str]) -> tuple[bool, list[Send]]:
        """The driver read it just now; whether it is newer, and what to tell the others."""
        changed = self._stay.adopt(roster)
        if roster.version < self._stay.roster.version:
            return False, []  # read before it changed
        self._caretaker.confirmed(now_ns)
        if not changed and self._said_ns is not None and now_ns < self._said_ns + self._settings.roster_say_ns // 2:
            return False, []
        self._said_ns = now_ns
        return changed, [Send(peer, RosterNews(roster, 0)) for peer in sorted(peers)]

    def heard(self, news: RosterNews, now_ns: int, peers: frozenset[str]) -> tuple[bool, list[Send]]:
        """A peer told it."""
        changed = self._stay.adopt(news.roster)
        if news.roster.version == self._stay.roster.version:
            self._caretaker.confirmed(now_ns - news.age_ms * MS)
        return changed, [Send(peer, self.news(now_ns)) for peer in sorted(peers)] if changed else []

    def news(self, now_ns: int) -> RosterNews:
        """For a peer that knows an older one."""
        fresh_ns = self._caretaker.fresh_ns
        # Older than any use, when it was never confirmed.
        age_ms = (now_ns - fresh_ns) // MS if fresh_ns is not None else self._settings.tombstone_min_age_ms
        return RosterNews(self._stay.roster, age_ms)

    def tick(self, now_ns: int, peers: frozenset[str]) -> list[Effect]:
        """Asks to be put on the roster, once this replica is complete and has just been compared."""
        if self._stay.counts and not self._awaiting:
            return []
        effects = self._await_sources(peers)
        ready = self._antientropy.ready and not self._stay.taking_over
        if not self._stay.known or self._stay.counts or not ready or not self._recent(now_ns):
            return effects
        if not self._wish:
            self._wish = self._stay.wish()
            self._committer.write_tenure(self._wish)
        if self._stay.tenure != self._wish:
            return effects  # it is on its way to disk
        if self._asked_ns is None or now_ns >= self._asked_ns + self._settings.join_retry_ns:
            self._asked_ns = now_ns
            effects.append(JoinRoster(self._stay.tenure))
        return effects

    def written(self, tenure: int) -> None:
        """The file is of that tenure now."""
        self._stay.became(tenure)
        self._asked_ns = None

    def roster_changed(self) -> None:
        """A wish that the roster has overtaken is no longer one."""
        if self._stay.counts or self._stay.roster.last_tenure_of(self._stay.me) >= self._wish:
            self._wish = 0

    def _recent(self, now_ns: int) -> bool:
        if not self._stay.sources:
            return True
        whole_ns = self._antientropy.whole_ns
        return whole_ns is not None and now_ns - whole_ns <= self._settings.fresh_ns

    def _await_sources(self, peers: frozenset[str]) -> list[Effect]:
        awaiting = self._stay.taking_over and peers.isdisjoint(self._stay.sources)
        if awaiting == self._awaiting:
            return []
        self._awaiting = awaiting
        if not awaiting:
            return [FaultCleared(_AWAITED, "replica")]
        names = ", ".join(sorted(self._stay.sources))
        text = f"this replica is not on the roster and must take over from one that is: none of {names} is in reach"
        return [Fault(_AWAITED, "replica", text)]
