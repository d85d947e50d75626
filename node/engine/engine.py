"""One node, without its adapters: membership, sharding, replication and actors, wired to each other.

Production and the simulator drive the same object through the ports of `World`. Its driver owes it: `on_envelope` for
each envelope that a peer sent, `turn` soon after `wake`, again while it answers True, and at `next_wake_ns`; all calls
from one thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import msgspec

from node.actors.actor import Failure
from node.actors.ask import FailedReply
from node.actors.cell import ShardTally
from node.actors.flight import AtWork
from node.actors.ports import Ports
from node.actors.system import ActorSystem
from node.ads.classifier import Classifier
from node.core import limits
from node.core.clock import MS
from node.core.errors import RemoteProtocolError
from node.core.ids import SINGLETON_ID, SINGLETON_SHARD, EntityRef, NodeId, Ref, ServiceRef, SingletonRef
from node.engine import topology
from node.engine.config import Exit, NodeConfig, World
from node.engine.conserving import Conserving
from node.engine.draining import NodeDrain
from node.engine.entities import SINGLETONS, EntityTypes, entity_types
from node.engine.events import EVENTS, EventLog, NodeEvent, of_membership
from node.engine.faults import Faults
from node.engine.following import Following
from node.engine.freezing import Freezing
from node.engine.machines import Replication, Sharding
from node.engine.members import Members
from node.engine.messages import NodeDraining, TopicEvent
from node.engine.replicaroster import RosterKeeping
from node.engine.serveindex import ReplicaServeIndex
from node.engine.storeless import Storeless
from node.engine.topics import ClusterBus, topics
from node.gossip import events as gossip
from node.gossip.messages import JoinRefused
from node.gossip.view import ClusterView
from node.sharding.messages import Relayed
from node.store.port import Answer, Request
from node.wire.codec import CODEC, loads
from node.wire.envelope import Envelope, Kind, decode
from node.wire.greeting import Unwelcome
from node.wire.nack import Nack
from node.wire.port import SendOutcome

# What answers asks to `/node`: the edges add theirs (the admin server's report), each under a message type.
Service = Callable[[Envelope], None]


_UNSENT = {
    SendOutcome.PEER_BUSY: Failure.PEER_BUSY,
    SendOutcome.UNKNOWN_TYPE: Failure.REJECTED,
    SendOutcome.TOO_LARGE: Failure.REJECTED,
}


@lru_cache(maxsize=1_024)
def _service(node: str, path: str) -> ServiceRef:
    """The same few receivers of machines' messages, again and again."""
    return ServiceRef(node, path)


