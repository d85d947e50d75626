"""Delivery, order, mailbox bounds, passivation, timers: one node, real store semantics, no real time."""

from __future__ import annotations

from typing import Any

import pytest
from actors_harness import Get, Got, Kept, Node, NotRegistered, Owner, Poison, Put, Scripted, kind

from node.actors.actor import Context, Failed, Failure, Overflow
from node.actors.cell import ShardTally
from node.core import limits
from node.core.errors import LocalProtocolError
from node.core.ids import EntityRef, NodeId, ServiceRef
from node.wire.envelope import Envelope, Kind

A = EntityRef("thing", "a")
B = EntityRef("thing", "b")


def test_first_message_loads_the_state_then_mail_follows_in_order() -> None:
    log: list[Any] = []
    node = Node(kind(lambda _: Owner(log), durable=Kept))
    node.own(A)
    node.ask(A, Put(1))
    node.run()
    node.system.shard_stopping(A.shard, lambda tally: None)
    node.run()
    log.clear()
    node.hold_store = True
    node.system.shard_started(A.shard, 1)
    for number in range(3):
        node.system.tell(A, Get(number))
    node.run()
    assert log == [], "nothing runs before the state is read"
    node.hold_store = False
    node.run()
    assert log == [("start", (1,)), Get(0), Get(1), Get(2)]


def test_message_for_a_shard_that_is_not_owned_is_refused_with_stopped() -> None:
    node = Node(kind(lambda _: Scripted([])), me="n1@3")
    asker = NodeId("n2", 1)
    node.system.deliver(Envelope(Kind.ASK, A, asker, Get(), correlation=9))
    node.system.deliver(Envelope(Kind.TELL, A, asker, Get()))
    assert [(e.kind, e.to, e.correlation) for e in node.routed] == [(Kind.REJECT, ServiceRef("n2", "/ask"), 9)]
    assert node.system.dead_letters.total("stopped") == 2
    assert [letter.type for letter in node.system.dead_letters] == ["test_actors.get"], "the asker knows"


def test_unknown_entity_type_is_rejected() -> None:
    node = Node(kind(lambda _: Scripted([])))
    other = EntityRef("nothing", "a")
    node.own(other)
    node.system.deliver(Envelope(Kind.ASK, other, NodeId("n2", 1), Get(), correlation=1))
    assert node.routed[0].message.failure == Failure.REJECTED  # type: ignore[attr-defined]


def test_own_shard_gets_tells_directly_and_others_go_to_the_port() -> None:
    log: list[Any] = []

    def receive(ctx: Context, message: Any) -> None:
        if message == Get(1):
            ctx.tell(B, Put(1))
            ctx.tell(ServiceRef("n1", "/x"), Put(2))

    node = Node(kind(lambda _: Scripted(log, receive)))
    node.own(A)
    node.system.tell(A, Get(1))
    node.run()
    assert [(e.to, e.message) for e in node.routed] == [(B, Put(1)), (ServiceRef("n1", "/x"), Put(2))]
    node.own(B)
    node.system.tell(A, Get(1))
    node.run()
    assert log == [Get(1), Get(1), Put(1)]


def test_unregistered_message_raises_at_the_sender_even_when_it_stays_here() -> None:
    raised: list[type] = []

    def receive(ctx: Context, message: Any) -> None:
        for effect in (
            lambda: ctx.tell(A, NotRegistered()),
            lambda: ctx.ask(A, NotRegistered(), 100, lambda outcome: outcome),
            lambda: ctx.reply(NotRegistered()),
            lambda: ctx.publish("topic", NotRegistered()),
            lambda: ctx.persist(Kept(), reply=NotRegistered()),
            lambda: ctx.persist(Kept(), facts=[NotRegistered()]),
            lambda: ctx.persist(Got(1)),
        ):
            with pytest.raises(LocalProtocolError) as error:
                effect()
            raised.append(error.type)

    node = Node(kind(lambda _: Scripted([], receive), durable=Kept))
    node.own(A)
    node.system.tell(A, Get())
    node.run()
    assert len(raised) == 7
    with pytest.raises(LocalProtocolError, match="NotRegistered"):
        node.system.tell(A, NotRegistered())
    with pytest.raises(LocalProtocolError):
        Node(kind(lambda _: Scripted([]), durable=NotRegistered))


def test_a_context_kept_beyond_its_handler_is_refused() -> None:
    contexts: list[Context] = []
    node = Node(kind(lambda _: Scripted([], lambda ctx, message: contexts.append(ctx))))
    node.own(A)
    node.system.tell(A, Get())
    node.run()
    with pytest.raises(LocalProtocolError):
        contexts[0].tell(A, Get())


