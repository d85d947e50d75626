"""A node's part in one formed cluster, from being let in to being out. Driven by `Membership`; sans-IO (R2).

Gossip is push-pull, digest first; `state.py` says why digests of a lattice do here what version vectors would.
Heartbeats carry the acknowledgement of the other side's: where two nodes watch each other, as they do in small
clusters, each interval costs one message in each direction.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from node.core.ids import NodeId
from node.core.rng import Rng
from node.gossip import leader
from node.gossip.admission import Rival, over
from node.gossip.detector import Watch
from node.gossip.duty import Duty
from node.gossip.events import AskLease, Blocked, Changed, ClockAhead, Decided, Effect, Late, Moved, Removed, Send
from node.gossip.exchange import Exchange
from node.gossip.join import Seed
from node.gossip.lateness import Lateness
from node.gossip.member import TAKING_PART, Member, Status, moved
from node.gossip.messages import Digest, Heartbeat, HeartbeatAck, RemovedNotice, StateMessage
from node.gossip.peers import Peers
from node.gossip.resolver import Resolver
from node.gossip.ring import ring_of, watched_by
from node.gossip.settings import MembershipSettings
from node.gossip.skew import Skew
from node.gossip.splitbrain import Decision, Lease
from node.gossip.state import GossipState, Row, build, merge, transitions
from node.gossip.target import candidates, choose
from node.gossip.view import ClusterView, look


class Participant:
    """See the module. Effects go to `out`; `over` says that this incarnation is out, for good."""

    def __init__(
        self,
        me: Member,
        settings: MembershipSettings,
        exchange: Exchange,
        peers: Peers,
        late: Lateness,
        rng: Rng,
        counters: Counter[str],
        out: list[Effect],
        *,
        wall_zero_ms: int,
    ) -> None:
        self.view = ClusterView(me.id, exchange.cluster_id, exchange.formation)
        self.over = False
        self.seeds: tuple[Seed, ...] = ()
        self._me = me
        self._id = me.id  # made anew at each look otherwise, and looked at with every heartbeat
        self._settings = settings
        self._gossip = exchange
        self._peers = peers
        self._late = late
        self._rng = rng
        self._counters = counters
        self._out = out
        self._watch = Watch(settings)
        self._resolver = Resolver(settings, wall_zero_ms)
        self._duty = Duty(settings)
        self._rival = Rival(settings)
        self._skew = Skew()
        self._stale = True
        self._now = self._wall_ms = 0
        self._heartbeat_ns = self._gossip_ns = self._probe_ns = self._judge_ns = self._wake_ns = 0
        self._leave_by_ns: int | None = None

    @property
    def state(self) -> GossipState:
        return self._gossip.state

    @property
    def seen(self) -> frozenset[NodeId]:
        return self._gossip.seen

    @property
    def blocked(self) -> str:
        return self._duty.blocked

    def phi(self, now_ns: int) -> dict[NodeId, float]:
        return self._watch.phi(now_ns)

    # --- driving

    def enter(self, state: GossipState, seen: tuple[NodeId, ...], now_ns: int, wall_ms: int) -> None:
        """Once, first: the state of the cluster that let this node in, or that it forms."""
        self._wall_ms = wall_ms
        self._now = self._heartbeat_ns = self._gossip_ns = self._judge_ns = self._wake_ns = now_ns
        self._probe_ns = now_ns + self._settings.acceptable_pause_ns
        self._adopt(state)
        self._gossip.saw(seen)

    def wake(self, now_ns: int, wall_ms: int) -> None:
        """Before each event: notice the time, and whether it passed unnoticed."""
        late_ns = now_ns - self._wake_ns
        self._now, self._wall_ms = now_ns, wall_ms
        if self._late.noticed(late_ns, now_ns):
            self._counters["self_late"] += 1
            self._watch.forgive(late_ns)
            self._resolver.forgive(late_ns)
            self._out.append(Late(self._id, self._late.ms))
        elif self._late.passed(now_ns):
            self._out.append(Late(self._id, 0))

    def timers(self) -> None:
        """After each event: whatever is due."""
        if self.over:
            return
        if self._now >= self._heartbeat_ns:
            self._heartbeat_ns = self._now + self._settings.heartbeat_ns
            self._beat()
        elif self._now >= self._judge_ns:
            self._judge()
        self._settle()
        self._judge_ns = self._judgement_due_ns()
        if self._gossip_due():
            self._gossip_round()
        self._wake_ns = min(self._heartbeat_ns, self._gossip_ns, self._judge_ns)

    def next_wake_ns(self) -> int:
        return self._wake_ns

    def clock_ahead_ms(self, now_ns: int, wall_ms: int) -> int:
        return self._skew.ahead_ms(now_ns, wall_ms)

    # --- receiving

    def admit(self, joiner: Member | None, node: str) -> None:
        """Let a new incarnation in, or a known one know that it is."""
        if joiner is not None:
            self._adopt(self.state.with_member(joiner))
        self._send(node, self._gossip.whole(reply=False))

    def on_gossip(
        self, sender: NodeId, message: Heartbeat | HeartbeatAck | Digest | StateMessage | RemovedNotice
    ) -> None:
        if message.formation != self._gossip.formation:
            self._on_foreign(sender, message)
            return
        cause = over(self.state.members.get(sender.name), sender)
        if cause:
            self._counters["from_removed"] += 1
            self._greet(sender, message)
            going_on = tuple(m.node for m in self.view.up())
            self._send(sender.name, RemovedNotice(sender, self._gossip.formation, cause, going_on))
            return
        match message:
            case Heartbeat():
                self._on_heartbeat(sender, message)
            case HeartbeatAck(_, sequence):
                self._on_ack(sender, sequence)
            case Digest(digest=digest) if digest != self.state.digest:
                self._send(sender.name, self._gossip.whole(reply=True))
            case Digest(seen=seen):
                self._has_seen(sender, seen)
            case StateMessage():
                self._on_state(sender, message)
            case RemovedNotice(subject, _, cause, going_on):
                if subject == self._id:
                    self._end(f"removed {cause}; {', '.join(going_on)} go on" if going_on else f"removed {cause}")

    def _on_foreign(self, sender: NodeId, message: msgspec.Struct) -> None:
        """From another formation: an old one whose news has not reached the sender yet, or a rival of ours."""
        self._counters["foreign_formation"] += 1
        if not isinstance(message, StateMessage):
            if self._greet(sender, message):
                self._send(sender.name, self._gossip.whole(reply=True))
        elif message.cluster_id == self._gossip.cluster_id:
            cause = self._rival.gives_way(self.state, self._id, self._gossip.formation, message, sender, self._now)
            if cause:
                self.down([m.node for m in self.view.members.values() if self.view.reachable(m.node)], cause)
            elif message.reply:
                self._send(sender.name, self._gossip.whole(reply=False))

    def _greet(self, sender: NodeId, message: msgspec.Struct) -> bool:
        """Open a way to a node that isn't a member, where its message says how; whether it did say."""
        if not isinstance(message, Heartbeat | Digest):
            return False
        self._out += self._peers.guest(sender.name, message.control, "", self._now)
        return True

    def _on_heartbeat(self, sender: NodeId, beat: Heartbeat) -> None:
        if self._late.heard(sender, beat.late_ms):
            self._out.append(Late(sender, beat.late_ms))
        if not self._late.ms:  # what waited while this process did not run tells nothing about clocks
            self._skew.heard(sender, beat.wall_ms, self._now)
        if beat.acknowledges:
            self._on_ack(sender, beat.acknowledges, late=beat.late_ms > 0)
        if not self._watch.heard(sender, beat.sequence):
            self._send(sender.name, HeartbeatAck(self._gossip.formation, beat.sequence))

    def _on_ack(self, sender: NodeId, sequence: int, *, late: bool = False) -> None:
        if not self._watch.answered(sender, sequence, self._now, late=late):
            self._counters["ack_unexpected"] += 1
        elif self._to_vouch_for(sender):
            self._report(sender, reachable=True)

    def _to_vouch_for(self, subject: NodeId) -> bool:
        """Whether others don't know that this node sees it: it said the contrary, or began to watch it only now."""
        row = self.state.rows.get((self._id, subject))
        return subject.name in self.view.unreachable if row is None else not row.reachable

    def _on_state(self, sender: NodeId, message: StateMessage) -> None:
        theirs = build(message.members, message.rows, message.up_mark)
        self._adopt(merge(self.state, theirs))
        if self.over:
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
        before = self.state
        if not self._gossip.adopt(state):
            return
        self._out += [Moved(m, was, cause) for m, was, cause in transitions(before, state)]
        self._stale = True
        self._gossip_ns = min(self._gossip_ns, self._now + self._settings.gossip_behind_ns // 2)
        mine = state.members[self._me.node]
        if mine.id != self._id:
            self._end(f"replaced by incarnation {mine.incarnation}")
        elif mine.status >= Status.DOWN:
            self._end(mine.cause if mine.cause == "left" else f"removed {mine.cause}".rstrip())

    def _report(self, subject: NodeId, *, reachable: bool) -> None:
        row = self.state.rows.get((self._id, subject))
        version = row.version + 1 if row is not None else 1
        self._adopt(self.state.with_row(Row(self._id, subject, reachable, version)))

    # --- time

    def _judge(self) -> None:
        """Judge silence, decide a split."""
        self._settle()
        for subject in self._watch.silent(self._now + 1):
            if self.state.sees(self._id, subject):
                self._report(subject, reachable=False)
        self._settle()
        if not self.over:
            self._decided(self._resolver.observe(self.view, self._now))

    def _judgement_due_ns(self) -> int:
        """When that has to be done before the next heartbeat is due, so that no failure waits for one."""
        due_ns = self._heartbeat_ns
        for subject, silent_ns in self._watch.silent(due_ns).items():
            if silent_ns < due_ns and self.state.sees(self._id, subject):
                due_ns = silent_ns
        decision_ns = self._resolver.due_ns()
        return due_ns if decision_ns is None else min(due_ns, decision_ns)

    def _beat(self) -> None:
        """Once an interval: judge, let nodes in that can't wait, send heartbeats."""
        self._judge()
        if self.over:
            return
        if self._resolver.wants_lease(self._now):
            self._out.append(AskLease())
        admitted = self._duty.admits(self.view, self._now)
        if admitted:
            self._adopt(self.state.with_member(*admitted))
        blocked = self._duty.complain(self.view, self._now)
        self._out += [Blocked(blocked)] if blocked is not None else []
        for subject, sequence, acknowledges in self._watch.beat():
            beat = Heartbeat(
                self._gossip.formation, sequence, self._me.control, acknowledges, self._late.ms, self._wall_ms
            )
            self._send(subject.name, beat)
        ahead_ms = self._skew.news(self._now, self._wall_ms)
        self._out += [ClockAhead(ahead_ms)] if ahead_ms is not None else []
        self._out += self._peers.sync(self.state, self._now)

    def lease_answered(self, lease: Lease) -> None:
        """The store has said, or not, whether this side goes on."""
        self._decided(self._resolver.answered(self.view, lease, self._now))

    def _decided(self, decision: Decision | None) -> None:
        if decision is None or decision.acts != self._me.node:
            return
        self._out.append(Decided(decision))
        self.down([n.name for n in decision.goes if self.state.live(n)], decision.cause())

    def _settle(self) -> None:
        """Bring the view up to date, and act as the leader until nothing is left to do."""
        while self._stale and not self.over:
            self._stale = False
            before = self.view
            self.view = look(
                self.state, self._id, self._gossip.seen, self._settings.neighbours, before=before, now_ns=self._now
            )
            if self.view != before:
                self._out.append(Changed(self.view))
            mine = self.view.members[self._me.node]
            if mine.status is Status.EXITING and self.view.converged:
                # All know that it goes. Its last word says that it has gone, whatever else they heard meanwhile: else
                # they would wait for a word that it has seen that too, until its silence is taken for a failure.
                self._adopt(self.state.with_member(moved(mine, Status.REMOVED, cause="left")))
                return
            moves = leader.actions(self.view, self.state.up_mark)
            if moves:
                self._adopt(self.state.with_member(*moves))
            self._members_changed()
        if not self.over and self._leave_by_ns is not None and self._now >= self._leave_by_ns:
            self._end("left")

    def _members_changed(self) -> None:
        watched = watched_by(self.state, ring_of(self.state), self._id, self._settings.neighbours)
        self._watch.assign(watched, self._now)
        living = {m.id for m in self.state.members.values() if m.status is not Status.REMOVED}
        self._out += [Late(node, 0) for node in self._late.forget(living)]
        self._skew.forget(living - {self._id})
        self._out += self._peers.sync(self.state, self._now)

    def _gossip_due(self) -> bool:
        return not self.over and self._now >= self._gossip_ns

    def _gossip_round(self) -> None:
        near = candidates(self.view, self.state)
        behind = any(node not in self._gossip.seen for node in near)
        self._gossip_ns = self._now + (self._settings.gossip_behind_ns if behind else self._settings.gossip_ns)
        target = choose(near, self._gossip.seen, self._rng)
        if target is not None:
            self._send(target.name, self._gossip.digest())
        if self._now >= self._probe_ns:
            self._probe_ns = self._now + self._settings.acceptable_pause_ns
            for seed in self.seeds:
                if seed.control and seed.node not in self.view.members:
                    self._send(seed.node, self._gossip.digest())

    # --- leaving

    def leave(self) -> None:
        """Leave in good order, at the latest when the wait for the others' agreement is over."""
        if self._leave_by_ns is not None:
            return
        self._leave_by_ns = self._now + self._settings.leave_wait_ns
        mine = self.state.members[self._me.node]
        if mine.status < Status.LEAVING:
            self._adopt(self.state.with_member(moved(mine, Status.LEAVING)))

    def down(self, names: list[str], cause: str) -> None:
        """Mark members as down; unknown names change nothing."""
        found = [self.state.members[n] for n in names if n in self.state.members]
        marked = [moved(m, Status.DOWN, cause=cause) for m in found if m.status in TAKING_PART]
        if marked:
            self._adopt(self.state.with_member(*marked))

    def _end(self, cause: str) -> None:
        """Out. The last word goes to everybody this node can reach, so that nobody has to find out by silence."""
        if self.over:
            return
        self.over = True
        last: msgspec.Struct = self._gossip.whole(reply=False) if self._stale else self._gossip.digest()
        for member in self.view.members.values():
            if member.node != self._me.node and self.view.reachable(member.node):
                self._send(member.node, last)
        self._out.append(Removed(cause, left=self._leave_by_ns is not None or cause == "left"))

    def _send(self, node: str, message: msgspec.Struct) -> None:
        self._out.append(Send(node, message))
