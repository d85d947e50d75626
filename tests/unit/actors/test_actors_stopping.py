"""A stopping shard whose cells owe replies: they are finished with what the cells' own asks, pipes, writes and timers
bring, within a limit, while everybody else's mail bounces in its order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from actors_harness import Get, Got, Kept, Node, Put, Scripted, kind
from hypothesis import given, settings
from hypothesis import strategies as st

from node.actors.actor import Context, Failed, Failure
from node.actors.cell import ShardTally
from node.core import limits
from node.core.ids import EntityRef, NodeId
from node.wire.envelope import Envelope, Kind

A = EntityRef("keeper", "a")
FAR = EntityRef("thing", "elsewhere")
CLIENT = NodeId("client", 1)


@dataclass(frozen=True)
class Came:
    """What an ask, a pipe, a write or a timer of the keeper's own brought for the reply of `number`."""

    number: int
    outcome: object


class Keeper:
    """Keeps the reply of each Put(n) until what it started for it, by n modulo 4, has come: an ask of another shard, a
    pipe, a write, a timer; each then asks once more before it answers, when `twice`."""

    def __init__(self, log: list[Any], twice: bool = False) -> None:
        self.log = log
        self.twice = twice
        self.replies: dict[int, Any] = {}

    def start(self, ctx: Context, state: Any) -> None:
        pass

    def receive(self, ctx: Context, message: Any) -> None:
        self.log.append(message)
        match message:
            case Put(number):
                self.replies[number] = ctx.reply_later()
                self._begin(ctx, number)
            case Came(number, Failed() as failed):
                ctx.answer_reject(self.replies.pop(number), failed.failure.value)
            case Came(number, _) if self.twice and number < 100:
                self.replies[number + 100] = self.replies.pop(number)
                self._begin(ctx, number + 100)
            case Came(number, _):
                ctx.answer(self.replies.pop(number), Got(number))
            case _:
                pass

    def _begin(self, ctx: Context, number: int) -> None:
        match number % 4:
            case 0:
                ctx.ask(FAR, Get(number), 10_000, lambda outcome: Came(number, outcome))
            case 1:
                ctx.pipe("work", lambda: number, then=lambda value: Came(number, value))
            case 2:
                ctx.persist(Kept((number,)), then=Came(number, None))
            case _:
                ctx.after(f"t{number}", 300, Came(number, None))


def keeping(*numbers: int, twice: bool = False) -> tuple[Node, list[Any], dict[int, list[Any]], list[ShardTally]]:
    """A node whose stopping keeper owes the replies to these."""
    log: list[Any] = []
    node = Node(kind(lambda _: Keeper(log, twice), name="keeper", durable=Kept))
    node.blocking_max = 10
    node.own(A)
    node.system.tell(A, Get())
    node.run()
    node.hold_store = True
    outcomes = {number: node.ask(A, Put(number), 60_000) for number in numbers}
    node.run()
    tallies: list[ShardTally] = []
    node.system.shard_stopping(A.shard, tallies.append)
    node.run()
    assert tallies == []
    assert not any(outcomes.values())
    return node, log, outcomes, tallies


def answer_asks(node: Node) -> None:
    asks, node.routed[:] = [e for e in node.routed if e.kind is Kind.ASK], []
    for ask in asks:
        node.system.on_reply(Envelope(Kind.REPLY, ask.to, CLIENT, Got(0), ask.correlation))


def test_a_kept_reply_that_waits_for_another_entity_is_answered_then_the_cell_stops() -> None:
    node, log, outcomes, tallies = keeping(4)
    [ask] = node.routed
    assert (ask.to, ask.kind, ask.message) == (FAR, Kind.ASK, Get(4))
    answer_asks(node)
    node.run()
    assert outcomes == {4: [Got(4)]}
    assert log == [Get(), Put(4), Came(4, Got(0))]
    assert tallies == [ShardTally(handled=2, bounced=0, dropped=0, entities=1, arrived=2)]
    assert list(node.system.cells()) == []
    assert node.system.next_wake_ns() is None
    assert "kept_failed" not in node.system.stats()


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=8, unique=True),
    st.booleans(),
    st.lists(st.sampled_from(["ask", "pipe", "store", "time", "mail", "turn"]), max_size=20),
)
def test_all_that_is_its_own_finishes_and_mail_of_others_bounces_in_order(
    numbers: list[int], twice: bool, steps: list[str]
) -> None:
    node, log, outcomes, tallies = keeping(*numbers, twice=twice)
    sent: list[int] = []
    for step in steps + ["mail", "ask", "pipe", "store", "late"] * 3 + ["store", "turn"] * 6:
        match step:
            case "ask":
                answer_asks(node)
            case "pipe":
                node.run_blocking()
            case "store":
                node.answer_store()
            case "time":
                node.advance(40)
            case "late":
                node.advance(300)
            case "mail" if not tallies:
                sent.append(1_000 + len(sent))
                node.system.deliver(Envelope(Kind.TELL, A, CLIENT, Put(sent[-1])))
            case _:
                node.system.turn(node.clock.mono_ns())
    node.advance(300)
    assert outcomes == {number: [Got(number + 100 * twice)] for number in numbers}
    assert [envelope.message for envelope in node.bounced] == [Put(value) for value in sent]
    assert not any(isinstance(message, Put) and message.value >= 1_000 for message in log)
    assert [(tally.handled, tally.dropped, tally.entities) for tally in tallies] == [(1 + len(numbers), 0, 1)]
    assert not node.fenced
    assert node.system.next_wake_ns() is None


