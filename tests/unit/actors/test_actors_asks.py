"""Asks: exactly one outcome, deadlines, replies kept and repeated, other nodes, executors."""

from __future__ import annotations

from typing import Any

import pytest
from actors_harness import Get, Got, Node, Put, Scripted, kind

from node.actors.actor import Context, Failed, Failure, ReplyTo
from node.actors.ask import FailedReply
from node.actors.cell import ShardTally
from node.core import limits
from node.core.ids import EntityRef, NodeId, ServiceRef
from node.wire.envelope import Envelope, Kind

A = EntityRef("thing", "a")
B = EntityRef("asker", "b")


def asker(log: list[Any], timeout_ms: int = 1_000) -> Any:
    def receive(ctx: Context, message: Any) -> None:
        if isinstance(message, Put):
            ctx.ask(A, Get(message.value), timeout_ms, lambda outcome: ("outcome", outcome))

    return kind(lambda _: Scripted(log, receive), name="asker")


def test_reply_reject_and_timeout_each_arrive_once_as_a_message() -> None:
    log: list[Any] = []

    def receive(ctx: Context, message: Any) -> None:
        if message.number == 1:
            ctx.reply(Got(1))
        if message.number == 2:
            ctx.reject("no")

    node = Node(kind(lambda _: Scripted([], receive)), asker(log))
    node.own(A, B)
    for value in (1, 2, 3):
        node.system.tell(B, Put(value))
    node.advance(5_000)
    assert [entry for entry in log if not isinstance(entry, Put)] == [
        ("outcome", Got(1)),
        ("outcome", Failed(Failure.REJECTED, "no")),
        ("outcome", Failed(Failure.TIMEOUT)),
    ]
    assert node.system.stats()["asks_open"] == 0


def test_second_and_late_replies_are_counted_once_each_and_dropped() -> None:
    """B9: late replies and second ones are counted once each."""
    kept: list[ReplyTo] = []

    def receive(ctx: Context, message: Any) -> None:
        if message == Get(1):
            ctx.reply(Got(1))
            ctx.reply(Got(2))
        if message == Get(2):
            kept.append(ctx.reply_later())
        if message == Put(0):
            ctx.answer(kept[0], Got(3))
            ctx.answer(kept[0], Got(4))

    node = Node(kind(lambda _: Scripted([], receive)))
    node.own(A)
    first, second = node.ask(A, Get(1)), node.ask(A, Get(2), timeout_ms=100)
    node.advance(200)
    node.system.tell(A, Put(0))
    node.run()
    assert first == [Got(1)]
    assert second == [Failed(Failure.TIMEOUT)]
    stats = node.system.stats()
    assert (stats["answered_twice"], stats["asks_late"], stats["answered_unknown"]) == (1, 1, 1)


def test_reply_kept_for_later_answers() -> None:
    kept: list[ReplyTo] = []

    def receive(ctx: Context, message: Any) -> None:
        if isinstance(message, Get):
            kept.append(ctx.reply_later())
        elif message == Put(1):
            ctx.answer(kept[0], Got(5))
        else:
            ctx.answer_reject(kept[1], "later too")

    node = Node(kind(lambda _: Scripted([], receive)))
    node.own(A)
    one, two = node.ask(A, Get()), node.ask(A, Get())
    node.run()
    assert one == two == []
    node.system.tell(A, Put(1))
    node.system.tell(A, Put(2))
    node.run()
    assert one == [Got(5)]
    assert two == [Failed(Failure.REJECTED, "later too")]


def test_an_ask_whose_deadline_passed_before_its_turn_is_not_run() -> None:
    log: list[Any] = []
    node = Node(kind(lambda _: Scripted(log)))
    node.own(A)
    outcome = node.ask(A, Get(), timeout_ms=50)
    node.clock.advance_ns(60_000_000)
    node.run()
    assert (log, outcome) == ([], [Failed(Failure.TIMEOUT)])
    assert node.system.dead_letters.total("late") == 1
    tallies: list[Any] = []
    node.system.shard_stopping(A.shard, tallies.append)
    node.run()
    assert tallies == [ShardTally(handled=0, bounced=0, dropped=1, entities=1, arrived=1)]


def test_asks_of_other_nodes_are_answered_through_the_port() -> None:
    def receive(ctx: Context, message: Any) -> None:
        if message == Get(1):
            ctx.reply(Got(7))
        else:
            ctx.reject("no")

    node = Node(kind(lambda _: Scripted([], receive)))
    node.own(A)
    peer = NodeId("n2", 4)
    for number in (1, 2):
        node.system.deliver(Envelope(Kind.ASK, A, peer, Get(number), correlation=70 + number, trace="t"))
    node.run()
    me = NodeId("n1", 1)
    to = ServiceRef("n2", "/ask")
    assert node.routed == [
        Envelope(Kind.REPLY, to, me, Got(7), 71, 0, "t"),
        Envelope(Kind.REJECT, to, me, FailedReply("rejected", "no"), 72, 0, "t"),
    ]