class Engine:
    """See the module. `view` is the cluster as this node sees it."""

    def __init__(
        self, config: NodeConfig, world: World, classifier: Classifier, types: EntityTypes = entity_types
    ) -> None:
        self.config = config
        self.world = world
        self.me: NodeId = config.member.id
        self.view = ClusterView(self.me, config.cluster.id)
        self.counters: Counter[str] = Counter()
        self.events = EventLog()
        self.faults = Faults(world.clock)
        self.started_ns = world.clock.mono_ns()
        self.services: dict[type[msgspec.Struct], Service] = {}
        self._draining_heard: dict[NodeId, int] = {}
        self._balance_held_ns = 0  # until when; 0 when it is not
        self._closing: set[NodeId] = set()  # of those, who keep for now what they have
        self._ticked_ns = 0
        self._promised_ns = 0  # the instant that the driver was told last
        self._exited = False
        self._singletons_stopping = False
        self.writing = 0
        self.executing = 0
        self.members = Members(self)
        self.membership = self.members.machine
        self.sharding = Sharding(self)
        self.replication = Replication(self)
        self.roster = RosterKeeping(self)
        self.index = ReplicaServeIndex(
            self.replication.machine,
            CODEC,
            world.clock,
            self.sharding.region.epoch,
            self.replication.carry_out,
            self.membership.clock_ahead_ms,
        )
        ports = Ports(
            submit=self._submit,
            execute=self._execute,
            route=self.route,
            publish=lambda topic, event: self.bus.publish(topic, event),
            wake=world.wake,
            bounce=self._bounced,
            fenced=self.sharding.fenced,
            freed=world.freed,
        )
        self.system = ActorSystem(self.me, world.clock, world.rng, types(classifier, self.index, self.sharding), ports)
        for topic in topics(self.events):
            self.system.bus.declare(topic)
        self.bus = ClusterBus(self)
        self.storeless = Storeless(self)
        self.drain = NodeDrain(self)
        self.following = Following(self)
        self.freezing = Freezing(self)
        self.conserving = Conserving(self)

    # ---- driving

    def start(self) -> None:
        """Once, first."""
        self.members.step(gossip.Start())
        self.world.wake()

    def turn(self, now_ns: int) -> bool:
        """Let time pass for the machines and run a slice of the actors; True when more waits."""
        self.members.tick(now_ns)
        self.replication.tick(now_ns)
        if now_ns >= self._soonest_tick_ns and now_ns >= self._tick_ns(limits.engine_rest_early_ms):
            self._ticked_ns = now_ns
            self._forget_drained(now_ns)
            self._release_balance(now_ns)
            self.freezing.tick(now_ns)
            self.sharding.tick(now_ns)
            self.storeless.tick(now_ns)
            self.roster.tick(now_ns)
            self.drain.tick(now_ns)
            self.following.tick(now_ns)
            self.conserving.tick(now_ns)
        return self.system.turn(now_ns)

    def at_work(self) -> AtWork | None:
        """The handler that runs now, as seen from another thread."""
        return self.system.at_work()

    def next_wake_ns(self) -> int:
        """When the next turn is due although nothing was sent or answered."""
        due_ns = self._tick_ns()
        for at_ns in (self.membership.next_wake_ns(), self.replication.next_wake_ns(), self.system.next_wake_ns()):
            if at_ns is not None and at_ns < due_ns:
                due_ns = at_ns
        self._promised_ns = due_ns
        return due_ns

    def _tick_ns(self, early_ms: int = 0) -> int:
        """When the next tick is due; at rest, `early_ms` before that."""
        resting = self.sharding.at_rest and not self.drain.active
        return self._ticked_ns + (limits.engine_rest_tick_ms - early_ms if resting else limits.engine_tick_ms) * MS

    @property
    def _soonest_tick_ns(self) -> int:
        """No tick is due before: nearly every turn and effect needs to know no more."""
        return self._ticked_ns + limits.engine_tick_ms * MS

    def wake_before(self, due_ns: int | None) -> None:
        """A machine wants time to pass at `due_ns`: ask for a turn if the driver would come later. A turn after every
        heartbeat that has nothing to do would be most of what an idle node does."""
        if due_ns is not None and due_ns < self._promised_ns:
            self.world.wake()

    def wake_unless_resting(self) -> None:
        """Something began that needs time to pass: the next tick may be due sooner than the driver was told."""
        if self._soonest_tick_ns < self._promised_ns:
            self.wake_before(self._tick_ns())

    # ---- envelopes

    def on_envelope(self, envelope: Envelope) -> None:
        """One that a peer sent, its sender proven by the transport."""
        dropped = self._received(envelope)
        name = CODEC.registry.of(envelope.message).name
        ledger = self.world.transport.ledger.of(envelope.sender)
        if dropped:
            ledger.dropped(name, dropped)
        else:
            ledger.handled(name)

    def on_unwelcome(self, peer: NodeId, why: Unwelcome) -> None:
        """A node takes none of our messages; where it was asked to let us in, that is its answer."""
        self.members.step(gossip.Received(peer, JoinRefused(why.key, why.connecting, why.listening)))

    def _received(self, envelope: Envelope) -> str:
        to = envelope.to
        if isinstance(to, ServiceRef) and to.path == "/membership":
            self.members.step(gossip.Received(envelope.sender, envelope.message))
            return ""
        member = self.view.member(envelope.sender.name)
        if member is None or member.incarnation != envelope.sender.incarnation:
            self.counters["dropped_not_a_member"] += 1
            return "not_a_member"
        return self._arrived(envelope)

    def _arrived(self, envelope: Envelope) -> str:
        """Gives it to whom it is for; returns why that can't be done, or nothing."""
        message, to = envelope.message, envelope.to
        match to:
            case EntityRef(_, entity_id) if entity_id != SINGLETON_ID:
                self.sharding.relayed(envelope, 0)
            case SingletonRef():
                self._to_singleton(envelope, forward=False)
            case ServiceRef(_, "/ask") if isinstance(message, Nack):
                for refusal in message.refusals:
                    failed = FailedReply(Failure.REJECTED.value, f"{refusal.reason}: {refusal.detail}")
                    self.system.on_reply(Envelope(Kind.REJECT, to, envelope.sender, failed, refusal.correlation))
            case ServiceRef(_, "/ask"):
                self.system.deliver(envelope)
            case ServiceRef(_, "/region") if isinstance(message, Relayed):
                return self._relayed(message)
            case ServiceRef(_, "/region" | "/coordinator"):
                self.sharding.received(envelope.sender, message)
            case ServiceRef(_, "/replicator"):
                self.replication.received(envelope.sender.name, message)
            case ServiceRef(_, "/bus") if isinstance(message, TopicEvent):
                return self.bus.received(envelope.sender, message)
            case ServiceRef(_, "/node"):
                return self._node_message(envelope)
            case _:
                self.counters["dropped_no_service"] += 1
                return "no_service"
        return ""

    def _node_message(self, envelope: Envelope) -> str:
        service = self.services.get(type(envelope.message))
        if isinstance(envelope.message, NodeDraining):
            self._heard_draining(envelope.sender, envelope.message)
        elif service is not None:
            service(envelope)
        else:
            self.counters["dropped_no_service"] += 1
            if envelope.kind is Kind.ASK:
                self.system.refuse(envelope, Failure.REJECTED, "this node does not answer that")
            return "no_service"
        return ""

    def _relayed(self, message: Relayed) -> str:
        try:
            inner = decode(loads(message.envelope), CODEC, self.me.name, self.world.clock.mono_ns())
        except RemoteProtocolError as error:
            self.counters[f"dropped_{error.reason}"] += 1
            return error.reason
        if not isinstance(inner.to, EntityRef) or inner.to.id == SINGLETON_ID:
            self.counters["dropped_not_for_an_entity"] += 1
            return "not_for_an_entity"
        self.sharding.relayed(inner, message.hops, message.epoch)
        return ""

    def route(self, envelope: Envelope) -> None:
        """Bring an envelope of this node to wherever its receiver is."""
        match envelope.to:
            case EntityRef(_, entity_id) if entity_id != SINGLETON_ID:
                self.sharding.route(envelope)
            case EntityRef(kind, _):
                self._to_singleton(msgspec.structs.replace(envelope, to=SingletonRef(kind)), forward=True)
            case SingletonRef():
                self._to_singleton(envelope, forward=True)
            case ServiceRef(node, _) if node == self.me.name:
                self._arrived(envelope)
            case ServiceRef(node, _):
                self.send(node, envelope)

    def send(self, node: str, envelope: Envelope) -> bool:
        """Give an envelope to the transport; one that can't be sent is answered or counted at once."""
        outcome = self.world.transport.send(node, envelope)
        if outcome is SendOutcome.SENT:
            return True
        self.counters[f"unsent_{outcome.value}"] += 1
        self.system.refuse(envelope, _UNSENT.get(outcome, Failure.UNREACHABLE), f"{node}: {outcome.value}")
        return False

    def send_message(self, node: str, path: str, message: msgspec.Struct) -> None:
        """A machine's message to its like on another node; machines repeat themselves, so a loss is only counted."""
        envelope = Envelope(Kind.TELL, _service(node, path), self.me, message)
        outcome = self.world.transport.send(node, envelope)
        if outcome is not SendOutcome.SENT:
            self.counters[f"unsent_machine_{outcome.value}"] += 1

    def broadcast(self, path: str, message: msgspec.Struct) -> None:
        """To every other member in reach."""
        for node in sorted(topology.peers(self.view)):
            self.send_message(node, path, message)

    def reply(self, envelope: Envelope, message: msgspec.Struct) -> None:
        """Answer an ask that came to a service of this node."""
        if envelope.kind is not Kind.ASK:
            return
        answer = Envelope(Kind.REPLY, ServiceRef(envelope.sender.name, "/ask"), self.me, message, envelope.correlation)
        self.route(answer)

    def _submit(self, request: Request, done: Callable[[Answer], None]) -> None:
        def answered(answer: Answer) -> None:
            self.writing -= 1
            done(answer)

        if self._exited:
            self.counters["unsubmitted_after_the_end"] += 1
            return
        self.writing += 1
        self.world.submit(request, answered)

    def _execute(
        self, executor: str, fn: Callable[..., Any], args: tuple[Any, ...], done: Callable[[object], None]
    ) -> bool:
        def ended(outcome: object) -> None:
            self.executing -= 1
            done(outcome)

        accepted = self.world.execute(executor, fn, args, ended)
        self.executing += accepted
        return accepted

    # ---- the edges' way in

    def ask(
        self, to: Ref, message: msgspec.Struct, timeout_ms: int, on_outcome: Callable[[Any], object], trace: str = ""
    ) -> None:
        """Ask anything in the cluster; `on_outcome` is called exactly once, in a turn, with the reply or Failed."""
        self.system.ask(to, message, timeout_ms, on_outcome, trace=trace)
        self.world.wake()

    def emit(self, topic: str, about: str, text: str, *, cluster: bool = False) -> None:
        """Say what happened: here, or to every node when only this one can know."""
        event = NodeEvent(self.world.clock.wall_ms(), topic, about, text, self.me.name)
        if cluster:
            self.system.publish(EVENTS, event)
        else:
            self.system.bus.publish(EVENTS, event)

    # ---- membership

    def leave(self) -> None:
        """Leave the cluster in good order; `exit` follows once the others know."""
        self.members.step(gossip.Leave())

    def exit(self, reason: Exit) -> None:
        """End this incarnation: nothing is written after it."""
        if not self._exited:
            self._exited = True
            self.world.exit(replace(reason, overran=reason.overran or self.drain.overran))

    def view_changed(self, view: ClusterView) -> None:
        """Another picture of the cluster holds from now on."""
        before, self.view = self.view, view
        for topic, about, text in of_membership(before, view):
            self.emit(topic, about, text)
        for name in view.unreachable.keys() - before.unreachable.keys():
            self.faults.put("E-NODE-UNREACHABLE", f"node/{name}", "no heartbeat is heard from it")
        for name in before.unreachable.keys() - view.unreachable.keys():
            self.faults.clear("E-NODE-UNREACHABLE", f"node/{name}")
        peers = topology.peers(view)
        if view.joined and (not before.joined or peers != topology.peers(before)):
            self.replication.peers_changed(peers)
        self.bus.forget(frozenset(member.id for member in view.members.values()))
        self._draining_heard = {n: at for n, at in self._draining_heard.items() if self._present(n)}
        self._closing &= self._draining_heard.keys()
        self.topology_changed()

    def _present(self, node: NodeId) -> bool:
        member = self.view.member(node.name)
        return member is not None and member.id == node

    def topology_changed(self) -> None:
        """Who may own shards, who coordinates, or who hosts singletons is to be found out anew."""
        draining, storeless, held = self.draining_nodes(), self.storeless.nodes(), self.balance_held
        self.sharding.nodes_changed(
            topology.entity_nodes(self.view, draining, self._closing, storeless=storeless, held=held)
        )
        self._place_singletons()

    # ---- balance

    @property
    def balance_held(self) -> bool:
        """Whether nothing is moved for balance's sake."""
        return self._balance_held_ns > 0

    def hold_balance(self, until_ns: int) -> None:
        """Move nothing for balance's sake until then; the newest word counts."""
        before, self._balance_held_ns = self._balance_held_ns, until_ns
        if not before:
            self.topology_changed()

    def _release_balance(self, now_ns: int) -> None:
        if 0 < self._balance_held_ns <= now_ns:
            self._balance_held_ns = 0
            self.topology_changed()

    # ---- draining nodes

    def say_draining(self, on: bool, *, closing: bool = False) -> None:
        """Tell the others, again and again while it holds, that this node hands everything over, or (`closing`) that
        it will: then it is given nothing more."""
        said = NodeDraining(on, closing)
        self.broadcast("/node", said)
        self._heard_draining(self.me, said)

    def draining_nodes(self) -> frozenset[NodeId]:
        """Who hands everything over now, as far as this node has heard."""
        return frozenset(self._draining_heard.keys() - self._closing)

    def going_nodes(self) -> frozenset[NodeId]:
        """Who hands everything over now or is about to: nothing may be placed there."""
        return frozenset(self._draining_heard)

    def _heard_draining(self, node: NodeId, said: NodeDraining) -> None:
        before = (node in self._draining_heard, node in self._closing)
        self._draining_heard.pop(node, None)
        self._closing.discard(node)
        if said.on and self._present(node):
            self._draining_heard[node] = self.world.clock.mono_ns()
            if said.closing:
                self._closing.add(node)
        if before != (node in self._draining_heard, node in self._closing):
            self.topology_changed()

    def _forget_drained(self, now_ns: int) -> None:
        silent_ns = limits.draining_heard_ms_max * MS
        for node in [n for n, at in self._draining_heard.items() if now_ns - at > silent_ns]:
            self._heard_draining(node, NodeDraining(False))

    # ---- singletons

    def _place_singletons(self) -> None:
        home = topology.singleton_home(self.view, self.draining_nodes())
        hosted = SINGLETON_SHARD in self.system.owned()
        if home == self.me and not hosted and not self._singletons_stopping:
            self.system.shard_started(SINGLETON_SHARD, 1)
            for name, question in SINGLETONS.items():
                self.system.ask(EntityRef(name, SINGLETON_ID), question, 1_000, lambda _outcome: None)
        elif home != self.me and hosted:
            self._singletons_stopping = True
            self.system.shard_stopping(SINGLETON_SHARD, self._singletons_stopped)

    def _singletons_stopped(self, _tally: ShardTally) -> None:
        """They may have come home while they were stopping: a drain that was cancelled, a member that went."""
        self._singletons_stopping = False
        self._place_singletons()

    def _to_singleton(self, envelope: Envelope, *, forward: bool) -> None:
        name = envelope.to.name if isinstance(envelope.to, SingletonRef) else ""
        home = topology.singleton_home(self.view, self.draining_nodes())
        if home == self.me and SINGLETON_SHARD in self.system.owned():
            self.system.deliver(msgspec.structs.replace(envelope, to=EntityRef(name, SINGLETON_ID)))
        elif home is not None and home != self.me and forward:
            self.send(home.name, envelope)
        else:
            # Not passed on a second time: two nodes that disagree about who is oldest would play ball with it.
            self.system.refuse(envelope, Failure.NO_HOME, f"nobody here hosts {name}")

    def _bounced(self, envelope: Envelope) -> None:
        if envelope.to == EntityRef(getattr(envelope.to, "kind", ""), SINGLETON_ID):
            self.system.refuse(envelope, Failure.STOPPED, "the singleton moves")
        else:
            self.sharding.bounced(envelope)
