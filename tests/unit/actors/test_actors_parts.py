"""The small parts by themselves: the timer heap, the mailbox, the dead letters' ring."""

from __future__ import annotations

from collections import deque

import pytest
from actors_harness import Get, Put

from node.actors.deadletters import DeadLetters
from node.actors.mailbox import Mail, Origin, take_oldest
from node.actors.timers import Call, Timers
from node.core.ids import EntityRef, NodeId

ME = NodeId("n1", 1)


def test_timers_fire_in_order_and_what_they_add_waits_for_the_next_call() -> None:
    fired: list[tuple[str, int]] = []
    timers = Timers(lambda: None)

    def again(now_ns: int) -> None:
        fired.append(("again", now_ns))
        timers.add(now_ns, Call(again))

    timers.add(20, Call(lambda now_ns: fired.append(("b", now_ns))))
    timers.add(10, Call(lambda now_ns: fired.append(("a", now_ns))))
    timers.add(20, Call(again))
    timers.fire_due(9)
    assert fired == []
    timers.fire_due(25)
    assert fired == [("a", 25), ("b", 25), ("again", 25)]
    timers.fire_due(25)
    assert fired[3:] == [("again", 25)]


def test_what_stands_in_lines_fires_with_the_rest_in_the_order_of_adding() -> None:
    fired: list[str] = []
    timers = Timers(lambda: None)

    def named(name: str) -> Call:
        return Call(lambda _: fired.append(name))

    timers.add_after(0, 20, named("line-of-20"))
    timers.add(20, named("heap"))
    timers.add_after(10, 10, named("line-of-10"))
    timers.add_after(10, 20, named("later"))
    assert timers.next_ns() == 20
    timers.fire_due(20)
    assert fired == ["line-of-20", "heap", "line-of-10"]
    assert (timers.next_ns(), len(timers)) == (30, 1)


def test_what_is_withdrawn_from_a_line_is_not_waited_for() -> None:
    timers = Timers(lambda: None)
    calls = [Call(lambda _: pytest.fail("it was withdrawn")) for _ in range(100)]
    for number, call in enumerate(calls):
        timers.add_after(number, 1_000, call)
        call.live = False
        assert len(timers) == 1, "answered ones fall off the front"
    assert timers.next_ns() is None
    assert len(timers) == 0
    timers.fire_due(10_000)


def test_more_lines_than_are_looked_at_and_longer_ones_than_are_kept_lose_nothing() -> None:
    fired: list[int] = []
    timers = Timers(lambda: None)
    for delay in range(1, 101):
        timers.add_after(0, delay, Call(fired.append))
    for _ in range(10_000):
        timers.add_after(0, 1, Call(fired.append))
    for now_ns in range(1, 101):
        assert timers.next_ns() == now_ns
        timers.fire_due(now_ns)
        assert fired.count(now_ns) == (10_001 if now_ns == 1 else 1)
    assert len(timers) == 0


def test_cancelled_timers_leave_the_heap_before_they_are_due() -> None:
    timers = Timers(lambda: None)
    calls = [Call(lambda now_ns: None) for _ in range(2_000)]
    for number, call in enumerate(calls):
        timers.add(1_000 + number, call)
    for call in calls[:-1]:
        timers.cancel(call)
        timers.cancel(call)
    assert len(timers) < 600
    assert timers.next_ns() == 1_000 + 1_999
    timers.cancel(calls[-1])
    assert timers.next_ns() is None


def test_the_driver_is_told_only_of_an_earlier_timer() -> None:
    told: list[int] = []
    timers = Timers(lambda: told.append(1))
    for when in (50, 60, 40):
        timers.add(when, Call(lambda now_ns: None))
    assert len(told) == 2


def test_the_oldest_mail_from_outside_makes_room_never_the_cells_own() -> None:
    own = Mail(Origin.OUTCOME, Get(1), ME)
    mailbox = deque([own, Put(1), Put(2)])
    assert take_oldest(mailbox) == Put(1)
    assert list(mailbox) == [own, Put(2)]
    assert take_oldest(deque([own])) is None


def test_the_ring_forgets_and_the_counters_do_not() -> None:
    dead = DeadLetters(kept_max=2)
    for number in range(5):
        dead.add(0, "late", EntityRef("thing", "a"), "put", ME, Put(number))
    assert [letter.number for letter in dead] == [4, 5]
    assert dead.total("late") == 5
    assert dead.take(1) is None
    taken = dead.take(5)
    assert taken is not None
    assert taken.message == Put(4)
    assert len(dead) == 1
