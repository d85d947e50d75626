"""What a node can say of its handlers: the last turns, those that were slow, the one that is stuck now."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from actors_harness import Get, Got, Node, Poison, Put, Scripted, kind

from node.actors.actor import Context
from node.actors.flight import AtWork
from node.actors.runtime import Runtime
from node.actors.watchdog import StuckRule
from node.core import limits
from node.core.clock import MS, SystemClock
from node.core.ids import EntityRef

A = EntityRef("thing", "a")
B = EntityRef("thing", "b")


def test_a_slow_handler_is_counted_by_type_and_message_and_no_other_is() -> None:
    """B5: among quick ones, it is the slow one that is named."""

    def receive(ctx: Context, message: Any) -> None:
        if message == Put(7):
            node.clock.advance_ns(250 * MS)

    node = Node(kind(lambda _: Scripted([], receive)))
    node.own(A)
    for number in range(20):
        node.system.tell(A, Get(number))
        node.system.tell(A, Put(number))
    node.run()
    [slow] = node.system.slow_handlers()
    assert (slow.kind, slow.message_type, slow.count, slow.longest_ms, slow.last_id) == (
        "thing", "test_actors.put", 1, 250, "a",
    )  # fmt: skip
    assert node.system.stats()["slow_handlers"] == 1


def test_the_time_of_a_handler_is_the_time_of_its_own_message() -> None:
    times: list[int] = []

    def receive(ctx: Context, message: Any) -> None:
        times.append(ctx.now_ns() // MS)
        node.clock.advance_ns(1 * MS)

    node = Node(kind(lambda _: Scripted([], receive)))
    node.own(A)
    for number in range(3):
        node.system.tell(A, Get(number))
    begun = node.clock.mono_ns() // MS
    node.run()
    assert times == [begun, begun + 1, begun + 2]


def test_the_flight_recorder_keeps_the_newest_turns_without_payload() -> None:
    def receive(ctx: Context, message: Any) -> None:
        if isinstance(message, Poison):
            raise LookupError("no")  # noqa: TRY004 - the kind of error is not the point
        node.clock.advance_ns(2 * MS)

    node = Node(kind(lambda _: Scripted([], receive)))
    node.own(A, B)
    node.system.tell(A, Put(1))
    node.system.tell(B, Poison(5))
    node.run()
    turns = node.system.flight()
    assert [turn[2:] for turn in turns] == [(A, Put, 1, True), (B, Poison, 1, False)]
    assert [end - begin for begin, end, *_ in turns] == [2 * MS, 0]
    for number in range(limits.flight_turns_kept + 10):
        node.system.tell(A, Get(number))
        node.run()
    assert len(node.system.flight()) == limits.flight_turns_kept


def test_stuck_is_said_once_and_only_of_one_and_the_same_run() -> None:
    """B5: once it has run for too long, and once only."""
    rule = StuckRule()
    message, turn = Put(1), (0, 0, A, Put, 1, True)
    here = AtWork(A, Put, message, turn)
    after = AtWork(A, Put, message, (0, 0, A, Put, 1, True))  # the same message object, in a later turn
    at_ms = [0, 500, 999, 1_000, 1_250, 1_500, 2_600, 3_000]
    seen = [here, here, here, here, here, after, after, None]
    assert [rule.look(ms * MS, at) for ms, at in zip(at_ms, seen, strict=True)] == [0, 0, 0, 1_000, 0, 0, 1_100, 0]


def test_a_handler_that_blocks_the_loop_is_named_while_it_does(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """B5: by type, message and stack."""
    monkeypatch.setattr(limits, "handler_stuck_ms", 20)
    monkeypatch.setattr(limits, "watchdog_ms", 5)
    named = threading.Event()

    class Telling(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            named.set()

    log = logging.getLogger("node.actors.watchdog")
    handler = Telling()
    log.addHandler(handler)

    def receive(ctx: Context, message: Any) -> None:
        ctx.reply(Got(int(named.wait(30))))  # blocks until it was named, however slow the machine

    async def play() -> list[Any]:
        runtime = Runtime(SystemClock(), {})
        node = Node(kind(lambda _: Scripted([], receive)), clock=SystemClock())
        node.own(A)
        outcomes = node.ask(A, Get(), timeout_ms=600_000)
        runtime.drive(node.system)
        while not outcomes:
            runtime.wake()
            await asyncio.sleep(0)
        await runtime.close()
        return outcomes

    try:
        assert asyncio.run(play()) == [Got(1)]
    finally:
        log.removeHandler(handler)
    [record] = [record for record in caplog.records if record.name == "node.actors.watchdog"]
    assert "thing:a has been at Get for" in record.getMessage()
    assert "named.wait" in record.getMessage(), "with the line at which it stands"
