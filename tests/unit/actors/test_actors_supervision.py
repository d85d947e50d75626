"""Failures stay with their cell: back-off, redelivery, dead letters, quarantine, release."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from actors_harness import Get, Got, Kept, Node, Owner, Poison, Put, Scripted, kind

from node.actors.actor import Context, Failure
from node.actors.supervision import Failures, backoff_ns
from node.core import limits
from node.core.clock import MS
from node.core.errors import BadInput
from node.core.ids import EntityRef
from node.wire.codec import CODEC, loads
from node.wire.envelope import decode, encode

A = EntityRef("thing", "a")
B = EntityRef("thing", "b")


def test_poison_is_a_dead_letter_after_five_deliveries_and_the_others_proceed() -> None:
    """B3: its asker is told, and the dead letter is replayed once."""
    log: list[Any] = []
    broken = [True]

    def receive(ctx: Context, message: Any) -> None:
        if isinstance(message, Poison) and broken[0]:
            raise RuntimeError("can't stomach this")
        ctx.reply(Got(1))

    node = Node(kind(lambda _: Scripted(log, receive)))
    node.own(A)
    poisoned = node.ask(A, Poison(), timeout_ms=600_000)
    fine = node.ask(A, Get(1), timeout_ms=600_000)
    node.run()
    assert (poisoned, fine) == ([], [])
    node.advance(60_000)
    assert fine == [Got(1)]
    assert log == [Poison()] * limits.deliveries_max + [Get(1)]
    assert [outcome.failure for outcome in poisoned] == [Failure.FAILED]
    [letter] = node.system.dead_letters
    assert (letter.message, letter.deliveries, letter.error) == (Poison(), 5, "RuntimeError: can't stomach this")
    broken[0] = False
    node.system.replay_dead_letter(letter.number)
    node.run()
    assert log[-1] == Poison()
    assert len(node.system.dead_letters) == 0
    with pytest.raises(BadInput):
        node.system.replay_dead_letter(letter.number)


def test_poison_takes_the_count_of_its_deliveries_along_when_its_shard_moves() -> None:
    """B3, seed 525 of five nodes: a shard that came and went brought the same message as a new one each time."""
    log: list[Any] = []

    def receive(ctx: Context, message: Any) -> None:
        raise RuntimeError("can't stomach this")

    first, second = (Node(kind(lambda _: Scripted(log, receive))) for _ in range(2))
    first.own(A)
    first.system.tell(A, Poison())
    first.run()
    before = len(log)
    assert 0 < before < limits.deliveries_max
    first.system.shard_stopping(A.shard, lambda tally: None)
    first.run()
    [envelope] = first.bounced
    assert envelope.deliveries == before
    second.own(A)
    second.system.deliver(decode(loads(encode(envelope, CODEC, 0)), CODEC, "second", 0))
    second.advance(60_000)
    assert log == [Poison()] * limits.deliveries_max
    [letter] = second.system.dead_letters
    assert letter.deliveries == limits.deliveries_max


def test_a_cell_that_always_raises_is_quarantined_shown_and_released() -> None:
    """B4: with its last error and the message that caused it."""
    broken = [True]

    def receive(ctx: Context, message: Any) -> None:
        if broken[0]:
            raise ValueError("always")
        ctx.reply(Got(2))

    node = Node(kind(lambda _: Scripted([], receive)))
    node.own(A, B)
    for number in range(3):
        node.system.tell(A, Put(number))
    node.advance(40_000)
    [(ref, fault)] = node.system.quarantined().items()
    assert (ref, fault.error, fault.message_type) == (A, "ValueError: always", "test_actors.put")
    assert fault.message_bytes == len(CODEC.encode(Put(0)))
    assert node.system.stats()["failures"] == limits.restarts_max + 1
    assert node.system.dead_letters.total("failed") == 2, "the one given up, and the one that was handled last"
    assert node.system.dead_letters.total("rejected") == 1, "the one that waited"
    refused = node.ask(A, Get())
    node.run()
    assert (refused[0].failure, refused[0].detail) == (Failure.REJECTED, "quarantined")
    broken[0] = False
    with pytest.raises(BadInput):
        node.system.release(B)
    node.system.release(A)
    answered = node.ask(A, Get())
    node.run()
    assert answered == [Got(2)]
    broken[0] = True
    node.system.tell(A, Put(9))
    node.run()
    assert node.system.quarantined() == {}, "with a clean record"


def test_a_timer_that_raises_is_not_delivered_again() -> None:
    def start(ctx: Context, state: Any) -> None:
        starts.append(1)
        if len(starts) == 1:
            ctx.after("key", 10, "boom")

    starts: list[int] = []
    log: list[Any] = []
    node = Node(kind(lambda _: Scripted(log, lambda ctx, message: 1 // (message != "boom"), start)))
    node.own(A)
    node.system.tell(A, Get())
    node.advance(60_000)
    assert log == [Get(), "boom"]
    assert node.system.dead_letters.counters == {("failed", "str"): 1}


def test_a_failure_leaves_other_cells_alone_and_restarts_from_the_store() -> None:
    logs: dict[str, list[Any]] = {"a": [], "b": []}
    node = Node(kind(lambda entity_id: Owner(logs[entity_id]), durable=Kept))
    node.own(A, B)
    node.ask(A, Put(1))
    node.run()
    node.system.tell(A, Poison())
    node.run()
    other, waiting = node.ask(B, Get()), node.ask(A, Get(), timeout_ms=600_000)
    node.run()
    assert (other, waiting) == ([Got(0)], [])
    node.advance(60_000)
    assert waiting == [Got(1)], "the state of before the failure"
    assert logs["a"].count(("start", (1,))) == limits.deliveries_max


def test_failing_to_start_backs_off_too() -> None:
    starts: list[int] = []

    def start(ctx: Context, state: Any) -> None:
        starts.append(ctx.now_ns() // MS)
        if len(starts) < 3:
            raise RuntimeError("not yet")

    log: list[Any] = []
    node = Node(kind(lambda _: Scripted(log, None, start)))
    node.own(A)
    node.system.tell(A, Get())
    node.advance(10_000)
    assert log == [Get()]
    waits = [after - before for before, after in itertools.pairwise(starts)]
    assert 1_000 <= waits[0] <= 1_200
    assert 2_000 <= waits[1] <= 2_400


def test_a_failure_ends_timers_and_tells_those_whose_answer_was_kept() -> None:
    log: list[Any] = []

    def receive(ctx: Context, message: Any) -> None:
        if message == Get(1):
            ctx.reply_later()
            ctx.every("tick", 100, "tick")
        if message == Get(2):
            ctx.reply_later()
            raise RuntimeError("no")

    node = Node(kind(lambda _: Scripted(log, receive)))
    node.own(A)
    kept, failing = node.ask(A, Get(1)), node.ask(A, Get(2), timeout_ms=600_000)
    node.run()
    assert [outcome.failure for outcome in kept] == [Failure.FAILED]
    assert failing == [], "it will be delivered again"
    node.advance(60_000)
    assert "tick" not in log
    assert [outcome.failure for outcome in failing] == [Failure.FAILED]


def test_an_adapter_that_raises_fails_its_own_cell() -> None:
    def receive(ctx: Context, message: Any) -> None:
        if message == Put(1):
            ctx.ask(B, Get(), 1_000, lambda outcome: 1 // 0)
        if isinstance(message, Get):
            ctx.reply(Got(1))

    node = Node(kind(lambda _: Scripted([], receive)))
    node.own(A, B)
    node.system.tell(A, Put(1))
    node.advance(120_000)
    assert [(letter.to, letter.message) for letter in node.system.dead_letters] == [(A, None)]
    assert node.system.stats()["failures"] == limits.deliveries_max


def test_only_failures_within_the_window_count() -> None:
    failures = Failures()
    apart_ns = limits.restart_window_ms * MS // limits.restarts_max
    rule = (limits.restarts_max, limits.restart_window_ms)
    assert not any(failures.note(number * apart_ns, *rule) for number in range(100))
    assert any(failures.note(100 * apart_ns + number, *rule) for number in range(limits.restarts_max))


def test_back_off_doubles_within_its_bounds() -> None:
    class Highest:
        def random(self) -> float:
            return 1.0

    seconds = [backoff_ns(failures, Highest()) / 1e9 for failures in (1, 2, 3, 9, 10_000)]  # type: ignore[arg-type]
    assert seconds == pytest.approx([1.2, 2.4, 4.8, 36.0, 36.0])
