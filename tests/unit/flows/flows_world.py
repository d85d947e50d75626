"""Replays and operations in one actor system: sites are scripted, nodes are the test, which sees what is routed."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
from virtual_time import come_to_rest, let_pass

from node.actors.actor import Context, EntityType
from node.actors.ports import Ports
from node.actors.system import ActorSystem
from node.core.clock import MS, ManualClock
from node.core.hashing import SHARD_COUNT
from node.core.ids import EntityRef, NodeId, ServiceRef
from node.flows.messages import GetCoverage, ReplayReport, ReplaySite, SiteCoverage
from node.flows.operation import Operation
from node.flows.replay import Replay
from node.flows.replay_register import RegisterState, ReplayRegister
from node.flows.replay_state import ReplayState
from node.flows.state import OperationState
from node.store.memory import MemoryStore
from node.store.port import (
    AcquireLease,
    Answer,
    LeaseGranted,
    Request,
    ShardRow,
    ShardState,
    StateChange,
    WritePlacement,
)
from node.wire.envelope import Envelope, Kind


class Members:
    """What operations know of the cluster."""

    def __init__(self) -> None:
        self.members = {("n1", 1), ("n2", 1)}
        self.coordinator: str | None = "n1"
        self.away: set[str] = set()
        self.ended = "left"
        self.unplaced = ""

    def coordinator_node(self) -> str | None:
        return self.coordinator

    def is_member(self, node: str, incarnation: int) -> bool:
        return (node, incarnation) in self.members

    def reachable(self, node: str) -> bool:
        return node not in self.away

    def why_not_placed(self) -> str:
        return self.unplaced

    def how_ended(self, node: str, incarnation: int) -> str:
        return self.ended


class ScriptedSite:
    """Answers as `world` says for its name; silent while it is in `world.silent`."""

    def __init__(self, name: str, world: World) -> None:
        self._name = name
        self._world = world

    def start(self, ctx: Context, state: None) -> None:
        pass

    def receive(self, ctx: Context, message: Any) -> None:
        world = self._world
        if self._name in world.silent:
            ctx.reply_later()
        elif self._name in world.gone:
            ctx.reject(f"there is no site {self._name!r}")
        elif isinstance(message, ReplaySite):
            world.orders.append(message)
            world.replayed.append(self._name)
            ctx.reply(world.reports.get(self._name) or self._lot(message))
        elif isinstance(message, GetCoverage):
            present = world.present.get(self._name, 4)
            missing = tuple((f"slot-{number}", "no_demand") for number in range(present, 4))
            ctx.reply(SiteCoverage(self._name, 4, present, missing, pages=world.pages.get(self._name, 4)))

    def _lot(self, order: ReplaySite) -> ReplayReport:
        """Its pages are numbers, every fourth one is too old."""
        pages, begin = self._world.pages.get(self._name, 4), int(order.after or 0)
        end = min(pages, begin + order.limit) if order.limit else pages
        old = end // 4 - begin // 4
        return ReplayReport(end - begin, end - begin - old, old, 0, str(end) if end < pages else "")


class World:
    def __init__(self) -> None:
        self.clock = ManualClock(mono_ns=1_000 * MS)
        self.store = MemoryStore(self.clock)
        self.cluster = Members()
        self.silent: set[str] = set()
        self.replayed: list[str] = []
        self.gone: set[str] = set()
        self.orders: list[ReplaySite] = []
        self.pages: dict[str, int] = {}
        self.reports: dict[str, ReplayReport] = {}
        self.present: dict[str, int] = {}
        self.epoch = 0
        self.writes = 0
        self.restart()

    def restart(self) -> None:
        """Another owner takes over all shards."""
        self.epoch += 1
        self.requests: deque[tuple[Request, Callable[[Answer], None]]] = deque()
        self.routed: list[Envelope] = []
        self.orders.clear()
        ports = Ports(
            submit=lambda request, done: self.requests.append((request, done)),
            execute=lambda *_: False,
            route=self.routed.append,
            publish=lambda topic, event: None,
            wake=lambda: None,
            bounce=lambda envelope: None,
            fenced=lambda *found: None,
        )
        types = (
            EntityType("site", lambda name: ScriptedSite(name, self)),
            EntityType("replay", Replay, ReplayState, remember=True),
            EntityType("replay-register", ReplayRegister, RegisterState),
            EntityType("operation", lambda name: Operation(name, self.cluster), OperationState, remember=True),
        )
        self.system = ActorSystem(NodeId("n1", self.epoch), self.clock, random.Random(1), types, ports)
        lease = self.store.apply([AcquireLease("coordinator", "test", 10**12)])[0]
        assert isinstance(lease, LeaseGranted)
        rows = tuple(ShardRow(s, "n1", 1, self.epoch, ShardState.RUNNING) for s in range(SHARD_COUNT))
        self.store.apply([WritePlacement("coordinator", "test", lease.term, self.epoch - 1, rows)])
        for shard in range(SHARD_COUNT):
            self.system.shard_started(shard, self.epoch)
        self.advance(200)

    def run(self) -> None:
        come_to_rest(self.system, self.clock, self._answer_store)

    def _answer_store(self) -> bool:
        answers = False
        while self.requests:
            request, done = self.requests.popleft()
            self.writes += isinstance(request, StateChange)
            done(self.store.apply([request])[0])
            answers = True
        return answers

    def advance(self, delta_ms: int) -> None:
        let_pass(self.system, self.clock, delta_ms, self.run)

    def ask(self, kind: str, name: str, message: msgspec.Struct) -> Any:
        outcomes: list[Any] = []
        self.system.ask(EntityRef(kind, name), message, 5_000, outcomes.append)
        self.run()
        assert len(outcomes) == 1, outcomes
        return outcomes[0]

    def to_nodes(self, shape: type) -> list[tuple[str, Any]]:
        """What was sent to nodes since the start, of one type."""
        return [
            (e.to.node, e.message) for e in self.routed if isinstance(e.to, ServiceRef) and isinstance(e.message, shape)
        ]

    def answer(self, message: msgspec.Struct) -> None:
        """A node answers the newest ask that was routed to it."""
        asked = next(e for e in reversed(self.routed) if e.kind is Kind.ASK)
        me = ServiceRef("n1", "/ask")
        self.system.on_reply(Envelope(Kind.REPLY, me, NodeId("n1", 1), message, asked.correlation))
        self.run()
