"""Finding a cluster, or forming one: the part of membership before there is any.

A node asks all seeds again and again, with backoff, for ever, and can always say why it has not joined. Only the first
seed, or a node told so, may form a cluster, and only when nobody that it can hear has one. Whether it may at all is
the engine's word, which knows from the state store.

A first seed that restarts alone must find the living cluster instead. It has three ways: the other seeds let it in; a
member that still knocks at its door (heartbeats go to its old incarnation) tells it where to ask; and where the store
says that the cluster existed, it listens for `form_wait` before it forms one even if all other seeds have none.
"""

from __future__ import annotations

from dataclasses import dataclass

from node.core import limits
from node.core.rng import Rng
from node.gossip.admission import PASSING
from node.gossip.settings import MembershipSettings


@dataclass(frozen=True, slots=True)
class Seed:
    """A node to ask, by its name and its control address `host:port`, which is empty while it is not known."""

    node: str
    control: str


class Joiner:
    """Whom to ask, when, whether to form a cluster, and why none was joined. Driven by Membership."""

    def __init__(
        self,
        me: str,
        settings: MembershipSettings,
        seeds: tuple[Seed, ...],
        rng: Rng,
        *,
        may_form: bool,
        bootstrap: bool,
        existed: bool,
    ) -> None:
        self._settings = settings
        self._rng = rng
        self._first = seeds[0].node if seeds else ""
        self._may_form = may_form
        self._bootstrap = bootstrap
        self._existed = existed
        self._me = me
        self._problem = ""
        self.seeds = tuple(s for s in seeds if s.node != me)
        self.contacts: dict[str, str] = {s.node: s.control for s in self.seeds if s.control}
        self._answers: dict[str, str] = {}
        self._waiting: set[str] = set()
        self._misfits: dict[str, bool] = {}  # who refused for what no retry changes, and whether it is a member
        self._misfit_ns = 0
        self._retry_ns = settings.join_retry_ns
        self._form_ns = 0
        self.next_ns = 0

    def replace(self, seeds: tuple[Seed, ...], problem: str, now_ns: int) -> None:
        """Other seeds from now on; one that is new is asked at once."""
        others = tuple(s for s in seeds if s.node != self._me)
        was = {s.node: s.control for s in self.seeds}
        news = any(s.control and was.get(s.node) != s.control for s in others)
        for node in was.keys() - {s.node for s in others}:
            self.contacts.pop(node, None)
            self._waiting.discard(node)
            self._misfits.pop(node, None)
        self.seeds, self._problem = others, problem
        self._first = seeds[0].node if seeds else ""
        self.contacts |= {s.node: s.control for s in others if s.control}
        if news:
            self.next_ns = now_ns
            self._retry_ns = self._settings.join_retry_ns

    def start(self, now_ns: int) -> None:
        self._form_ns = now_ns + self._settings.form_wait_ns
        self.next_ns = now_ns

    def to_ask(self, now_ns: int) -> list[str]:
        """The contacts to send a request to now; empty when it isn't time yet."""
        if now_ns < self.next_ns:
            return []
        jitter = 0.9 + 0.2 * self._rng.random()
        self.next_ns = now_ns + int(self._retry_ns * jitter)
        self._retry_ns = min(self._retry_ns * 3 // 2, self._settings.join_retry_max_ns)
        return sorted(self.contacts)

    def heard(self, node: str, control: str, now_ns: int) -> bool:
        """A living cluster's member was heard: ask it, and don't form another. True if it is a new contact."""
        self._postpone(now_ns)
        full = node not in self.contacts and len(self.contacts) >= limits.members_max
        if not control or full or self.contacts.get(node) == control:
            return False
        self.contacts[node] = control
        self.next_ns = now_ns
        self._retry_ns = self._settings.join_retry_ns
        return True

    def answered_waiting(self, node: str) -> None:
        self._waiting.add(node)
        self._misfits.pop(node, None)
        self._answers[node] = "has no cluster either"

    def answered_refused(self, node: str, key: str, here: str, there: str, by: str, now_ns: int) -> None:
        """Refused means that there is a cluster, and forming a second one beside it is never the answer; unless it is
        another joiner that refuses, whose mistake must keep nobody from forming one."""
        if by != "joiner":
            self._postpone(now_ns)
        self._waiting.discard(node)
        self._misfits.pop(node, None)
        if key not in PASSING and by != "joiner":
            if not self._misfits:
                self._misfit_ns = now_ns
            self._misfits[node] = by == "member"
        self._answers[node] = f"refuses this node: {key} is {here!r} here and {there!r} there"

    def misfit(self, now_ns: int) -> str:
        """Why this node can never join as it is, in words; empty while somebody else might let it in. It takes a
        member's word, or everybody's where it isn't known who they are: of two joiners either may be wrong."""
        if not self._misfits or now_ns - self._misfit_ns < 2 * self._settings.join_retry_ns:
            return ""
        by_all = self._misfits.keys() >= self.contacts.keys()
        if self._waiting or not (by_all or any(self._misfits.values())):
            return ""
        node = min(self._misfits, key=lambda node: (not self._misfits[node], node))
        return f"{node} {self._answers[node]}"

    @property
    def _eligible(self) -> bool:
        return self._bootstrap or self._first == self._me

    def may_form(self, now_ns: int) -> bool:
        if not (self._may_form and self._eligible):
            return False
        nobody_has_one = not self._existed and not self._problem and {s.node for s in self.seeds} <= self._waiting
        return nobody_has_one or now_ns >= self._form_ns

    def form_due_ns(self) -> int | None:
        """When this node would form a cluster, if it may."""
        return self._form_ns if self._may_form and self._eligible else None

    def why(self) -> str:
        """Why this node has not joined, for `node show` and readiness."""
        asked = [f"{n} ({self.contacts[n]}) {self._answers.get(n, 'does not answer')}" for n in sorted(self.contacts)]
        asked += [self._problem] if self._problem else []
        words = "; ".join(asked) or "there is no other seed to ask"
        if not self._eligible:
            first = f", {self._first}," if self._first else ""
            return f"{words}; only the first seed{first} or a node started with --bootstrap may form a cluster"
        if not self._may_form:
            return f"{words}; this node was told not to form a cluster"
        return f"{words}; listening for a living cluster before forming one"

    def _postpone(self, now_ns: int) -> None:
        self._form_ns = max(self._form_ns, now_ns + self._settings.form_wait_ns)
