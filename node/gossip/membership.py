"""Membership: who is in the cluster, seen by one node. A state machine without sockets, threads, clocks (R2).

What its driver owes it: `Start` once; every message for `/membership` as `Received` with the sender that the
connection proved; a `Tick` at `next_wake_ns` at the latest (a late one is noticed: silence while this process did not
run is held against nobody); `LeaseAnswered` for each `AskLease`. Effects are carried out in order. A `Decided` record
is written down before what follows it. After `Removed` the process stops writing and exits; nothing here needs to be
durable, since a restart is a new incarnation. `now_ns` never goes back.

This module knows the phases and the way in; what a node does once it is in stands in `participant.py`.
"""

from __future__ import annotations

import enum
from collections import Counter
from typing import assert_never

import msgspec

from node.core.clock import MS, rfc3339
from node.core.ids import NodeId
from node.core.rng import Rng
from node.gossip.admission import sound
from node.gossip.door import Door
from node.gossip.events import (
    Down,
    Effect,
    Event,
    LeaseAnswered,
    Leave,
    Received,
    Refused,
    Removed,
    Seeds,
    Send,
    Start,
    Tick,
)
from node.gossip.exchange import Exchange
from node.gossip.join import Joiner, Seed
from node.gossip.lateness import Lateness
from node.gossip.member import Member, Status
from node.gossip.messages import (
    Digest,
    Heartbeat,
    HeartbeatAck,
    JoinRefused,
    JoinRequest,
    JoinWaiting,
    RemovedNotice,
    StateMessage,
)
from node.gossip.participant import Participant
from node.gossip.peers import Peers
from node.gossip.settings import ClusterIdentity, MembershipSettings
from node.gossip.splitbrain import Lease
from node.gossip.state import GossipState, build
from node.gossip.view import ClusterView

# Not written as a union where it is asked: that would be made anew for every heartbeat.
_AMONG_MEMBERS = (Heartbeat, HeartbeatAck, Digest, StateMessage, RemovedNotice)


class Phase(enum.Enum):
    """A machine only moves forward; a node that is out comes back as a new process with a new incarnation."""

    NEW = "new"
    JOINING = "joining"
    MEMBER = "member"
    OUT = "out"


