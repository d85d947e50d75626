"""One node's actor system under a manual clock, over the memory store, turned by hand."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from virtual_time import come_to_rest, let_pass

from node.actors.actor import Context, EntityType
from node.actors.ports import Ports
from node.actors.system import ActorSystem
from node.core.clock import MS, ManualClock
from node.core.ids import EntityRef, NodeId
from node.store.memory import MemoryStore
from node.store.port import (
    AcquireLease,
    Answer,
    LeaseGranted,
    PlacementWritten,
    ReadFacts,
    Request,
    ShardRow,
    ShardState,
    StateStore,
    WritePlacement,
)
from node.wire.envelope import Envelope
from node.wire.registry import wire_type


@wire_type("test_actors.put")
class Put(msgspec.Struct, frozen=True):
    value: int


@wire_type("test_actors.get")
class Get(msgspec.Struct, frozen=True):
    number: int = 0


@wire_type("test_actors.got")
class Got(msgspec.Struct, frozen=True):
    value: int


@wire_type("test_actors.poison")
class Poison(msgspec.Struct, frozen=True):
    number: int = 0


@wire_type("test_actors.kept")
class Kept(msgspec.Struct, frozen=True):
    values: tuple[int, ...] = ()


@wire_type("test_actors.put_fact")
class PutFact(msgspec.Struct, frozen=True):
    value: int


class NotRegistered(msgspec.Struct, frozen=True):
    pass


class Scripted:
    """An actor whose handlers are given by the test; keeps what it received over restarts in `log`."""

    def __init__(
        self,
        log: list[Any],
        receive: Callable[[Context, Any], None] | None = None,
        start: Callable[[Context, Any], None] | None = None,
    ) -> None:
        self.log = log
        self._receive = receive
        self._start = start

    def start(self, ctx: Context, state: Any) -> None:
        if self._start is not None:
            self._start(ctx, state)

    def receive(self, ctx: Context, message: Any) -> None:
        self.log.append(message)
        if self._receive is not None:
            self._receive(ctx, message)


class Node:
    """The system with its ports; `hold_store` keeps answers back until `answer_store`."""

    def __init__(
        self,
        *types: EntityType,
        seed: int = 1,
        me: str = "n1@1",
        clock: Any = None,
        store: StateStore | None = None,
        **more: Any,
    ) -> None:
        self.clock = clock or ManualClock(mono_ns=1_000 * MS)
        self.store: StateStore = store or MemoryStore(self.clock)
        self.routed: list[Envelope] = []
        self.bounced: list[Envelope] = []
        self.published: list[tuple[str, msgspec.Struct]] = []
        self.fenced: list[tuple[int, int, int]] = []
        self.requests: deque[tuple[Request, Callable[[Answer], None]]] = deque()
        self.seen: list[Request] = []
        self.hold_store = False
        self.blocking: deque[tuple[Callable[..., Any], tuple[Any, ...], Callable[[object], None]]] = deque()
        self.blocking_max = 2
        self.woken = 0
        self.freed = 0
        self.on_route: Callable[[Envelope], None] = self.routed.append
        ports = Ports(
            submit=self._submit,
            execute=self._execute,
            route=lambda envelope: self.on_route(envelope),
            publish=lambda topic, event: self.published.append((topic, event)),
            wake=self._wake,
            bounce=self.bounced.append,
            fenced=lambda *found: self.fenced.append(found),
            freed=self._freed,
        )
        self.system = ActorSystem(NodeId.parse(me), self.clock, random.Random(seed), types, ports, **more)

    def _freed(self) -> None:
        self.freed += 1

    def _wake(self) -> None:
        self.woken += 1

    def _submit(self, request: Request, done: Callable[[Answer], None]) -> None:
        self.seen.append(request)
        self.requests.append((request, done))

    def _execute(
        self, executor: str, fn: Callable[..., Any], args: tuple[Any, ...], done: Callable[[object], None]
    ) -> bool:
        if len(self.blocking) >= self.blocking_max:
            return False
        self.blocking.append((fn, args, done))
        return True

    def answer_store(self, count: int | None = None, *, instead: Answer | None = None) -> None:
        """Apply what was submitted; `instead`: answer that without asking the store."""
        for _ in range(len(self.requests) if count is None else count):
            request, done = self.requests.popleft()
            done(self.store.apply([request])[0] if instead is None else instead)

    def run_blocking(self) -> None:
        while self.blocking:
            fn, args, done = self.blocking.popleft()
            done(fn(*args))

    def run(self, turns_max: int = 10_000) -> None:
        """Turn until nothing more happens at this instant."""
        come_to_rest(self.system, self.clock, self._answer_unless_held, turns_max)

    def _answer_unless_held(self) -> bool:
        if self.hold_store or not self.requests:
            return False
        self.answer_store()
        return True

    def advance(self, delta_ms: int) -> None:
        """Let time pass, stopping at each timer."""
        let_pass(self.system, self.clock, delta_ms, self.run)

    def place(self, shards: Sequence[int], epoch: int = 1, node: str = "n1") -> None:
        """Write the placement as a coordinator would."""
        lease = self.store.apply([AcquireLease("coordinator", "test", 1_000_000_000)])[0]
        assert isinstance(lease, LeaseGranted)
        rows = tuple(ShardRow(shard, node, 1, epoch, ShardState.RUNNING) for shard in shards)
        version = getattr(self, "_version", 0)
        written = self.store.apply([WritePlacement("coordinator", "test", lease.term, version, rows)])[0]
        assert isinstance(written, PlacementWritten), written
        self._version = written.version

    def own(self, *refs: EntityRef, epoch: int = 1) -> None:
        """Own the shards of these entities."""
        shards = sorted({ref.shard for ref in refs})
        self.place(shards, epoch)
        for shard in shards:
            self.system.shard_started(shard, epoch)

    def ask(self, to: EntityRef, message: msgspec.Struct, timeout_ms: int = 5_000) -> list[Any]:
        """The outcomes so far of an ask from outside; there must never be two."""
        outcomes: list[Any] = []
        self.system.ask(to, message, timeout_ms, outcomes.append)
        return outcomes

    def facts(self) -> list[str]:
        page: Any = self.store.apply([ReadFacts(0, 10_000)])[0]
        return [fact.type for fact in page.facts]


def kind(
    make: Callable[[str], Any], *, name: str = "thing", durable: type[msgspec.Struct] | None = None, **more: Any
) -> EntityType:
    return EntityType(name, make, durable, **more)


class Owner:
    """A durable actor: Put appends and persists with a fact, answered when durable; Get answers from memory."""

    def __init__(self, log: list[Any] | None = None) -> None:
        self.state = Kept()
        self.log = log if log is not None else []

    def start(self, ctx: Context, state: Kept | None) -> None:
        self.state = state or Kept()
        self.log.append(("start", self.state.values))

    def receive(self, ctx: Context, message: Any) -> None:
        self.log.append(message)
        if isinstance(message, Put):
            self.state = Kept((*self.state.values, message.value))
            value = message.value
            ctx.persist(self.state, facts=[PutFact(value)], reply=Got(value), then=("done", value))
        elif isinstance(message, Get):
            ctx.reply(Got(len(self.state.values)))
        elif isinstance(message, Poison):
            ctx.persist(Kept((-1,)))
            raise RuntimeError("poison")  # noqa: TRY004 - the kind of error is not the point
