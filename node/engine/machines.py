"""The engine's hands: they carry out what the sharding and replication machines ask, and feed answers back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, assert_never

import msgspec

from node.actors.actor import Failure
from node.actors.cell import ShardTally
from node.core import faultpoints
from node.core.ids import NodeId
from node.engine import topology
from node.engine.events import damaged_words, of_sharding
from node.engine.standing import why_not_placed
from node.gossip import replica_io
from node.gossip.lag import PeerLag
from node.gossip.replica_io import RemovalOutcome
from node.gossip.replica_messages import ReplicaMessage
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replicator import Replicator
from node.gossip.version import Version
from node.sharding import effects as sharding
from node.sharding.coordinator import Coordinator
from node.sharding.messages import COORDINATOR_MESSAGES, REGION_MESSAGES, Relayed
from node.sharding.nodes import EntityNodes
from node.sharding.region import Region
from node.sharding.requests import Answer as OperatorAnswer
from node.sharding.requests import Request as OperatorRequest
from node.store.port import Answer
from node.wire.codec import CODEC
from node.wire.envelope import Envelope, encode

if TYPE_CHECKING:
    from node.engine.engine import Engine


class Sharding:
    """Region and coordinator of one node. It is also what operations know of the cluster."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        settings = engine.config.sharding
        self.region = Region(engine.me, settings)
        self.coordinator = Coordinator(engine.me, settings, engine.world.rng)
        self._requests: dict[int, Callable[[OperatorAnswer], None]] = {}
        self._tag = 0
        self._nodes = EntityNodes()
        self.lost = 0

    def tick(self, now_ns: int) -> None:
        self._carry_out(self.region.step(sharding.Tick(), now_ns))
        wall_ms = self._engine.world.clock.wall_ms()
        self._carry_out(self.coordinator.step(sharding.Tick(wall_ms), now_ns))

    def nodes_changed(self, nodes: EntityNodes) -> None:
        """Who may own shards and who coordinates, as the view has it now; it may be as before."""
        if nodes == self._nodes:
            return
        self._nodes = nodes
        event = sharding.NodesChanged(nodes)
        self._carry_out(self.region.step(event, self._now_ns()))
        self._carry_out(self.coordinator.step(event, self._now_ns()))

    def received(self, sender: NodeId, message: msgspec.Struct) -> None:
        if isinstance(message, COORDINATOR_MESSAGES):
            self._carry_out(self.coordinator.step(sharding.Received(sender, message), self._now_ns()))
        elif isinstance(message, REGION_MESSAGES):
            self._carry_out(self.region.step(sharding.Received(sender, message), self._now_ns()))
        else:
            self._engine.counters["dropped_no_service"] += 1

    # ---- messages to entities

    def route(self, envelope: Envelope) -> None:
        self._carry_out(self.region.route(envelope, self._now_ns()))

    def relayed(self, envelope: Envelope, hops: int, epoch: int = 0) -> None:
        self._carry_out(self.region.relayed(envelope, hops, self._now_ns(), epoch))

    def bounced(self, envelope: Envelope) -> None:
        self._carry_out(self.region.bounced(envelope, self._now_ns()))

    def fenced(self, shard: int, epoch: int, found: int) -> None:
        """A write of this node's shard was refused by the store (I1)."""
        event = sharding.Fenced(shard, epoch, found)
        self._carry_out(self.region.step(event, self._now_ns()))

    # ---- what operators and drains ask

    def request(self, request: OperatorRequest, done: Callable[[OperatorAnswer], None]) -> None:
        """Ask this node's coordinator on behalf of an operator; `done` once."""
        self._tag += 1
        self._requests[self._tag] = done
        self._carry_out(self.coordinator.step(sharding.Requested(request, self._tag), self._now_ns()))

    def drain(self, on: bool) -> None:
        self._carry_out(self.region.drain(on, self._now_ns()))

    def step_down(self) -> None:
        self._carry_out(self.coordinator.step(sharding.Stepdown(), self._now_ns()))

    def step_up(self) -> None:
        """Coordinate again, when it is this node's turn."""
        self._carry_out(self.coordinator.step(sharding.StepUp(), self._now_ns()))

    def coordinator_node(self) -> str | None:
        home = self._nodes.coordinator
        return home.name if home else None

    def is_member(self, node: str, incarnation: int) -> bool:
        member = self._engine.view.member(node)
        return member is not None and member.incarnation == incarnation

    def reachable(self, node: str) -> bool:
        return self._engine.view.reachable(node)

    def why_not_placed(self) -> str:
        return why_not_placed(self._engine)

    def how_ended(self, node: str, incarnation: int) -> str:
        """See `flows.operation.Cluster`."""
        record = self._engine.membership.state.members.get(node)
        return record.cause if record is not None and record.incarnation == incarnation else ""

    # ---- effects

    def _now_ns(self) -> int:
        return self._engine.world.clock.mono_ns()

    def _carry_out(self, effects: Iterable[sharding.Effect]) -> None:
        moved = False
        for effect in effects:
            moved = True
            self._do(effect)
        if moved:
            self._engine.wake_unless_resting()

    @property
    def at_rest(self) -> bool:
        """Whether nothing here waits for time to pass but what comes round anyway: renewals, digests, balance."""
        return self.region.at_rest and self.coordinator.at_rest

    def _do(self, effect: sharding.Effect) -> None:
        engine = self._engine
        match effect:
            case sharding.Deliver(envelope):
                engine.system.deliver(envelope)
            case sharding.Forward(node, envelope, hops, epoch):
                self._forward(node, envelope, hops, epoch)
            case sharding.Refuse(envelope, reason):
                engine.system.refuse(envelope, Failure.NO_HOME, self.region.why_refused(reason))
            case sharding.Send(node, message):
                self._send(node, message)
            case sharding.Broadcast(message):
                engine.broadcast("/region", message)
                self.received(engine.me, message)
            case sharding.StoreCall(tag, request):
                engine.world.submit(request, lambda answer: self._answered(tag, answer))
            case sharding.StartShard(shard, epoch):
                engine.system.shard_started(shard, epoch)
            case sharding.StopShard(shard):
                engine.system.shard_stopping(shard, lambda tally: self._stopped(shard, tally))
            case sharding.Note(event):
                words = of_sharding(event)
                if words is not None:
                    engine.emit(*words, cluster=True)
            case sharding.Reached(point):
                faultpoints.reach(point)
            case sharding.Reply():
                pass  # this driver asks for moves by plans only
            case sharding.Answered(tag, answer):
                self._requests.pop(tag)(answer)
            case _:
                assert_never(effect)

    def _forward(self, node: str, envelope: Envelope, hops: int, epoch: int) -> None:
        if hops == 0 and envelope.sender == self._engine.me:
            self._engine.send(node, envelope)
            return
        # The receiver must see the true sender, which is not always the node that these bytes come from, and how often
        # it was passed on.
        relayed = Relayed(encode(envelope, CODEC, self._now_ns()), hops, epoch)
        self._engine.send_message(node, "/region", relayed)

    def _send(self, node: str, message: msgspec.Struct) -> None:
        if node == self._engine.me.name:
            self.received(self._engine.me, message)
            return
        path = "/coordinator" if isinstance(message, COORDINATOR_MESSAGES) else "/region"
        self._engine.send_message(node, path, message)

    def _answered(self, tag: int, answer: Answer) -> None:
        self._carry_out(self.coordinator.step(sharding.StoreAnswered(tag, answer), self._now_ns()))

    def _stopped(self, shard: int, tally: ShardTally) -> None:
        self.lost += tally.lost
        digest = f"{tally.digest:016x}"
        event = sharding.LocalStopped(shard, tally.handled, tally.entities, digest, tally.arrived, tally.dropped)
        self._carry_out(self.region.step(event, self._now_ns()))