@pytest.mark.parametrize("overflow", list(Overflow))
def test_full_mailbox_does_as_declared_and_an_ask_is_told(overflow: Overflow) -> None:
    """B2: an ask gets MailboxFull; a tell is a dead letter, the new one or the oldest as declared."""
    # The mailbox holds three; nothing runs until the state is read.
    log: list[Any] = []
    node = Node(kind(lambda _: Scripted(log), durable=Kept, mailbox_max=3, overflow=overflow))
    node.own(A)
    node.hold_store = True
    first = node.ask(A, Get(0))
    for number in range(1, 4):
        node.system.tell(A, Get(number))
    last = node.ask(A, Get(4))
    node.run()
    full = Failed(Failure.MAILBOX_FULL)
    node.hold_store = False
    node.run()
    if overflow is Overflow.REJECT:
        assert (first, last) == ([], [full])
        assert log == [Get(0), Get(1), Get(2)]
    else:
        assert (first, last) == ([full], [])
        assert log == [Get(2), Get(3), Get(4)]
    assert node.system.stats()["overflow"] == 2
    assert node.system.dead_letters.total("mailbox_full") == 2
    tallies: list[ShardTally] = []
    node.system.shard_stopping(A.shard, tallies.append)
    node.run()
    assert [(tally.dropped, tally.lost) for tally in tallies] == [(2, 1)], "who asked was told"


def test_passivation_waits_for_mail_and_writes_and_the_next_message_starts_again() -> None:
    log: list[Any] = []

    def receive(ctx: Context, message: Any) -> None:
        if isinstance(message, Put):
            ctx.persist(Kept((message.value,)))
            ctx.passivate()

    node = Node(kind(lambda _: Scripted(log, receive, lambda ctx, state: log.append(state)), durable=Kept))
    node.own(A)
    node.system.tell(A, Put(1))
    node.system.tell(A, Get(1))
    node.hold_store = True
    node.run()
    node.answer_store()  # the load
    node.run()
    assert [view.phase.value for view in node.system.cells()] == ["running"], "the write is not durable yet"
    node.answer_store()
    node.run()
    assert list(node.system.cells()) == []
    node.hold_store = False
    node.system.tell(A, Get(2))
    node.run()
    assert log == [None, Put(1), Get(1), Kept((1,)), Get(2)]


def test_an_idle_entity_passivates_and_use_puts_it_off() -> None:
    node = Node(kind(lambda _: Scripted([]), idle_ms=1_000), kind(lambda _: Scripted([]), name="lasting"))
    lasting = EntityRef("lasting", "a")
    node.own(A, lasting)
    node.system.tell(A, Get())
    node.system.tell(lasting, Get())
    node.advance(900)
    node.system.tell(A, Get())
    node.advance(900)
    assert node.system.cells_by_kind() == {"thing": 1, "lasting": 1}
    assert node.system.cells_by_shard() == {A.shard: 2}
    assert ([*node.system.refs()], [view.ref for view in node.system.cells("lasting")]) == ([A, lasting], [lasting])
    node.advance(200)
    assert node.system.cells_by_kind() == {"lasting": 1}
    assert node.system.next_wake_ns() is None
    node.system.tell(A, Get())
    node.run()
    node.system.shard_stopping(A.shard, lambda tally: None)
    node.advance(2_000)
    assert node.system.next_wake_ns() is None, "nothing of it is looked at for ever"


def test_passivation_waits_for_asks_that_are_open() -> None:
    log: list[Any] = []

    def receive(ctx: Context, message: Any) -> None:
        if message == Get(1):
            ctx.ask(B, Get(), 100, lambda outcome: outcome)
            ctx.passivate()

    node = Node(kind(lambda _: Scripted(log, receive)))
    node.own(A)
    node.system.tell(A, Get(1))
    node.run()
    assert len(list(node.system.cells())) == 1
    node.advance(100)
    assert log == [Get(1), Failed(Failure.TIMEOUT)]
    assert list(node.system.cells()) == []


def test_a_failure_before_the_passivation_revokes_it() -> None:
    log: list[Any] = []

    def receive(ctx: Context, message: Any) -> None:
        if message == Get(1):
            ctx.passivate()
        if message == Get(2) and log.count(message) == 1:
            raise RuntimeError("once")

    node = Node(kind(lambda _: Scripted(log, receive)))
    node.own(A)
    node.system.tell(A, Get(1))
    node.system.tell(A, Get(2))
    node.advance(5_000)
    assert log == [Get(1), Get(2), Get(2)]
    assert [view.phase.value for view in node.system.cells()] == ["running"]


def test_what_came_with_one_message_does_not_stick_to_the_next() -> None:
    def receive(ctx: Context, message: Any) -> None:
        if message == Get(2):
            ctx.tell(B, Got(2))
            ctx.reply(Got(2))

    node = Node(kind(lambda _: Scripted([], receive)))
    node.own(A)
    outcomes: list[Any] = []
    node.system.ask(A, Get(1), 100, outcomes.append, trace="t")
    node.system.tell(A, Get(2))
    node.advance(100)
    assert outcomes == [Failed(Failure.TIMEOUT)], "a tell is not answered with another's right"
    assert [envelope.trace for envelope in node.routed] == [""]