class Membership:
    """One node's machine. `view` is what holds now, `why_not_joined` is empty once joined, `counters` count whatever
    was dropped, by reason (I9)."""

    def __init__(
        self,
        me: Member,
        settings: MembershipSettings,
        seeds: tuple[Seed, ...],
        cluster: ClusterIdentity,
        rng: Rng,
        *,
        may_bootstrap: bool,
        bootstrap: bool = False,
        existed: bool = False,
        wall_zero_ms: int = 0,
    ) -> None:
        """`may_bootstrap`: whether this node may form a cluster at all, if it is the first seed or `bootstrap` is set.
        `existed`: the state store knows this cluster from before, so listen for its members before forming it anew.
        `wall_zero_ms`: the wall clock at monotonic zero, only for the times in words and records."""
        self.me = me
        self.settings = settings
        self.cluster = cluster
        self.why_not_joined = "not started"
        self.counters: Counter[str] = Counter()
        self.late = Lateness(settings)
        self._rng = rng
        self._joiner = Joiner(
            me.node, settings, seeds, rng, may_form=may_bootstrap, bootstrap=bootstrap, existed=existed
        )
        self._peers = Peers(me.node, seeds, 2 * settings.acceptable_pause_ns)
        self._door = Door(cluster, settings)
        self._wall_zero_ms = wall_zero_ms
        self._started = self._over = False
        self._now = self._wall_ms = 0
        self._out: list[Effect] = []
        self._part: Participant | None = None

    @property
    def phase(self) -> Phase:
        if self._over:
            return Phase.OUT
        if self._part is not None:
            return Phase.MEMBER
        return Phase.JOINING if self._started else Phase.NEW

    @property
    def view(self) -> ClusterView:
        return self._part.view if self._part else ClusterView(self.me.id, self.cluster.id)

    @property
    def state(self) -> GossipState:
        """What is gossiped, tombstones included."""
        return self._part.state if self._part else GossipState()

    @property
    def seen(self) -> frozenset[NodeId]:
        """The members known to hold this state."""
        return self._part.seen if self._part else frozenset()

    @property
    def blocked(self) -> str:
        """Why this node leads and can't act; empty when it can, or another leads."""
        return self._part.blocked if self._part else ""

    def phi(self, now_ns: int) -> dict[NodeId, float]:
        """Suspicion of each peer that this node watches."""
        return self._part.phi(now_ns) if self._part else {}

    def clock_ahead_ms(self, now_ns: int, wall_ms: int) -> int:
        """By how much a wall clock is ahead of most others', where they would refuse it; else 0."""
        return self._part.clock_ahead_ms(now_ns, wall_ms) if self._part else 0

    # --- driving

    def step(self, event: Event, now_ns: int, wall_ms: int = 0) -> list[Effect]:
        """Take in one event; returns what to do about it, in order. `wall_ms` is only compared with others', and 0
        when it is not known."""
        if self._over:
            return []
        self._now, self._wall_ms = now_ns, wall_ms
        if self._part is not None:
            self._part.wake(now_ns, wall_ms)
        match event:
            case Start():
                self._start()
            case Tick():
                pass
            case Received(sender, message):
                self._receive(sender, message)
            case Leave():
                self._leave()
            case Down(node, by):
                if self._part is not None:
                    self._part.down([node], f"at {rfc3339(self._wall_zero_ms + now_ns // MS)} by {by}")
            case LeaseAnswered(granted, holder):
                if self._part is not None:
                    self._part.lease_answered(Lease(granted, holder))
            case Seeds(seeds, problem):
                self._seeds_changed(seeds, problem)
            case _:
                assert_never(event)
        if self._part is not None:
            self._part.timers()
            self._over = self._part.over
        elif self.phase is Phase.JOINING:
            self._join_timers()
        out, self._out[:] = self._out[:], []
        return out

    def next_wake_ns(self) -> int | None:
        """When the next Tick is due; None before the start and after the end."""
        if self._over or not self._started:
            return None
        if self._part is not None:
            return self._part.next_wake_ns()
        form = self._joiner.form_due_ns()
        return self._joiner.next_ns if form is None else min(self._joiner.next_ns, max(form, self._now))

    # --- joining

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        self._joiner.start(self._now)
        self._out += self._peers.sync(self.state, self._now)

    def _seeds_changed(self, seeds: tuple[Seed, ...], problem: str) -> None:
        self._joiner.replace(seeds, problem, self._now)
        self._peers.replace_seeds(seeds)
        if self._part is not None:
            self._part.seeds = tuple(s for s in seeds if s.node != self.me.node)
        if self._started:
            self._out += self._peers.sync(self.state, self._now)

    def _join_timers(self) -> None:
        misfit = self._joiner.misfit(self._now)
        if misfit:
            self._over = True
            self._out.append(Removed(misfit, left=False, misfit=True))
            return
        if self._joiner.may_form(self._now):
            formation = f"{self.me.id}/{self._rng.getrandbits(64):016x}"
            self._enter(formation, self.cluster.id, self.state.with_member(self.me), ())
            return
        for node in self._joiner.to_ask(self._now):
            self._send(node, JoinRequest(self.me, self.cluster.name, self.cluster.id, dict(self.cluster.agreed)))
        self._refused(self._joiner.why())

    def _enter(self, formation: str, cluster_id: str, state: GossipState, seen: tuple[NodeId, ...]) -> None:
        self._refused("")
        self._part = Participant(
            self.me,
            self.settings,
            Exchange(self.me.id, self.me.control, formation, cluster_id),
            self._peers,
            self.late,
            self._rng,
            self.counters,
            self._out,
            wall_zero_ms=self._wall_zero_ms,
        )
        self._part.seeds = self._joiner.seeds
        self._part.enter(state, seen, self._now, self._wall_ms)
        self._part.timers()
        self._over = self._part.over

    def _refused(self, reason: str) -> None:
        if reason != self.why_not_joined:
            self.why_not_joined = reason
            self._out.append(Refused(reason))

    def _leave(self) -> None:
        if self._part is not None:
            self._part.leave()
        elif self._started:
            self._end("left", left=True)

    def _end(self, cause: str, *, left: bool) -> None:
        """Over before it was in."""
        self._over = True
        self._out.append(Removed(cause, left))

    # --- receiving

    def _receive(self, sender: NodeId, message: msgspec.Struct) -> None:
        if sender.name == self.me.node:
            self.counters["from_own_name"] += 1
        elif isinstance(message, JoinRequest):
            self._on_join(sender, message)
        elif isinstance(message, StateMessage) and not sound(message):
            self.counters["bad_state"] += 1
        elif self._part is None and self._started:
            self._on_answer(sender, message)
        elif self._part is not None and isinstance(message, _AMONG_MEMBERS):
            self._part.on_gossip(sender, message)
        else:
            self.counters["unexpected"] += 1

    def _on_answer(self, sender: NodeId, message: msgspec.Struct) -> None:
        """While joining: what seeds answer, and members that still knock at this node's door."""
        match message:
            case JoinWaiting():
                self._joiner.answered_waiting(sender.name)
            case JoinRefused(key="incarnation", joiner=here) if here == str(self.me.incarnation):
                # It was decided out while it joined. No retry helps this start of it; the next one will be let in.
                self._end(f"{sender} refuses it: incarnation {here} is over, {message.member}", left=False)
            case JoinRefused(key, here, there, by):
                self._joiner.answered_refused(sender.name, key, here, there, by, self._now)
            case Heartbeat(_, _, control) | Digest(_, _, _, control):
                if self._joiner.heard(sender.name, control, self._now):
                    self._out += self._peers.replace(sender.name, control, "")
            case StateMessage():
                state = build(message.members, message.rows, message.up_mark)
                if state.live(self.me.id):
                    self._enter(message.formation, message.cluster_id or self.cluster.id, state, message.seen)
                else:
                    self.counters["state_without_me"] += 1
            case _:
                self.counters["unexpected"] += 1

    def _on_join(self, sender: NodeId, message: JoinRequest) -> None:
        joiner = msgspec.structs.replace(message.member, status=Status.JOINING, up_number=0, cause="")
        if joiner.id != sender:
            self.counters["join_for_another"] += 1
            return
        known = self.state.members.get(joiner.node)
        is_new = known is None or known.incarnation < joiner.incarnation
        self._out += (
            self._peers.replace(joiner.node, joiner.control, joiner.data)
            if known is not None and is_new and known.status is not Status.REMOVED
            else self._peers.guest(joiner.node, joiner.control, joiner.data, self._now)
        )
        refused = self._door.refuse(sender, message, self.state, joined=self._part is not None)
        if refused is not None:
            answer, news = refused
            self._send(joiner.node, answer)
            self._out += [news] if news else []
        elif self._part is None:
            self._send(joiner.node, JoinWaiting(self.why_not_joined))
        else:
            self._part.admit(joiner if is_new else None, joiner.node)

    def _send(self, node: str, message: msgspec.Struct) -> None:
        self._out.append(Send(node, message))