def test_replies_of_other_nodes_are_matched_once_and_never_with_an_earlier_start() -> None:
    node = Node(kind(lambda _: Scripted([])), me="n1@2")
    outcomes = node.ask(A, Get())  # not owned: it leaves
    sent = node.routed[0]
    peer = NodeId("n2", 1)
    me = ServiceRef("n1", "/ask")
    earlier = Node(kind(lambda _: Scripted([])), me="n1@1")
    earlier.ask(A, Get())
    assert earlier.routed[0].correlation != sent.correlation
    node.system.deliver(Envelope(Kind.REPLY, me, peer, Got(0), earlier.routed[0].correlation))
    for _ in range(2):
        node.system.on_reply(Envelope(Kind.REPLY, me, peer, Got(1), sent.correlation))
    node.run()
    assert outcomes == [Got(1)]
    assert node.system.stats()["asks_late"] == 2


@pytest.mark.parametrize(
    ("message", "failed"),
    [
        (FailedReply("no_home", "x"), Failed(Failure.NO_HOME, "x")),
        (FailedReply("of_next_year", "x"), Failed(Failure.FAILED, "of_next_year: x")),
        (Got(1), Failed(Failure.FAILED, "rejected with Got")),
    ],
)
def test_rejections_of_other_nodes_become_failures(message: Any, failed: Failed) -> None:
    node = Node(kind(lambda _: Scripted([])))
    outcomes = node.ask(A, Get())
    node.system.on_reply(
        Envelope(Kind.REJECT, ServiceRef("n1", "/ask"), NodeId("n2", 1), message, node.routed[0].correlation)
    )
    node.run()
    assert outcomes == [failed]


def test_what_could_not_be_sent_is_refused_by_the_driver() -> None:
    """B1, the actors' half: an ask is told PeerBusy at once, a tell is a dead letter with its reason."""
    node = Node(kind(lambda _: Scripted([])))
    outcomes = node.ask(A, Get())
    node.system.tell(A, Put(1))
    for envelope in node.routed:
        node.system.refuse(envelope, Failure.PEER_BUSY)
    node.run()
    assert outcomes == [Failed(Failure.PEER_BUSY)]
    assert [(letter.reason, letter.message) for letter in node.system.dead_letters] == [("peer_busy", Put(1))]


def test_too_many_open_asks_fail_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "asks_open_max", 2)
    node = Node(kind(lambda _: Scripted([])))
    outcomes = [node.ask(A, Get()) for _ in range(3)]
    node.run()
    assert [bool(found) for found in outcomes] == [False, False, True]
    assert outcomes[2][0].failure is Failure.SATURATED


def test_a_callback_from_outside_that_raises_hurts_nobody() -> None:
    node = Node(kind(lambda _: Scripted([], lambda ctx, message: ctx.reply(Got(1)))))
    node.own(A)

    def bad(outcome: Any) -> None:
        raise RuntimeError("edge")

    node.system.ask(A, Get(), 100, bad)
    fine = node.ask(A, Get())
    node.run()
    assert fine == [Got(1)]
    assert node.system.stats()["callback_failed"] == 1


def test_piped_work_comes_back_as_a_message_and_a_full_executor_says_so_at_once() -> None:
    """B10: the actor gets Failed(SATURATED) in the same turn."""
    log: list[Any] = []

    def receive(ctx: Context, message: Any) -> None:
        if isinstance(message, Put):
            ctx.pipe("disk", lambda a, b: a + b, message.value, 10, then=lambda value: ("sum", value))

    node = Node(kind(lambda _: Scripted(log, receive)))
    node.own(A)
    for value in (1, 2, 3):
        node.system.tell(A, Put(value))
    node.run()
    assert log[3:] == [("sum", Failed(Failure.SATURATED, "disk"))]
    node.run_blocking()
    node.run()
    assert log[4:] == [("sum", 11), ("sum", 12)]
    assert node.system.stats()["executor_saturated_disk"] == 1


def test_trace_follows_the_chain() -> None:
    def receive(ctx: Context, message: Any) -> None:
        if isinstance(message, Put):
            ctx.ask(EntityRef("thing", "elsewhere"), Get(), 100, lambda outcome: Get(1))
        elif message == Get(1):
            ctx.tell(EntityRef("thing", "elsewhere"), Got(1))

    node = Node(kind(lambda _: Scripted([], receive)))
    node.own(A)
    node.system.tell(A, Put(1), trace="cause")
    node.advance(200)
    assert [(type(e.message), e.trace) for e in node.routed] == [(Get, "cause"), (Got, "cause")]