def test_a_trace_is_not_lost_on_the_short_way_between_cells() -> None:
    def receive(ctx: Context, message: Any) -> None:
        if message == Get(0):
            for number in range(1, 4):
                ctx.tell(B, Get(number))
        else:
            ctx.tell(EntityRef("thing", "elsewhere"), message)

    node = Node(kind(lambda _: Scripted([], receive)))
    node.own(A, B)
    node.system.tell(B, Get(9))
    node.run()
    node.system.tell(A, Get(0), trace="t")
    node.run()
    assert [(e.message, e.trace) for e in node.routed] == [(Get(9), "")] + [(Get(n), "t") for n in (1, 2, 3)]


def test_a_periodic_timer_waits_once_and_does_not_catch_up() -> None:
    log: list[Any] = []

    def receive(ctx: Context, message: Any) -> None:
        if message == Put(0):
            ctx.every("tick", 10, "tick")
        if isinstance(message, Get):
            node.clock.advance_ns(35 * 10**6)

    node = Node(kind(lambda _: Scripted(log, receive)))
    node.own(A)
    node.system.tell(A, Put(0))
    for number in range(20):
        node.system.tell(A, Get(number))
    for _ in range(20):
        node.system.turn(node.clock.mono_ns())
        assert node.system.depths().get(A, 0) <= 21
    node.advance(9)
    assert log.count("tick") <= 20
    assert node.system.stats()["timers_coalesced"] > 0


def test_timers_are_keyed_replaced_cancelled_and_end_with_the_cell() -> None:
    log: list[Any] = []

    def receive(ctx: Context, message: Any) -> None:
        match message:
            case Put(1):
                ctx.after("once", 100, "replaced")
                ctx.after("once", 200, "once")
                ctx.after("never", 100, "never")
                ctx.every("tick", 100, "tick", first_ms=50)
                ctx.after("local", 0, object)
            case Put(2):
                ctx.cancel("never")
                ctx.cancel("unknown")
            case Put(3):
                ctx.cancel("tick")

    node = Node(kind(lambda _: Scripted(log, receive)))
    node.own(A)
    node.system.tell(A, Put(1))
    node.system.tell(A, Put(2))
    node.advance(260)
    node.system.tell(A, Put(3))
    node.advance(1_000)
    assert log == [Put(1), Put(2), object, "tick", "tick", "once", "tick", Put(3)]
    node.system.tell(A, Put(1))
    node.run()
    node.system.shard_stopping(A.shard, lambda tally: None)
    log.clear()
    node.advance(1_000)
    assert log == []
    assert node.system.next_wake_ns() is None


def test_a_timer_that_fired_is_cancelled_while_its_message_waits() -> None:
    log: list[Any] = []

    def receive(ctx: Context, message: Any) -> None:
        if message == Put(1):
            ctx.after("key", 100, "late")
        if message == Put(2):
            ctx.cancel("key")

    node = Node(kind(lambda _: Scripted(log, receive)))
    node.own(A)
    node.system.tell(A, Put(1))
    node.run()
    node.system.tell(A, Put(2))
    node.clock.advance_ns(200_000_000)
    node.run()
    assert log == [Put(1), Put(2)]


def test_a_turn_is_bounded_also_when_the_clock_stands_still() -> None:
    def receive(ctx: Context, message: Any) -> None:
        ctx.tell(ctx.ref, message)

    node = Node(kind(lambda _: Scripted([], receive)))
    node.own(A)
    node.system.tell(A, Get())
    node.system.tell(A, Get())
    assert node.woken == 1, "once until it is turned, and not while it turns"
    assert node.system.turn(node.clock.mono_ns()), "more work waits"
    assert node.woken == 1


def test_a_slow_handler_ends_the_turn_and_others_get_theirs() -> None:
    log: list[Any] = []
    node = Node(
        kind(lambda _: Scripted(log, lambda ctx, message: node.clock.advance_ns(5_000_000))),
        kind(lambda _: Scripted(log), name="quick"),
    )
    quick = EntityRef("quick", "q")
    node.own(A, quick)
    node.system.tell(A, Get())
    node.system.tell(quick, Get())
    node.run()
    log.clear()
    for number in range(100):
        node.system.tell(A, Get(number))
    node.system.tell(quick, Poison())
    node.system.turn(node.clock.mono_ns())
    assert len(log) == 1
    node.system.turn(node.clock.mono_ns())
    assert Poison() in log


def test_mailboxes_are_used_again_by_others_empty_and_in_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "mailboxes_spare_max", 10)
    logs: dict[str, list[Any]] = {}
    node = Node(kind(lambda name: Scripted(logs.setdefault(name, []))))
    refs = [EntityRef("thing", f"e{number}") for number in range(30)]
    node.own(*refs)
    for round_ in range(3):
        for ref in refs:
            node.system.tell(ref, Get(round_))
        node.run()
    assert logs == {ref.id: [Get(0), Get(1), Get(2)] for ref in refs}
    assert len(node.system._kernel.spare) == 10
    assert not any(node.system._kernel.spare)
