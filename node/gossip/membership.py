"""Membership: who is in the cluster, seen by one node. A state machine without sockets, threads, clocks (R2).

What its driver owes it: `Start` once; every message for `/membership` as `Received` with the sender that the
connection proved; a `Tick` at `next_wake_ns` at the latest (a late one is noticed: silence while this process did not
run is held against nobody). Effects are carried out in order. A `Decided` record is written down before what follows
it. After `Removed` the process stops writing and exits; nothing here needs to be durable, since a restart is a new
incarnation. `now_ns` never goes back.

Gossip is push-pull, digest first; `state.py` says why digests of a lattice do here what version vectors would.
"""

from __future__ import annotations

import enum
from collections import Counter
from typing import assert_never

import msgspec

from node.core import limits
from node.core.ids import NodeId
from node.core.rng import Rng
from node.gossip import leader
from node.gossip.admission import Rival, over, refusal, sound
from node.gossip.detector import Watch
from node.gossip.events import (
    Changed,
    Decided,
    Down,
    Effect,
    Event,
    Leave,
    Received,
    Refused,
    Removed,
    Send,
    Start,
    Tick,
    TurnedAway,
)
from node.gossip.exchange import Exchange
from node.gossip.join import Joiner, Seed
from node.gossip.member import TAKING_PART, Member, Status, moved
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
from node.gossip.peers import Peers
from node.gossip.ring import ring_of, watched_by
from node.gossip.settings import ClusterIdentity, MembershipSettings
from node.gossip.splitbrain import Resolver
from node.gossip.state import GossipState, Row, build, merge
from node.gossip.view import ClusterView, look


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
    ) -> None:
        """`may_bootstrap`: whether this node may form a cluster at all, if it is the first seed or `bootstrap` is set.
        `existed`: the state store knows this cluster from before, so listen for its members before forming it anew."""
        self.me = me
        self.settings = settings
        self.cluster = cluster
        self.phase = Phase.NEW
        self.view = ClusterView(me.id, cluster.id)
        self.why_not_joined = "not started"
        self.counters: Counter[str] = Counter()
        self._rng = rng
        self._joiner = Joiner(
            me.node, settings, seeds, rng, may_form=may_bootstrap, bootstrap=bootstrap, existed=existed
        )
        self._peers = Peers(me.node, seeds, 2 * settings.acceptable_pause_ns)
        self._seeds = tuple(s for s in seeds if s.node != me.node)
        self._watch = Watch(settings)
        self._resolver = Resolver(settings)
        self._rival = Rival(settings)
        self._gossip = Exchange(me.id, me.control, "", cluster.id)
        self._turned_away: dict[str, str] = {}
        self._stale = True
        self._now = 0
        self._out: list[Effect] = []
        self._heartbeat_ns = self._gossip_ns = self._probe_ns = 0
        self._blocked_ns = -1
        self._leave_by_ns: int | None = None

    # --- driving

    def step(self, event: Event, now_ns: int) -> list[Effect]:
        """Take in one event; returns what to do about it, in order."""
        if self.phase is Phase.OUT:
            return []
        self._forgive_own_lateness(now_ns)
        self._now = now_ns
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
                self._down([node], by)
            case _:
                assert_never(event)
        if self.phase is Phase.JOINING:
            self._join_timers()
        if self.phase is Phase.MEMBER:
            self._member_timers()
        out, self._out = self._out, []
        return out

    def next_wake_ns(self) -> int | None:
        """When the next Tick is due; None before the start and after the end."""
        if self.phase is Phase.JOINING:
            form = self._joiner.form_due_ns()
            return self._joiner.next_ns if form is None else min(self._joiner.next_ns, max(form, self._now))
        if self.phase is Phase.MEMBER:
            return min(self._heartbeat_ns, self._gossip_ns)
        return None

    @property
    def state(self) -> GossipState:
        """What is gossiped, tombstones included."""
        return self._gossip.state

    def phi(self, now_ns: int) -> dict[NodeId, float]:
        """Suspicion of each peer that this node watches."""
        return self._watch.phi(now_ns)

    def _forgive_own_lateness(self, now_ns: int) -> None:
        due = self.next_wake_ns()
        late = 0 if due is None else now_ns - due
        if self.phase is Phase.MEMBER and late >= 2 * self.settings.heartbeat_ns:
            self.counters["self_late"] += 1
            self._watch.forgive(late)
            self._resolver.forgive(late)

    # --- joining

    def _start(self) -> None:
        if self.phase is not Phase.NEW:
            return
        self.phase = Phase.JOINING
        self._joiner.start(self._now)
        self._out += self._peers.sync(self.state, self._now)

    def _join_timers(self) -> None:
        if self._joiner.may_form(self._now):
            self._form()
            return
        for node in self._joiner.to_ask(self._now):
            self._send(node, JoinRequest(self.me, self.cluster.name, self.cluster.id, dict(self.cluster.agreed)))
        self._refused(self._joiner.why())

    def _form(self) -> None:
        self._enter(f"{self.me.id}/{self._rng.getrandbits(64):016x}", self.cluster.id, self.state.with_member(self.me))

    def _enter(self, formation: str, cluster_id: str, state: GossipState) -> None:
        self.phase = Phase.MEMBER
        self._gossip = Exchange(self.me.id, self.me.control, formation, cluster_id)
        self.view = ClusterView(self.me.id, cluster_id, formation)
        self._heartbeat_ns = self._gossip_ns = self._now
        self._probe_ns = self._now + self.settings.acceptable_pause_ns
        self._refused("")
        self._adopt(state)

    def _refused(self, reason: str) -> None:
        if reason != self.why_not_joined:
            self.why_not_joined = reason
            self._out.append(Refused(reason))

    # --- receiving

    def _receive(self, sender: NodeId, message: msgspec.Struct) -> None:
        if sender.name == self.me.node:
            self.counters["from_own_name"] += 1
            return
        match message:
            case JoinRequest():
                self._on_join(sender, message)
            case JoinWaiting() if self.phase is Phase.JOINING:
                self._joiner.answered_waiting(sender.name)
            case JoinRefused(key="incarnation", joiner=here) if (
                self.phase is Phase.JOINING and here == str(self.me.incarnation)
            ):
                # It was decided out while it joined. No retry helps this start of it; the next one will be let in.
                self._end(f"{sender} refuses it: incarnation {here} is over, {message.member}")
            case JoinRefused(key, here, there) if self.phase is Phase.JOINING:
                self._joiner.answered_refused(sender.name, key, here, there, self._now)
            case Heartbeat(_, _, control) | Digest(_, _, _, control) if self.phase is Phase.JOINING:
                if self._joiner.heard(sender.name, control, self._now):
                    self._out += self._peers.replace(sender.name, control, "")
            case StateMessage() if not sound(message):
                self.counters["bad_state"] += 1
            case StateMessage() if self.phase is Phase.JOINING:
                self._on_first_state(message)
            case Heartbeat() | HeartbeatAck() | Digest() | StateMessage() | RemovedNotice() if (
                self.phase is Phase.MEMBER
            ):
                self._on_gossip(sender, message)
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
        refused = refusal(message, self.cluster, self.state.members)
        if refused is not None:
            self._send(joiner.node, JoinRefused(refused.key, refused.joiner, refused.member))
            self._turn_away(sender, f"{refused.key} is {refused.joiner!r} there and {refused.member!r} here")
            return
        if self.phase is not Phase.MEMBER:
            self._send(joiner.node, JoinWaiting(self.why_not_joined))
            return
        if is_new:
            self._adopt(self.state.with_member(joiner))
        self._send(joiner.node, self._gossip.whole(reply=False))

    def _turn_away(self, node: NodeId, reason: str) -> None:
        """Say so once; a node that is refused asks again and again."""
        if self._turned_away.get(node.name) == reason:
            return
        if len(self._turned_away) >= limits.guests_max:
            self._turned_away.clear()
        self._turned_away[node.name] = reason
        self._out.append(TurnedAway(node, reason))

    def _on_first_state(self, message: StateMessage) -> None:
        state = build(message.members, message.rows, message.up_mark)
        if not state.live(self.me.id):
            self.counters["state_without_me"] += 1
            return
        self._enter(message.formation, message.cluster_id or self.cluster.id, state)
        self._gossip.saw(message.seen)

    def _on_gossip(
        self, sender: NodeId, message: Heartbeat | HeartbeatAck | Digest | StateMessage | RemovedNotice
    ) -> None:
        if message.formation != self._gossip.formation:
            self._on_foreign(sender, message)
            return
        known = self.state.members.get(sender.name)
        cause = over(known, sender)
        if cause:
            self.counters["from_removed"] += 1
            self._greet(sender, message)
            self._send(sender.name, RemovedNotice(sender, self._gossip.formation, cause))
            return
        match message:
            case Heartbeat(_, sequence):
                self._send(sender.name, HeartbeatAck(self._gossip.formation, sequence))
            case HeartbeatAck(_, sequence):
                self._on_ack(sender, sequence)
            case Digest():
                self._on_digest(sender, message)
            case StateMessage():
                self._on_state(sender, message)
            case RemovedNotice(subject, _, cause):
                if subject == self.me.id:
                    self._end(cause)

    def _on_foreign(self, sender: NodeId, message: msgspec.Struct) -> None:
        """From another formation: an old one whose news has not reached the sender yet, or a rival of ours."""
        self.counters["foreign_formation"] += 1
        if not isinstance(message, StateMessage):
            if self._greet(sender, message):
                self._send(sender.name, self._gossip.whole(reply=True))
        elif message.cluster_id == self._gossip.cluster_id:
            cause = self._rival.gives_way(self.state, self.me.id, self._gossip.formation, message, sender, self._now)
            if cause:
                self._down([m.node for m in self.view.members.values() if self.view.reachable(m.node)], cause)
            elif message.reply:
                self._send(sender.name, self._gossip.whole(reply=False))

    def _greet(self, sender: NodeId, message: msgspec.Struct) -> bool:
        """Open a way to a node that isn't a member, where its message says how; whether it did say."""
        if not isinstance(message, Heartbeat | Digest):
            return False
        self._out += self._peers.guest(sender.name, message.control, "", self._now)
        return True

    # --- gossip

    def _on_ack(self, sender: NodeId, sequence: int) -> None:
        if not self._watch.answered(sender, sequence, self._now):
            self.counters["ack_unexpected"] += 1
        elif not self.state.sees(self.me.id, sender):
            self._report(sender, reachable=True)

    def _on_digest(self, sender: NodeId, message: Digest) -> None:
        if message.digest != self.state.digest:
            self._send(sender.name, self._gossip.whole(reply=True))
            return
        self._has_seen(sender, message.seen)

    def _on_state(self, sender: NodeId, message: StateMessage) -> None:
        theirs = build(message.members, message.rows, message.up_mark)
        self._adopt(merge(self.state, theirs))
        if self.phase is not Phase.MEMBER:
            return
        if self.state.digest == theirs.digest:
            self._has_seen(sender, message.seen)
        elif message.reply:
            self._send(sender.name, self._gossip.whole(reply=False))

    def _has_seen(self, sender: NodeId, theirs: tuple[NodeId, ...]) -> None:
        """The sender holds the same state; tell it who else does, if that is news."""
        self._stale |= self._gossip.saw((*theirs, sender))
        if self._gossip.seen - set(theirs):
            self._send(sender.name, self._gossip.digest())

    def _adopt(self, state: GossipState) -> None:
        """A later state holds from now on; nobody but this node is known to hold it."""
        if not self._gossip.adopt(state):
            return
        self._stale = True
        self._gossip_ns = min(self._gossip_ns, self._now + self.settings.gossip_ns // 10)
        mine = state.members[self.me.node]
        if mine.id != self.me.id:
            self._end(f"replaced by incarnation {mine.incarnation}")
        elif mine.status is Status.REMOVED or (mine.status is Status.DOWN and self.phase is Phase.MEMBER):
            self._end(mine.cause or mine.status.word)

    def _report(self, subject: NodeId, *, reachable: bool) -> None:
        row = self.state.rows.get((self.me.id, subject))
        version = row.version + 1 if row is not None else 1
        self._adopt(self.state.with_row(Row(self.me.id, subject, reachable, version)))

    # --- time

    def _member_timers(self) -> None:
        if self._now >= self._heartbeat_ns:
            self._heartbeat_ns = self._now + self.settings.heartbeat_ns
            self._beat()
        self._settle()
        if self.phase is Phase.MEMBER and self._now >= self._gossip_ns:
            self._gossip_round()

    def _beat(self) -> None:
        """Once an interval: judge silence, send heartbeats, decide a split, let nodes in that can't wait."""
        self._settle()
        for subject, available in self._watch.available(self._now).items():
            if not available and self.state.sees(self.me.id, subject):
                self._report(subject, reachable=False)
        self._settle()
        self._resolve()
        if self.phase is not Phase.MEMBER:
            return
        if not leader.blocked_by_unreachable_only(self.view):
            self._blocked_ns = -1
        elif self._blocked_ns < 0:
            self._blocked_ns = self._now
        elif self._now - self._blocked_ns >= self.settings.weakly_up_after_ns:
            self._adopt(self.state.with_member(*leader.weakly_up(self.view)))
        sequence, subjects = self._watch.beat()
        for subject in subjects:
            self._send(subject.name, Heartbeat(self._gossip.formation, sequence, self.me.control))
        self._out += self._peers.sync(self.state, self._now)

    def _resolve(self) -> None:
        if self.phase is not Phase.MEMBER:
            return
        decision = self._resolver.observe(self.view, self._now)
        if decision is None:
            return
        if decision.outcome == "down_self":
            self._out.append(Decided(decision))
            self._down([n.name for n in decision.reachable], decision.text())
        elif self.view.leader == self.me.node:
            self._out.append(Decided(decision))
            self._down([n.name for n in decision.unreachable if self.state.live(n)], decision.text())

    def _settle(self) -> None:
        """Bring the view up to date, and act as the leader until nothing is left to do."""
        while self._stale and self.phase is Phase.MEMBER:
            self._stale = False
            before = self.view
            self.view = look(
                self.state, self.me.id, self._gossip.seen, self.settings.neighbours, before=before, now_ns=self._now
            )
            if self.view != before:
                self._out.append(Changed(self.view))
            mine = self.view.members[self.me.node]
            if mine.status is Status.EXITING and self.view.converged:
                self._end("left")
                return
            moves = leader.actions(self.view, self.state.up_mark)
            if moves:
                self._adopt(self.state.with_member(*moves))
                if not self._is_member():
                    return
            watched = watched_by(self.state, ring_of(self.state), self.me.id, self.settings.neighbours)
            self._watch.assign(watched, self._now)
            self._out += self._peers.sync(self.state, self._now)
        if self._is_member() and self._leave_by_ns is not None and self._now >= self._leave_by_ns:
            self._end("left")

    def _is_member(self) -> bool:
        return self.phase is Phase.MEMBER

    def _gossip_round(self) -> None:
        peers = [m for m in self.view.members.values() if m.node != self.me.node and self.view.reachable(m.node)]
        near = [m for m in peers if self.state.sees(self.me.id, m.id)] or peers
        behind = [m for m in near if m.id not in self._gossip.seen]
        interval = self.settings.gossip_ns // (4 if behind else 1)
        self._gossip_ns = self._now + interval
        # Mostly to those that lack it; the rest keeps a lost exchange or a bad link from holding everything up.
        if behind and self._rng.random() < 0.8:
            near = behind
        if near:
            self._send(self._rng.choice(near).node, self._gossip.digest())
        if self._now >= self._probe_ns:
            self._probe_ns = self._now + self.settings.acceptable_pause_ns
            for seed in self._seeds:
                if seed.node not in self.view.members:
                    self._send(seed.node, self._gossip.digest())

    # --- leaving

    def _leave(self) -> None:
        if self.phase is Phase.JOINING:
            self._end("left")
        if self.phase is not Phase.MEMBER or self._leave_by_ns is not None:
            return
        self._leave_by_ns = self._now + self.settings.leave_wait_ns
        mine = self.state.members[self.me.node]
        if mine.status < Status.LEAVING:
            self._adopt(self.state.with_member(moved(mine, Status.LEAVING)))

    def _down(self, names: list[str], cause: str) -> None:
        found = [self.state.members[n] for n in names if n in self.state.members]
        marked = [moved(m, Status.DOWN, cause=cause) for m in found if m.status in TAKING_PART]
        if marked and self.phase is Phase.MEMBER:
            self._adopt(self.state.with_member(*marked))

    def _end(self, cause: str) -> None:
        """Out. The last word goes to everybody this node can reach, so that nobody has to find out by silence."""
        if self.phase is Phase.OUT:
            return
        if self.phase is Phase.MEMBER:
            last: msgspec.Struct = self._gossip.whole(reply=False) if self._stale else self._gossip.digest()
            for member in self.view.members.values():
                if member.node != self.me.node and self.view.reachable(member.node):
                    self._send(member.node, last)
        self.phase = Phase.OUT
        self._out.append(Removed(cause, left=self._leave_by_ns is not None or cause == "left"))

    def _send(self, node: str, message: msgspec.Struct) -> None:
        self._out.append(Send(node, message))
