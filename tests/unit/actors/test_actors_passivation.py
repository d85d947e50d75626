"""Who stays in memory: idleness, least-recent use above a limit, and no message lost on the way."""

from __future__ import annotations

import gc
import random
import sys
from typing import Any

import pytest
from actors_harness import Get, Got, Kept, Node, Owner, Poison, Put, Scripted, kind

from node.actors.actor import Context
from node.core import limits
from node.core.clock import MS
from node.core.errors import BadInput
from node.core.ids import EntityRef

A = EntityRef("thing", "a")
IDLE_MS = 60_000


def refs(count: int, prefix: str = "e") -> list[EntityRef]:
    return [EntityRef("thing", f"{prefix}{number}") for number in range(count)]


def node_of(entities: list[EntityRef], residents_max: int, **more: Any) -> Node:
    fields = {"idle_ms": IDLE_MS, "background": frozenset({Poison})} | more
    node = Node(kind(lambda _: Scripted([], answering), **fields), residents_max=residents_max)
    node.own(*entities)
    return node


def answering(ctx: Context, message: Any) -> None:
    ctx.reply(Got(1))


def test_ten_thousand_messages_at_the_instant_of_passivation_lose_nothing() -> None:
    """P69: each is answered, states are right, memory is as before."""
    entities = refs(100)
    node = Node(kind(lambda _: Owner(), durable=Kept, idle_ms=1_000))
    node.own(*entities)
    rest = random.Random(7)
    answers: list[list[Any]] = []
    for turn in range(100):
        answers += [node.ask(ref, Put(turn)) for ref in entities]
        node.run()
        # Around the moment at which they go: before, at, and after the slot in which they are looked at.
        node.advance(rest.choice((900, 1_000, 1_020, 1_062, 1_063, 1_100, 2_000)))
    assert len(answers) == 10_000
    assert all(len(outcomes) == 1 and isinstance(outcomes[0], Got) for outcomes in answers)
    states = [node.ask(ref, Get()) for ref in entities]
    node.run()
    assert states == [[Got(100)]] * len(entities), "each state holds every write"
    assert node.system.stats()["passivated"] > 1_000
    node.advance(5_000)
    stats = node.system.stats()
    assert (stats["cells"], stats["residents"], stats["timers"], stats["run_queue"]) == (0, 0, 0, 0)
    assert stats["dead_letters"] == 0


def test_a_busy_entity_is_not_passivated_before_its_mailbox_is_empty() -> None:
    """P70: the idle time passes in one long handler."""
    log: list[Any] = []

    def receive(ctx: Context, message: Any) -> None:
        if message == Put(0):  # one long handler: the idle time passes in it
            node.clock.advance_ns(5_000 * MS)
        ctx.reply(Got(1))

    node = Node(kind(lambda entity: Scripted(log, receive, lambda *_: starts.append(1)), idle_ms=1_000))
    starts: list[int] = []
    node.own(A)
    node.system.tell(A, Get(9))
    node.run()
    node.system.tell(A, Put(0))
    waiting = [node.ask(A, Get(number), timeout_ms=600_000) for number in range(200)]
    node.run()
    assert (waiting, len(starts)) == ([[Got(1)]] * 200, 1)
    assert log == [Get(9), Put(0), *(Get(number) for number in range(200))]
    node.advance(2_000)
    assert node.system.stats()["cells"] == 0


