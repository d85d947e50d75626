"""An admin server over as much of an engine as its dispatch needs, and an operator's connection to it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import msgspec
from guarded import OPERATORS, placed_store
from msgspec.structs import replace

from node.actors.actor import Failed, Failure
from node.actors.bus import Bus, Topic
from node.admin import protocol as p
from node.admin.held_messages import GetHeld, Held
from node.admin.server import AdminServer
from node.core.clock import ManualClock
from node.core.hashing import SHARD_COUNT
from node.core.ids import NodeId
from node.engine.events import EVENTS, EventLog, NodeEvent
from node.flows import messages as f
from node.gossip.member import Member, Status
from node.gossip.view import ClusterView
from node.sharding import effects as fx
from node.sharding.coordinator import Coordinator
from node.sharding.nodes import EntityNode, EntityNodes, ShardingSettings
from node.sharding.requests import REQUESTS
from node.store.port import (
    AcquireLease,
    LeaseGranted,
    Placement,
    PlacementWritten,
    ShardRow,
    ShardState,
    WritePlacement,
)
from node.wire.codec import CODEC, dumps, loads
from node.wire.port import SendOutcome

ME = NodeId("n1", 1)
DONE = f.OperationStatus("op-1", "move", "1", "running", (), 0, 0, {})


class Engine:
    """As much of an engine as the dispatch needs: asks are answered from `answers`, the store is empty."""

    def __init__(self) -> None:
        clock = ManualClock()
        self.me = ME
        self.counters: Counter[str] = Counter()
        self.services: dict[type, Any] = {}
        self.config = SimpleNamespace(cluster=SimpleNamespace(name="demo", id="c-1"))
        rng = random.Random(1)
        self.store = placed_store(clock)
        self.world = SimpleNamespace(clock=clock, rng=rng, submit=lambda r, done: done(self.store.apply([r])[0]))
        members = {n: Member(n, 1, f"{n}:1", roles=("entity",), status=Status.UP) for n in ("n1", "n2")}
        self.view = ClusterView(ME, members=members)
        self.membership = SimpleNamespace(state=SimpleNamespace(members={}))
        self.members = SimpleNamespace(went_ms={})
        self.version = 1
        self.rows = tuple(ShardRow(n, "n1", 1, 1, ShardState.RUNNING) for n in range(SHARD_COUNT))
        region = SimpleNamespace(homes=lambda: self.rows, version=1)
        self.sharding = SimpleNamespace(region=region, coordinator_node=lambda: "n1")
        self.coordinator = Coordinating(self.rows)
        self.system = SimpleNamespace(bus=Bus(), mailbox_limits=lambda: {"site": 1})
        self.system.bus.declare(Topic(EVENTS, NodeEvent, EventLog()))
        self.asked: list[tuple[Any, Any]] = []
        self.answers: list[Any] = []

    def draining_nodes(self) -> frozenset[NodeId]:
        return frozenset()

    def ask(self, to: Any, message: Any, timeout_ms: int, done: Callable[[Any], None]) -> None:
        if isinstance(message, GetHeld):
            done(Held(to.node))
            return
        self.asked.append((to, message))
        if isinstance(message, REQUESTS):
            done(self.coordinator.answer(message))
            return
        done(self.answers.pop(0) if self.answers else Failed(Failure.UNREACHABLE, "away"))


class Coordinating:
    """A coordinator over two nodes, whose store answers at once."""

    def __init__(self, rows: tuple[ShardRow, ...]) -> None:
        self.machine = Coordinator(ME, ShardingSettings(), random.Random(1))
        self.version = 1
        self._rows = rows
        self._tag = 0
        self.answers: dict[int, Any] = {}
        nodes = tuple(EntityNode(NodeId(n, 1)) for n in ("n1", "n2"))
        self._carry_out(self.machine.step(fx.NodesChanged(EntityNodes(nodes, ME)), 0))

    def answer(self, request: Any) -> Any:
        self._tag += 1
        self._carry_out(self.machine.step(fx.Requested(request, self._tag), 0))
        return self.answers[self._tag]

    def moved_on(self) -> None:
        """The placement changes: another version."""
        row = replace(self._rows[9], state=ShardState.MOVING)
        assert self.machine._tenure is not None
        self.machine._tenure.written((row,), (), 2, 0)

    def _carry_out(self, effects: list[fx.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, fx.Answered):
                self.answers[effect.tag] = effect.answer
            elif isinstance(effect, fx.StoreCall):
                self._carry_out(self.machine.step(fx.StoreAnswered(effect.tag, self._stored(effect.request)), 0))

    def _stored(self, request: Any) -> Any:
        match request:
            case WritePlacement(version=version, rows=rows):
                return PlacementWritten(version + bool(rows))
            case AcquireLease():
                return LeaseGranted(1, 60_000)
            case _:
                return Placement(1, self._rows)


class Console:
    """An operator's connection."""

    def __init__(self) -> None:
        self.engine = Engine()
        service = SimpleNamespace(report=lambda *, coverage: None)
        self.server = AdminServer(cast(Any, self.engine), cast(Any, service), cast(Any, None))
        self.server.guard.roster = lambda: OPERATORS
        self.who = "admin"
        self.gone = False
        self.replies: list[tuple[int, Any, Any]] = []

    def send(self, data: bytes) -> None:
        self.server.on_request(self.who, "client", data, self._reply)

    def _reply(self, data: bytes) -> SendOutcome:
        if self.gone:
            return SendOutcome.NO_ROUTE
        document = loads(data)
        assert isinstance(document, list)
        number, meta, *body = document
        self.replies.append((number, msgspec.convert(meta, p.Meta), CODEC.message_of(*body)))
        return SendOutcome.SENT

    def request(self, message: msgspec.Struct, number: int = 7, timeout_ms: int = 5_000) -> None:
        self.send(dumps([number, timeout_ms, *CODEC.body_of(message)]))

    async def ask(self, message: msgspec.Struct, **more: Any) -> Any:
        before = len(self.replies)
        self.request(message, **more)
        await self.until(lambda: len(self.replies) > before)
        return self.replies[-1][2]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():  # noqa: ASYNC110 - any condition, within a deadline
                await asyncio.sleep(0.005)


def played(scene: Callable[[Console], Coroutine[Any, Any, None]]) -> Console:
    async def play() -> Console:
        console = Console()
        try:
            await scene(console)
        finally:
            await console.server.close()
        return console

    return asyncio.run(play())
