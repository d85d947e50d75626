"""The asyncio driver with real threads and a real loop: waits for conditions, never for times."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from actors_harness import Get, Got, Kept, Owner, Put, Scripted, kind

from node.actors.actor import Context, Failed, Failure
from node.actors.ports import Ports
from node.actors.runtime import Runtime
from node.actors.store_driver import StoreDriver
from node.actors.system import ActorSystem
from node.core import limits
from node.core.clock import ManualClock, SystemClock
from node.core.errors import LocalProtocolError
from node.core.ids import EntityRef, NodeId
from node.store.memory import MemoryStore
from node.store.port import (
    Absent,
    AcquireLease,
    Answer,
    ReadState,
    Record,
    Request,
    ShardRow,
    ShardState,
    StoreFailed,
    WritePlacement,
)

A = EntityRef("thing", "a")
DEADLINE_S = 10


class SlowStore:
    """The memory store behind a gate; keeps the batches and says when a batch has begun."""

    def __init__(self) -> None:
        self.inner = MemoryStore(SystemClock())
        self.gate = threading.Event()
        self.gate.set()
        self.begun = threading.Event()
        self.batches: list[Sequence[Request]] = []
        self.closed = False
        self.error: Exception | None = None

    def apply(self, batch: Sequence[Request]) -> list[Answer]:
        self.begun.set()
        assert self.gate.wait(DEADLINE_S)
        self.batches.append(batch)
        if self.error is not None:
            raise self.error
        return self.inner.apply(batch)

    def close(self) -> None:
        self.closed = True


def run(test: Callable[[], Any]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await test()

    asyncio.run(bounded())


def node(runtime: Runtime, store: StoreDriver, *types: Any) -> ActorSystem:
    def nowhere(*args: Any) -> None:
        raise AssertionError(args)

    clock = SystemClock()
    ports = Ports(store.submit, runtime.execute, nowhere, nowhere, runtime.wake, nowhere, nowhere)
    system = ActorSystem(NodeId("n1", 1), clock, random.Random(1), types, ports)
    runtime.drive(system)
    return system


async def ask(system: ActorSystem, to: EntityRef, message: msgspec.Struct, timeout_ms: int = 9_000) -> Any:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    system.ask(to, message, timeout_ms, future.set_result)
    return await future


async def read(driver: StoreDriver) -> Any:
    future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    driver.submit(ReadState("thing", "a"), future.set_result)
    return await future


def place(store: SlowStore) -> None:
    store.inner.apply([AcquireLease("c", "t", 60_000)])
    row = ShardRow(A.shard, "n1", 1, 1, ShardState.RUNNING)
    store.inner.apply([WritePlacement("c", "t", 1, 0, (row,))])


def test_an_entity_answers_durably_over_threads_and_close_flushes() -> None:
    async def test() -> None:
        store = SlowStore()
        place(store)
        runtime, driver = Runtime(SystemClock(), {}), StoreDriver(store, SystemClock())
        system = node(runtime, driver, kind(lambda _: Owner(), durable=Kept))
        system.shard_started(A.shard, 1)
        outcomes = await asyncio.gather(*(ask(system, A, Put(value)) for value in range(20)))
        assert outcomes == [Got(value) for value in range(20)]
        store.begun.clear()
        store.gate.clear()
        last = asyncio.ensure_future(ask(system, A, Put(20)))
        await asyncio.to_thread(store.begun.wait, DEADLINE_S)
        closing = asyncio.ensure_future(driver.close())
        store.gate.set()
        await closing
        assert await last == Got(20)
        assert store.closed
        assert await read(driver) == StoreFailed("E-STORE-CLOSED", "the store is closing", True)
        await runtime.close()
        record = store.inner.apply([ReadState("thing", "a")])[0]
        assert isinstance(record, Record)

    run(test)


def test_what_waits_for_the_store_goes_as_one_batch_and_a_long_wait_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "store_batch_requests_max", 10)

    async def test() -> None:
        store, clock = SlowStore(), ManualClock(mono_ns=10**9)
        store.gate.clear()
        driver = StoreDriver(store, clock)
        answers: list[Answer] = []
        driver.submit(ReadState("a", "0"), answers.append)
        await asyncio.to_thread(store.begun.wait, DEADLINE_S)
        for number in range(25):
            driver.submit(ReadState("a", str(number)), answers.append)
        assert driver.queued == 25
        assert driver.blocked_since_ns is None
        clock.advance_ns((limits.store_wait_ms_max + 1) * 10**6)
        assert driver.blocked_since_ns == 10**9
        store.gate.set()
        await driver.close()
        assert [len(batch) for batch in store.batches] == [1, 10, 10, 5]
        assert len(answers) == 26
        assert driver.blocked_since_ns is None

    run(test)


def test_a_store_that_raises_is_indefinite_for_all_and_the_next_batch_goes_on() -> None:
    async def test() -> None:
        store = SlowStore()
        driver = StoreDriver(store, SystemClock())
        store.error = OSError("disk")

        def bad(answer: Answer) -> None:
            raise RuntimeError("caller")

        driver.submit(ReadState("a", "0"), bad)
        failed = await read(driver)
        assert (failed.code, failed.definite) == ("E-STORE", False)
        assert len(store.batches) == 1, "both in one"
        store.error = None
        assert await read(driver) == Absent()
        await driver.close()

    run(test)


def test_blocking_work_is_bounded_fails_alone_and_is_awaited_at_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "executor_queue_max", 1)

    async def test() -> None:
        runtime = Runtime(SystemClock(), {"disk": 1})
        gate = threading.Event()
        done: list[object] = []
        assert runtime.execute("disk", lambda: gate.wait(DEADLINE_S), (), done.append)
        assert runtime.execute("disk", lambda a: 1 // a, (0,), done.append)
        assert not runtime.execute("disk", lambda: 1, (), done.append)
        assert runtime.executor_load() == {"disk": 2}
        with pytest.raises(LocalProtocolError, match="llm"):
            runtime.execute("llm", lambda: 1, (), done.append)
        closing = asyncio.ensure_future(runtime.close())
        gate.set()
        await closing
        failed = done[1]
        assert done[0] is True
        assert isinstance(failed, Failed)
        assert failed.failure is Failure.FAILED
        assert "ZeroDivisionError" in failed.detail
        assert not runtime.execute("disk", lambda: 1, (), done.append)

    run(test)


def test_saturated_executors_say_so_at_once_and_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """B10: all of db, llm, browser and disk are full; an actor is told at once, and what needs none of them runs."""
    monkeypatch.setattr(limits, "executor_queue_max", 2)

    async def test() -> None:
        runtime, driver = Runtime(SystemClock(), limits.executor_threads), StoreDriver(SlowStore(), SystemClock())
        assert set(limits.executor_threads) == {"db", "llm", "browser", "disk"}
        gate = threading.Event()
        ended: list[object] = []
        for name, threads in limits.executor_threads.items():
            for _ in range(threads + limits.executor_queue_max):
                assert runtime.execute(name, lambda: gate.wait(DEADLINE_S), (), ended.append)
        log: list[Any] = []

        def receive(ctx: Context, message: Any) -> None:
            if isinstance(message, Put):
                for name in limits.executor_threads:
                    ctx.pipe(name, lambda: 1, then=lambda outcome: ("outcome", outcome))
            elif isinstance(message, Get):
                ctx.reply(Got(1))

        system = node(runtime, driver, kind(lambda _: Scripted(log, receive)))
        system.shard_started(A.shard, 1)
        system.tell(A, Put(1))
        assert await ask(system, A, Get()) == Got(1)
        await ask(system, A, Get())  # the outcomes were queued before this one
        outcomes = [entry[1] for entry in log if isinstance(entry, tuple)]
        assert outcomes == [Failed(Failure.SATURATED, name) for name in limits.executor_threads]
        assert ended == [], "nothing had to end for that"
        assert all(system.stats()[f"executor_saturated_{name}"] == 1 for name in limits.executor_threads)
        gate.set()
        await runtime.close()
        await driver.close()

    run(test)


def test_timers_fire_and_a_busy_entity_does_not_starve_the_loop() -> None:
    async def test() -> None:
        runtime, driver = Runtime(SystemClock(), {}), StoreDriver(SlowStore(), SystemClock())
        log: list[Any] = []
        over = asyncio.Event()

        def receive(ctx: Context, message: Any) -> None:
            if message == Put(0):
                ctx.after("later", 30, Put(2))
                ctx.after("sooner", 10, Put(1))
            if message == Put(2):
                over.set()
            if isinstance(message, Get) and not over.is_set():
                ctx.tell(ctx.ref, message)

        system = node(runtime, driver, kind(lambda _: Scripted(log, receive)))
        system.shard_started(A.shard, 1)
        system.tell(A, Get())
        system.tell(A, Put(0))
        await over.wait()
        assert [message.value for message in log if isinstance(message, Put)] == [0, 1, 2]
        await runtime.close()
        await driver.close()

    run(test)


def test_a_turn_that_raises_is_reported_and_not_the_last() -> None:
    async def test() -> None:
        reported: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context["exception"]))
        runtime, driver = Runtime(SystemClock(), {}), StoreDriver(SlowStore(), SystemClock())
        system = node(runtime, driver, kind(lambda _: Scripted([], lambda ctx, message: ctx.reply(Got(1)))))
        system.shard_started(A.shard, 1)

        def fault() -> None:
            raise ZeroDivisionError

        system._kernel.later(fault)
        assert await ask(system, A, Get()) == Got(1)
        assert [type(error) for error in reported] == [ZeroDivisionError]
        await runtime.close()
        await driver.close()

    run(test)


def test_the_driver_runs_under_uvloop_as_well() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def test() -> None:
        store = SlowStore()
        place(store)
        runtime, driver = Runtime(SystemClock(), {"disk": 1}), StoreDriver(store, SystemClock())

        def receive(ctx: Context, message: Any) -> None:
            if isinstance(message, Get):
                kept = ctx.reply_later()
                ctx.pipe("disk", lambda: 5, then=lambda value: (kept, value))
            else:
                ctx.answer(message[0], Got(message[1]))

        system = node(runtime, driver, kind(lambda _: Scripted([], receive)))
        system.shard_started(A.shard, 1)
        assert await ask(system, A, Get()) == Got(5)
        await runtime.close()
        await driver.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(test(), DEADLINE_S))