def test_the_hot_set_stays_while_a_replay_touches_everything() -> None:
    """P74: limit 1,000, a hot set of 500 in use, 20,000 entities touched by a replay."""
    hot, cold = refs(500, "hot"), refs(20_000, "cold")
    started: list[str] = []

    def make(entity: str) -> Scripted:
        started.append(entity)
        return Scripted([], answering)

    node = Node(kind(make, idle_ms=IDLE_MS, background=frozenset({Poison})), residents_max=1_000)
    node.own(*hot, *cold)
    for _ in range(3):
        for ref in hot:
            node.system.tell(ref, Get())
        node.advance(1_500)
    most = 0
    for number, ref in enumerate(cold):
        node.system.tell(ref, Poison())
        if number % 8 == 7:  # a replay asks so many at once
            node.system.tell(hot[number // 8 % len(hot)], Get())
            node.advance(5)
            most = max(most, node.system.stats()["residents"])
    assert most <= 1_000
    stayed = sum(1 for ref in hot if started.count(ref.id) == 1)
    assert stayed >= 0.95 * len(hot), f"{stayed} of {len(hot)}"
    assert len(started) >= 20_500
    assert node.system.stats()["dead_letters"] == 0


def test_uses_in_one_breath_are_one_use() -> None:
    entities = refs(20)
    node = node_of(entities, residents_max=10)
    for ref in entities[:10]:
        for _ in range(5):  # a crawl that asks everything five times, and never again
            node.system.tell(ref, Get())
        node.advance(10)
    node.advance(2_000)
    again = entities[0]
    node.system.tell(again, Get())
    node.run()
    for ref in entities[10:19]:
        node.system.tell(ref, Get())
        node.run()
    left = {view.ref for view in node.system.cells()}
    assert left == {again, *entities[10:19]}, "the one that was used again, and the newest"


def test_the_order_of_eviction_is_first_in_first_out_on_probation() -> None:
    entities = refs(8)
    node = node_of(entities, residents_max=4)
    for ref in entities:
        node.system.tell(ref, Get())
        node.run()
    assert [view.ref for view in node.system.cells()] == entities[4:]
    assert node.system.stats()["evicted"] == 4


def test_the_protected_do_not_hold_their_place_for_ever() -> None:
    old, new = refs(8, "old"), refs(40, "new")
    node = node_of([*old, *new], residents_max=10, idle_ms=3_600_000)
    for _ in range(2):
        for ref in old:
            node.system.tell(ref, Get())
        node.advance(2_000)
    for round_ in range(4):  # new ones that are used again and again push them out
        for ref in new[round_ * 10 : round_ * 10 + 10]:
            for _ in range(2):
                node.system.tell(ref, Get())
                node.advance(2_000)
    left = {view.ref for view in node.system.cells()}
    assert not left & set(old)
    assert node.system.stats()["residents"] <= 10


def test_what_is_busy_is_passed_over_and_room_is_made_later() -> None:
    entities = refs(6)
    node = Node(kind(lambda _: Owner(), durable=Kept, idle_ms=IDLE_MS), residents_max=3)
    node.own(*entities)
    node.hold_store = True
    for ref in entities:
        node.ask(ref, Put(1))
    node.run()
    assert node.system.stats()["residents"] == 6, "all of them wait for the store: none may go"
    assert node.system.stats()["over_limit"] == 1
    node.hold_store = False
    node.advance(limits.evict_retry_ms)
    assert node.system.stats()["residents"] == 3
    states = [node.ask(ref, Get()) for ref in entities]
    node.run()
    assert states == [[Got(1)]] * 6, "what went had been written"


def test_a_timer_keeps_an_entity_from_being_stopped_unasked() -> None:
    def receive(ctx: Context, message: Any) -> None:
        if isinstance(message, Put):
            ctx.after("retry", 3 * IDLE_MS, "retry")

    node = Node(kind(lambda _: Scripted([], receive), idle_ms=IDLE_MS), residents_max=1)
    node.own(A, *refs(3))
    node.system.tell(A, Put(1))
    node.advance(2 * IDLE_MS)
    for ref in refs(3):
        node.system.tell(ref, Get())
        node.run()
    assert A in {view.ref for view in node.system.cells()}
    node.advance(3 * IDLE_MS)
    assert node.system.stats()["cells"] == 0


def test_background_messages_do_not_put_off_idleness() -> None:
    node = node_of([A], residents_max=10)
    node.system.tell(A, Get())
    for _ in range(12):
        node.advance(IDLE_MS // 10)
        node.system.tell(A, Poison())
    node.advance(0)
    assert node.system.stats()["passivated"] == 1


def test_types_without_an_idle_time_are_never_stopped() -> None:
    node = Node(kind(lambda _: Scripted([])), residents_max=1)
    entities = refs(10)
    node.own(*entities)
    for ref in entities:
        node.system.tell(ref, Get())
    node.advance(10 * IDLE_MS)
    assert node.system.stats()["cells"] == 10
    with pytest.raises(BadInput):
        node.system.passivate(entities[0])


def test_an_operator_passivates_and_the_next_message_starts_it_again() -> None:
    log: list[Any] = []
    node = Node(kind(lambda _: Owner(log), durable=Kept, idle_ms=IDLE_MS))
    node.own(A)
    node.hold_store = True
    node.ask(A, Put(1))
    node.run()
    node.answer_store(1)
    node.run()
    assert node.system.passivate(A) is True
    node.run()
    assert node.system.stats()["cells"] == 1, "its write is not answered yet"
    node.hold_store = False
    node.run()
    assert node.system.stats()["cells"] == 0
    assert node.system.passivate(A) is False
    asked = node.ask(A, Get())
    node.run()
    assert asked == [Got(1)]


def test_what_is_gone_is_let_go_of() -> None:
    """Cells that were evicted must not be held by the structures that would have looked at them next."""
    entities = refs(3_000)
    node = node_of(entities, residents_max=100)
    for ref in entities:
        node.system.tell(ref, Get())
        node.run()
    residents = node.system._lifecycle.residents
    filed = len(residents._probation) + len(residents._protected) + sum(map(len, residents._slots.values()))
    assert residents.count == 100
    assert filed < 2 * (2 * residents.count + 256)


def test_a_passivated_entity_costs_nothing() -> None:
    """No object that was made for it is left, neither its own nor in any table."""
    entities = refs(3_000)
    node = node_of(entities, residents_max=10_000)

    def blocks_after(touched: list[EntityRef]) -> int:
        for ref in touched:
            node.system.tell(ref, Get())
        node.run()
        assert node.system.stats()["cells"] == len(touched)
        node.advance(3 * IDLE_MS)
        assert node.system.stats()["cells"] == 0
        gc.collect()
        return sys.getallocatedblocks()

    blocks_after(entities[:500])  # what is made once and stays
    few = blocks_after(entities[:500])
    many = blocks_after(entities)
    assert many - few < 500, "of 2,500 entities more; each is made of five objects at least"


def test_memory_is_given_back_when_most_are_gone() -> None:
    entities = refs(2_000)
    node = node_of(entities, residents_max=10_000)
    for ref in entities:
        node.system.tell(ref, Get())
    node.run()
    assert node.freed == 0
    node.advance(3 * IDLE_MS)
    assert node.freed >= 1
    assert len(node.system.flight()) <= limits.flight_turns_kept_min
    again = node.ask(entities[7], Get())
    node.run()
    assert again == [Got(1)]


def test_the_quarantined_take_no_room_from_those_that_work_and_take_part_again_once_released() -> None:
    broken, working = refs(5, "broken"), refs(3, "fine")
    mended = False

    def receive(ctx: Context, message: Any) -> None:
        if isinstance(message, Put) and not mended:
            raise RuntimeError("broken")

    node = Node(kind(lambda _: Scripted([], receive), idle_ms=IDLE_MS, restarts_max=0), residents_max=3)
    node.own(*broken, *working)
    for ref in broken:
        node.system.tell(ref, Put(1))
        node.run()
    assert node.system.quarantined().keys() == set(broken)
    for ref in working:
        node.system.tell(ref, Get())
        node.run()
    assert set(working) <= {view.ref for view in node.system.cells()}, "none of them had to go"
    assert "over_limit" not in node.system.stats()
    assert node.system.stats()["residents"] == 3
    mended = True
    node.system.release(broken[0])
    node.run()
    assert node.system.stats()["residents"] == 3, "room was made for it"
    node.advance(2 * IDLE_MS)
    assert {view.ref for view in node.system.cells()} == set(broken[1:]), "the others wait for an operator"
    assert node.system.stats()["residents"] == 0
    for ref in broken[1:]:
        node.system.shard_stopping(ref.shard, lambda _: None)
    node.run()
    assert node.system.stats()["residents"] == 0
