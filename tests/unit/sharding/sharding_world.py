"""A small deterministic world around the sharding machines: one store, a lossy network, crashes, partitions of the
membership's view, and actors that write under their shard's epoch. One seed decides everything.

Laws it watches at every instant:
 I1  a (shard, epoch) is written by one incarnation only, and epochs of accepted writes never go back;
 I6  each message ends once: handled, refused with a reason, lost by the network or a crash, or still waiting.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from node.core.clock import MS, ManualClock
from node.core.ids import EntityRef, NodeId
from node.sharding import effects as fx
from node.sharding.coordinator import Coordinator
from node.sharding.messages import COORDINATOR_MESSAGES, DrainWanted
from node.sharding.nodes import EntityNode, EntityNodes, ShardingSettings
from node.sharding.region import Region
from node.sharding.requests import (
    Answer,
    Commit,
    GetPlacing,
    GetPlans,
    Placing,
    PlanView,
    PlanViews,
    Request,
    Stage,
)
from node.store import port
from node.store.memory import MemoryStore
from node.wire.envelope import Envelope, Kind

SETTINGS = ShardingSettings(
    min_entity_nodes=3, lease_ms=3_000, first_wait_ms=3_000, handoff_ms=2_000, handoff_resend_ms=500, buffer_ms=5_000
)


@dataclass
class Faults:
    """Probabilities and milliseconds."""

    control_loss: float = 0.0
    delay_ms_max: int = 5
    store_ms_max: int = 5
    store_failure: float = 0.0


@dataclass
class Process:
    """One incarnation of a node, with its fake actors."""

    id: NodeId
    coordinator: Coordinator
    region: Region
    view: EntityNodes = field(default_factory=EntityNodes)
    alive: bool = True
    paused: bool = False
    mailboxes: dict[int, list[Envelope]] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    handled: Counter[int] = field(default_factory=Counter)
    arrived: Counter[int] = field(default_factory=Counter)
    stopping: set[int] = field(default_factory=set)
    pending: list[Callable[[], None]] = field(default_factory=list)
    undelivered: dict[str, Envelope] = field(default_factory=dict)


class World:
    def __init__(self, names: Iterable[str], seed: int, settings: ShardingSettings = SETTINGS) -> None:
        self.settings = settings
        self.rng = random.Random(seed)
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        self.faults = Faults()
        self.versions: dict[str, str] = {}
        self.leaving: set[str] = set()
        self.notes: list[object] = []
        self.replies: dict[int, fx.Outcome] = {}
        self.answers: dict[int, Answer] = {}
        self.fate: dict[str, str] = {}
        self.writers: dict[tuple[int, int], NodeId] = {}
        self.last_epoch: Counter[int] = Counter()
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._seq = 0
        self._sent = 0
        self._incarnations: Counter[str] = Counter()
        self.order: list[NodeId] = []  # by age
        self.processes: dict[str, Process] = {}
        self.kill_at = ""  # a fault point: the next process that reaches it ends there
        self.on_store: Callable[[Process, port.Request], None] = lambda _p, _r: None
        for name in names:
            self.start(name)
        self.settle_views(0)

    # ---- time

    @property
    def now(self) -> int:
        return self.clock.mono_ns()

    def at(self, delay_ms: float, run: Callable[[], None]) -> None:
        self._seq += 1
        heapq.heappush(self._queue, (self.now + int(delay_ms * MS), self._seq, run))

    def run(self, ms: int) -> None:
        end = self.now + ms * MS
        while self._queue and self._queue[0][0] <= end:
            due, _, act = heapq.heappop(self._queue)
            self.clock.advance_ns(max(0, due - self.now))
            act()
        self.clock.advance_ns(end - self.now)

    def run_until(self, holds: Callable[[], bool], ms_max: int) -> bool:
        end = self.now + ms_max * MS
        while self.now < end:
            if holds():
                return True
            self.run(50)
        return holds()

    # ---- nodes

    def start(self, name: str) -> Process:
        self._incarnations[name] += 1
        me = NodeId(name, self._incarnations[name])
        process = Process(me, Coordinator(me, self.settings, random.Random(self._seq)), Region(me, self.settings))
        self.processes[name] = process
        self.order.append(me)
        self._tick(process)
        return process

    def crash(self, name: str) -> None:
        process = self.processes.pop(name)
        process.alive = False
        self.order.remove(process.id)
        for box in (process.undelivered.values(), *process.mailboxes.values()):
            for envelope in box:
                self._end(envelope, "lost in the crash")
        for buffer in process.region._buffers.values():
            for waiting in buffer.in_order():
                self._end(waiting.envelope, "lost in the crash")

    def true_view(self) -> EntityNodes:
        nodes = tuple(
            EntityNode(n, version=self.versions.get(n.name, "1"), leaving=n.name in self.leaving)
            for n in sorted(self.order)
        )
        oldest = next((n for n in self.order if n.name not in self.leaving), None)
        return EntityNodes(nodes, oldest)

    def settle_views(self, delay_ms_max: int) -> None:
        """Every process learns of the present members, each at its own time."""
        view = self.true_view()
        for process in self.processes.values():
            self.at(self.rng.randint(0, delay_ms_max), lambda p=process: self.show(p, view))  # type: ignore[misc]

    def show(self, process: Process, view: EntityNodes) -> None:
        process.view = view
        self._both(process, fx.NodesChanged(view))

    def _tick(self, process: Process) -> None:
        if process.alive:
            self._both(process, fx.Tick(self.now // MS))
            self.at(100, lambda: self._tick(process))

    def _both(self, process: Process, event: fx.Tick | fx.NodesChanged) -> None:
        def step() -> None:
            self.coordinate(process, event)
            self.perform(process, process.region.step(event, self.now))

        self._when_awake(process, step)

    def _when_awake(self, process: Process, act: Callable[[], None]) -> None:
        if process.paused:
            process.pending.append(act)
        elif process.alive:
            act()

    def pause(self, name: str) -> None:
        self.processes[name].paused = True

    def wake(self, process: Process) -> None:
        process.paused = False
        pending, process.pending = process.pending, []
        for act in pending:
            self._when_awake(process, act)

    def coordinate(self, process: Process, event: fx.CoordinatorEvent) -> None:
        self.perform(process, process.coordinator.step(event, self.now))
        process.coordinator.validate()

    # ---- effects

    def perform(self, process: Process, out: list[fx.Effect]) -> None:
        for effect in out:
            if self._ends_at(process, effect):
                return
            match effect:
                case fx.Send(node=node, message=message):
                    self._control(process, node, message)
                case fx.Broadcast(message=message):
                    for node in list(self.processes):
                        self._control(process, node, message)
                case fx.Note(event=event):
                    self.notes.append(event)
                case fx.StoreCall(tag=tag, request=request):
                    self._store_call(process, tag, request)
                case fx.Reply(tag=tag, outcome=outcome):
                    assert tag not in self.replies, "answered twice"
                    self.replies[tag] = outcome
                case fx.Deliver(envelope=envelope):
                    shard = envelope.to.shard
                    assert shard in process.epochs.keys() - process.stopping, "delivered to a stopped shard"
                    process.mailboxes.setdefault(shard, []).append(envelope)
                    process.arrived[shard] += 1
                    self.at(self.rng.randint(0, 20), lambda s=shard: self._work(process, s))  # type: ignore[misc]
                case fx.Forward(node=node, envelope=envelope, hops=hops, epoch=epoch):
                    self._data(process, node, envelope, hops, epoch if hops else 0)
                case fx.Refuse(envelope=envelope, reason=reason):
                    self._end(envelope, f"refused {reason}")
                case fx.StartShard(shard=shard, epoch=epoch):
                    assert shard not in process.epochs, "started while it runs"
                    process.epochs[shard] = epoch
                    process.handled[shard] = process.arrived[shard] = 0
                case fx.StopShard(shard=shard):
                    process.stopping.add(shard)
                    self.at(self.rng.randint(0, 30), lambda s=shard: self._stop(process, s))  # type: ignore[misc]
        process.region.validate()

    def _ends_at(self, process: Process, effect: fx.Effect) -> bool:
        """Keep answers; whether the process dies at the step that was reached."""
        if isinstance(effect, fx.Answered):
            assert effect.tag not in self.answers, "answered twice"
            self.answers[effect.tag] = effect.answer
        if not isinstance(effect, fx.Reached) or effect.point != self.kill_at:
            return False
        self.kill_at = ""
        self.crash(process.id.name)
        return True

    def _control(self, sender: Process, node: str, message: object) -> None:
        if self.rng.random() < self.faults.control_loss and node != sender.id.name:
            return

        def arrive() -> None:
            target = self.processes.get(node)
            if target is None:
                return
            event = fx.Received(sender.id, message)  # type: ignore[arg-type]

            def take() -> None:
                if isinstance(message, COORDINATOR_MESSAGES):
                    self.coordinate(target, event)
                else:
                    self.perform(target, target.region.step(event, self.now))

            self._when_awake(target, take)

        self.at(self.rng.randint(0, self.faults.delay_ms_max), arrive)

    def _data(self, sender: Process, node: str, envelope: Envelope, hops: int, epoch: int) -> None:
        def arrive() -> None:
            target = self.processes.get(node)
            if target is None:
                self._end(envelope, "lost on the way")
                return

            def take() -> None:
                del target.undelivered[str(envelope.to)]
                self.perform(target, target.region.relayed(envelope, hops, self.now, epoch))

            target.undelivered[str(envelope.to)] = envelope
            self._when_awake(target, take)

        self.at(self.rng.randint(0, self.faults.delay_ms_max), arrive)

    def _store_call(self, process: Process, tag: int, request: port.Request) -> None:
        def apply() -> None:
            self.on_store(process, request)
            if self.rng.random() < self.faults.store_failure:
                written = self.rng.random() < 0.5
                if written:
                    self.store.apply([request])
                answer: port.Answer = port.StoreFailed("E-SIM", "injected", definite=False)
            else:
                answer = self.store.apply([request])[0]
            if not isinstance(request, port.ReleaseLease):
                self.at(
                    self.rng.randint(0, self.faults.store_ms_max),
                    lambda: self._when_awake(process, lambda: self.coordinate(process, fx.StoreAnswered(tag, answer))),
                )

        self.at(self.rng.randint(0, self.faults.store_ms_max), apply)

    # ---- actors

    def _work(self, process: Process, shard: int) -> None:
        def work() -> None:
            box = process.mailboxes.get(shard)
            if not box or shard in process.stopping or shard not in process.epochs:
                return
            self._handle(process, shard, box.pop(0))

        self._when_awake(process, work)

    def _handle(self, process: Process, shard: int, envelope: Envelope) -> None:
        epoch = process.epochs[shard]
        process.handled[shard] += 1
        ref = envelope.to
        assert isinstance(ref, EntityRef)
        answer = self.store.apply([port.WriteState(ref.kind, ref.id, shard, epoch, 0, b"")])[0]
        match answer:
            case port.Written():
                writer = self.writers.setdefault((shard, epoch), process.id)
                assert writer == process.id, f"I1: {writer} and {process.id} wrote {shard} under {epoch}"
                assert epoch >= self.last_epoch[shard], "I1: an old epoch was accepted"
                self.last_epoch[shard] = epoch
                self._end(envelope, "handled")
            case port.Fenced(found=found):
                self._end(envelope, "answered: fenced")
                self.perform(process, process.region.step(fx.Fenced(shard, epoch, found), self.now))
            case _:
                raise AssertionError(f"{ref} was handled twice: {answer}")

    def _stop(self, process: Process, shard: int) -> None:
        def stop() -> None:
            for envelope in process.mailboxes.pop(shard, []):
                self.perform(process, process.region.bounced(envelope, self.now))
            del process.epochs[shard]
            process.stopping.discard(shard)
            stopped = fx.LocalStopped(shard, process.handled[shard], 1, arrived=process.arrived[shard])
            self.perform(process, process.region.step(stopped, self.now))

        self._when_awake(process, stop)

    # ---- clients

    def send(self, origin: str, deadline_ms: int = 0) -> None:
        """One message to an entity of its own, from a node that is there."""
        self.send_to(origin, f"m{self._sent + 1}", deadline_ms)

    def send_to(self, origin: str, entity: str, deadline_ms: int = 0) -> None:
        """To one entity, which nobody else writes to."""
        self._sent += 1
        process = self.processes[origin]
        deadline = self.now + deadline_ms * MS if deadline_ms else 0
        envelope = Envelope(Kind.ASK, EntityRef("site", entity), process.id, DrainWanted(False), self._sent, deadline)
        self.perform(process, process.region.route(envelope, self.now))

    def load(self, ms: int, every_ms: int = 5) -> None:
        """Messages from random nodes for a while."""
        for due in range(0, ms, every_ms):
            self.at(due, self._send_somewhere)

    def _send_somewhere(self) -> None:
        awake = [n for n, p in self.processes.items() if not p.paused]
        if awake:
            self.send(self.rng.choice(awake))

    def _end(self, envelope: Envelope, fate: str) -> None:
        key = str(envelope.to)
        assert key not in self.fate, f"{key}: {self.fate[key]}, then {fate}"
        self.fate[key] = fate

    def fates(self) -> Counter[str]:
        return Counter(self.fate.values())

    def unaccounted(self) -> int:
        """Messages sent that have neither ended nor wait in a region."""
        waiting = sum(p.region.waiting() for p in self.processes.values())
        return self._sent - len(self.fate) - waiting

    # ---- operators

    def ask(self, request: Request) -> Answer:
        """An operator's request to whoever coordinates, answered in time."""
        acting = self.acting()
        assert acting is not None
        tag = len(self.answers) + 1_000
        self.coordinate(acting, fx.Requested(request, tag))
        assert self.run_until(lambda: tag in self.answers, 5_000)
        return self.answers[tag]

    def commit(self, stage: Stage) -> PlanView:
        """Stage and commit."""
        staged = self.ask(stage)
        assert isinstance(staged, PlanView), staged
        begun = self.ask(Commit(stage.id, f"op-{stage.id}"))
        assert isinstance(begun, PlanView), begun
        return begun

    def plan(self, id_: str) -> PlanView:
        (view,) = [v for v in self.plans() if v.plan.id == id_]
        return view

    def plans(self) -> tuple[PlanView, ...]:
        found = self.ask(GetPlans())
        assert isinstance(found, PlanViews)
        return found.items

    def placing(self) -> Placing:
        found = self.ask(GetPlacing())
        assert isinstance(found, Placing)
        return found

    def counts(self) -> dict[str, int]:
        return {name: len(p.region.running()) for name, p in self.processes.items()}

    # ---- what must hold in the end

    def converged(self) -> bool:
        """I5: each shard runs on exactly one live node, and table and regions agree about it."""
        placement = self.store.apply([port.ReadPlacement()])[0]
        assert isinstance(placement, port.Placement)
        running: dict[int, tuple[NodeId, int]] = {}
        for process in self.processes.values():
            for shard, epoch in process.region.running().items():
                if shard in running:
                    return False
                running[shard] = (process.id, epoch)
        rows = {r.shard: (NodeId(r.node, r.incarnation), r.epoch) for r in placement.rows}
        known = all(p.region.homes() == placement.rows for p in self.processes.values())
        return known and running == rows and all(r.state is port.ShardState.RUNNING for r in placement.rows)

    def acting(self) -> Process | None:
        active = [p for p in self.processes.values() if p.coordinator.status().active and not p.paused]
        return active[0] if len(active) == 1 else None