class Replication:
    """The replicator of one node, its commits and what it tells readers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        world = engine.world
        self.machine = Replicator(engine.me.name, world.replica, engine.config.replication, world.rng)
        self.committing = 0
        self._wake_ns: int | None = None  # wanted twice a turn; only what ends in `carry_out` changes it
        self._damaged: frozenset[str] = frozenset()
        self._removing: dict[tuple[str, Version], Callable[[RemovalOutcome], None]] = {}
        # The machine takes "no peers" for "nobody to wait for": it must not hear that before this node has joined.
        self._begun = False

    @property
    def ready(self) -> bool:
        """Whether this replica has, or had once since it joined, all that its peers had."""
        return self._begun and self.machine.ready

    def tick(self, now_ns: int) -> None:
        if not self._begun:
            return
        replica = self._engine.world.replica
        damaged, suspects = replica.damaged, replica.take_suspects()
        unread = damaged - self._damaged
        if unread or suspects:
            self._step(replica_io.Damaged(unread, suspects))
        if found := replica.take_found():  # also what was written again before anybody could fetch it
            about = f"node/{self._engine.me.name}"
            self._engine.emit("replica.damaged", about, damaged_words(sorted(found)), cluster=True)
        self._damaged = damaged
        if self._machine_wake_ns() <= now_ns:
            self._step(replica_io.Tick())

    def next_wake_ns(self) -> int | None:
        return self._machine_wake_ns() if self._begun else None

    def _machine_wake_ns(self) -> int:
        if self._wake_ns is None:
            self._wake_ns = self.machine.next_wake_ns()
        return self._wake_ns

    def roster_known(self, roster: ReplicaRoster) -> None:
        """The roster as the state store has it now."""
        self._step(replica_io.RosterKnown(roster))

    def peers_changed(self, peers: frozenset[str]) -> None:
        """Who else is in reach; first called when this node has joined."""
        if not self._begun:
            self._begun = True
            self._tell_opening()
        self._step(replica_io.PeersChanged(peers))

    def _tell_opening(self) -> None:
        """To every node, now that there are others: what was wrong with the file that this start found."""
        opening = self._engine.world.opening
        if opening is not None and not opening.usual:
            self._engine.emit(f"replica.{opening.how}", f"node/{self._engine.me.name}", opening.words(), cluster=True)

    def received(self, sender: str, message: msgspec.Struct) -> None:
        if not self._begun:
            self._engine.counters["dropped_not_joined"] += 1
        elif isinstance(message, ReplicaMessage):
            self._step(replica_io.Received(sender, message))
        else:
            self._engine.counters["dropped_no_service"] += 1

    def _step(self, event: replica_io.Event) -> None:
        clock = self._engine.world.clock
        self.carry_out(self.machine.step(event, clock.mono_ns(), clock.wall_ms()))

    def carry_out(self, effects: Iterable[replica_io.Effect]) -> None:
        engine = self._engine
        self._wake_ns = None
        for effect in effects:
            match effect:
                case replica_io.Send(node, message):
                    engine.send_message(node, "/replicator", message)
                case replica_io.Commit(token, batch):
                    self.committing += 1
                    engine.world.commit_replica(batch, partial(self._committed, token))
                case replica_io.Applied(keys):
                    engine.index.forget(keys)
                case replica_io.Fault(code, subject, text):
                    engine.faults.put(code, subject, text)
                case replica_io.FaultCleared(code, subject):
                    engine.faults.clear(code, subject)
                case replica_io.JoinRoster(tenure):
                    engine.roster.join(tenure)
                case replica_io.RemovalOutcome():
                    self._removal_news(effect)
                case _:
                    assert_never(effect)
        engine.wake_before(self._machine_wake_ns())

    def on_removal(self, key: str, version: Version, done: Callable[[RemovalOutcome], None]) -> None:
        """Have `done` called once with what becomes of a removal of this node."""
        self._removing[key, version] = done

    def _removal_news(self, news: RemovalOutcome) -> None:
        done = self._removing.pop((news.key, news.version), None)
        if done is not None:
            done(news)
        pending = self.machine.questions.pending_removal_count()
        text = f"{pending} removals are on no majority of the replicas yet" if pending else ""
        self._engine.faults.put("E-REMOVAL-PENDING", "replica", text)
        if news.outcome != "removed":
            self._engine.emit(f"removal.{news.outcome}", f"key/{news.key}", f"version {news.version}")

    def _committed(self, token: int, ok: bool, error: str) -> None:
        self.committing -= 1
        self._step(replica_io.Committed(token, ok, error))

    def behind(self, now_ns: int) -> dict[str, int]:
        """Entries that a reachable peer has not acknowledged yet, by peer; who has all is not in it."""
        return {peer: lag.entries for peer, lag in self._reachable_lag(now_ns).items() if lag.entries}

    def lag_ms(self, now_ns: int) -> dict[str, int]:
        """For how long each reachable peer has had something unacknowledged; one that is away catches up by
        comparison when it is back."""
        return {peer: lag.ms for peer, lag in self._reachable_lag(now_ns).items()}

    def _reachable_lag(self, now_ns: int) -> dict[str, PeerLag]:
        reachable = topology.peers(self._engine.view)
        return {peer: lag for peer, lag in self.machine.lag(now_ns).items() if peer in reachable}

    def unwritten(self) -> int:
        """Changes that are not on disk yet."""
        return self.machine.uncommitted() + self.committing