def test_kept_replies_fail_at_the_limit_and_the_write_under_way_still_ends_first() -> None:
    node, log, outcomes, tallies = keeping(0, 2)
    node.advance(limits.stopping_replies_ms_max - 1)
    assert not any(outcomes.values())
    node.advance(1)
    assert [[outcome.failure for outcome in of] for of in outcomes.values()] == [[Failure.FAILED]] * 2
    assert node.system.stats()["kept_failed"] == 2
    assert tallies == [], "the write is under way"
    answer_asks(node)
    node.run()
    assert log[-1] == Put(2), "it owes nothing any more: what its ask brought is not run"
    assert node.system.dead_letters.counters[("own_stopping", "outcome")] == 1
    node.answer_store()
    node.run()
    assert log[-1] == Came(2, None)
    assert node.system.stats()["answered_unknown"] == 1
    assert [tally.entities for tally in tallies] == [1]
    assert limits.stopping_replies_ms_max * 2 < limits.handoff_ms_max


def test_what_waits_in_the_mailbox_at_the_stop_is_told_apart_by_whose_it_is() -> None:
    log: list[Any] = []
    node = Node(kind(lambda _: Keeper(log), name="keeper"))
    node.own(A)
    outcome = node.ask(A, Put(4))
    node.run()
    node.system.tell(A, Put(8))
    answer_asks(node)
    node.system.tell(A, Put(12), trace="t")
    tallies: list[ShardTally] = []
    node.system.shard_stopping(A.shard, tallies.append)
    node.run()
    assert outcome == [Got(4)]
    assert [envelope.message for envelope in node.bounced] == [Put(8), Put(12)]
    assert tallies == [ShardTally(handled=1, bounced=2, dropped=0, entities=1, arrived=3)]


def test_a_stopping_cell_that_fails_tells_its_askers_at_once() -> None:
    node, _, outcomes, tallies = keeping(0, 3)
    [view] = node.system.cells()
    actor: Any = view.actor
    actor.replies.clear()  # the timer's message finds no reply, and the handler raises
    node.advance(300)
    assert [[outcome.failure for outcome in of] for of in outcomes.values()] == [[Failure.FAILED]] * 2
    assert [tally.entities for tally in tallies] == [1]
    answer_asks(node)
    node.run()
    assert node.system.dead_letters.counters[("own_gone", "outcome")] == 1


@pytest.mark.parametrize("ticking", [True, False])
def test_a_cell_that_owes_nothing_stops_at_once_whatever_it_awaits(ticking: bool) -> None:
    def receive(ctx: Context, message: Any) -> None:
        ctx.ask(FAR, Get(), 10_000, lambda outcome: outcome)
        if ticking:
            ctx.every("tick", 100, Get(1))

    node = Node(kind(lambda _: Scripted([], receive), name="keeper"))
    node.own(A)
    node.system.tell(A, Get())
    node.run()
    tallies: list[ShardTally] = []
    node.system.shard_stopping(A.shard, tallies.append)
    node.run()
    assert tallies == [ShardTally(handled=1, bounced=0, dropped=0, entities=1, arrived=1)]


def test_a_stop_from_inside_the_handler_that_keeps_the_reply_waits_for_it() -> None:
    node: Node
    tallies: list[ShardTally] = []
    replies: list[Any] = []

    def receive(ctx: Context, message: Any) -> None:
        if message == Put(1):
            node.system.shard_stopping(A.shard, tallies.append)
            replies.append(ctx.reply_later())
            ctx.ask(FAR, Get(), 10_000, lambda outcome: outcome)
        else:
            ctx.answer(replies.pop(), message)

    node = Node(kind(lambda _: Scripted([], receive), name="keeper"))
    node.own(A)
    outcome = node.ask(A, Put(1))
    node.run()
    assert (tallies, outcome) == ([], [])
    answer_asks(node)
    node.run()
    assert outcome == [Got(0)]
    assert tallies == [ShardTally(handled=1, bounced=0, dropped=0, entities=1, arrived=1)]
