"""What a failure means is declared by the type: restart, resume, stop, or straight to the operator."""

from __future__ import annotations

from typing import Any

import pytest
from actors_harness import Get, Got, Kept, Node, Owner, Poison, Put, Scripted, kind

from node.actors.actor import Context, Directive, Failure
from node.core.errors import BadInput
from node.core.ids import EntityRef

A = EntityRef("thing", "a")


class Counter:
    """Counts its Puts in memory; a Poison counts and raises."""

    def __init__(self, _id: str) -> None:
        self.seen = 0

    def start(self, ctx: Context, state: Any) -> None:
        pass

    def receive(self, ctx: Context, message: Any) -> None:
        if isinstance(message, Poison):
            ctx.reply_later()
            raise LookupError("no")  # noqa: TRY004 - the kind of error is not the point
        self.seen += isinstance(message, Put)
        ctx.reply(Got(self.seen))


def deciding(directive: Directive, **more: Any) -> Node:
    node = Node(kind(Counter, decider=lambda error: directive, **more))
    node.own(A)
    return node


def test_resume_keeps_the_memory_and_makes_the_message_a_dead_letter() -> None:
    node = deciding(Directive.RESUME)
    node.system.tell(A, Put(1))
    poisoned, after = node.ask(A, Poison()), node.ask(A, Get())
    node.run()
    assert after == [Got(1)], "at once, and with what it had"
    assert [outcome.failure for outcome in poisoned] == [Failure.FAILED]
    [letter] = node.system.dead_letters
    assert (letter.message, letter.error, letter.deliveries) == (Poison(), "LookupError: no", 1)
    stats = node.system.stats()
    assert (stats["resumed"], stats.get("restarts", 0), stats.get("answered_twice", 0)) == (1, 0, 0)


def test_stop_ends_the_entity_and_waiting_mail_starts_it_anew() -> None:
    node = deciding(Directive.STOP)
    node.system.tell(A, Put(1))
    poisoned, after = node.ask(A, Poison()), node.ask(A, Get())
    node.run()
    assert [outcome.failure for outcome in poisoned] == [Failure.FAILED]
    assert after == [Got(0)], "what waited was handled by a new one, without a back-off"
    node.system.tell(A, Poison())
    node.run()
    assert node.system.cells_by_kind() == {}, "nothing waited, so nothing started"
    again = node.ask(A, Get())
    node.run()
    assert again == [Got(0)]
    assert node.system.dead_letters.total("failed") == 2


def test_stop_while_a_write_is_under_way_waits_for_it() -> None:
    log: list[Any] = []
    node = Node(kind(lambda _: Owner(log), durable=Kept, decider=lambda error: Directive.STOP))
    node.own(A)
    node.ask(A, Put(1))
    node.hold_store = True
    node.run()
    node.answer_store(1)  # the read; the write is held
    node.run()
    node.system.tell(A, Poison())
    node.run()
    waiting = node.ask(A, Get())
    node.run()
    assert waiting == []
    node.hold_store = False
    node.run()
    assert waiting == [Got(1)], "the new one read what the old one had written"


def test_failing_to_start_under_stop_refuses_what_waits_instead_of_starting_for_ever() -> None:
    starts: list[int] = []

    def start(ctx: Context, state: Any) -> None:
        starts.append(1)
        raise RuntimeError("never")

    node = Node(kind(lambda _: Scripted([], None, start), decider=lambda error: Directive.STOP))
    node.own(A)
    waiting = node.ask(A, Get())
    node.advance(60_000)
    assert (len(starts), [outcome.failure for outcome in waiting]) == (1, [Failure.STOPPED])
    assert node.system.cells_by_kind() == {}


def test_escalate_quarantines_at_once() -> None:
    node = deciding(Directive.ESCALATE)
    poisoned = node.ask(A, Poison())
    node.run()
    [(ref, fault)] = node.system.quarantined().items()
    assert (ref, fault.error, fault.failures, fault.message_type) == (A, "LookupError: no", 1, "test_actors.poison")
    assert [outcome.failure for outcome in poisoned] == [Failure.FAILED]
    node.system.shard_stopping(A.shard, lambda tally: None)
    node.run()
    assert node.system.quarantined() == {}, "it is the next owner's to find out"


def test_limits_are_the_types_own() -> None:
    node = deciding(Directive.RESTART, restarts_max=1, restart_window_ms=100_000)
    node.system.tell(A, Poison())
    node.advance(10_000)
    assert list(node.system.quarantined()) == [A]
    assert node.system.stats()["failures"] == 2


def test_a_decider_that_raises_means_restart() -> None:
    node = Node(kind(Counter, decider=lambda error: Directive(error)))
    node.own(A)
    node.system.tell(A, Poison())
    after = node.ask(A, Get(), timeout_ms=600_000)
    node.advance(60_000)
    assert after == [Got(0)]
    assert node.system.stats()["decider_failed"] == node.system.stats()["failures"] == 5


def test_a_restart_by_the_operator_at_any_moment_leaves_one_instance_and_loses_no_ask() -> None:
    """P58: while it loads, runs, writes, waits after a failure, or leaves."""
    log: list[Any] = []
    broken = [False]

    class Fragile(Owner):
        def receive(self, ctx: Context, message: Any) -> None:
            if broken[0]:
                raise ValueError("broken")
            super().receive(ctx, message)

    node = Node(kind(lambda _: Fragile(log), durable=Kept))
    node.own(A)

    def starts() -> int:
        return sum(1 for entry in log if isinstance(entry, tuple) and entry[0] == "start")

    assert node.system.restart(A) is True, "not in memory: it is started"
    node.run()
    node.ask(A, Put(1))
    node.run()

    # While it runs, and while it starts because of that.
    node.hold_store = True
    assert node.system.restart(A) is True
    node.run()
    assert node.system.restart(A) is False, "it is starting anyway"
    asked = node.ask(A, Get())
    node.run()
    assert asked == []
    node.hold_store = False
    node.run()
    assert (asked, starts()) == ([Got(1)], 2)

    # While a write is under way: the new one must read what the old one wrote.
    node.hold_store = True
    written = node.ask(A, Put(2))
    node.run()
    assert node.system.restart(A) is True
    asked = node.ask(A, Get())
    node.run()
    assert (asked, starts()) == ([], 2)
    node.hold_store = False
    node.run()
    assert (written, asked, starts()) == ([Got(2)], [Got(2)], 3)

    # While it waits after a failure: at once, and the end of that wait starts no second one.
    broken[0] = True
    asked = node.ask(A, Get(), timeout_ms=600_000)
    node.run()
    assert asked == []
    broken[0] = False
    assert node.system.restart(A) is True
    node.run()
    assert (asked, starts()) == ([Got(2)], 4)
    node.advance(60_000)
    assert starts() == 4

    # While its shard leaves: that is the next owner's business.
    node.hold_store = True
    node.ask(A, Put(3))
    node.run()
    node.system.shard_stopping(A.shard, lambda tally: None)
    with pytest.raises(BadInput):
        node.system.restart(A)


def test_a_quarantined_entity_is_released_not_restarted() -> None:
    node = deciding(Directive.ESCALATE)
    node.system.tell(A, Poison())
    node.run()
    with pytest.raises(BadInput, match="release"):
        node.system.restart(A)
    node.system.release(A)
    after = node.ask(A, Get())
    node.run()
    assert after == [Got(0)]
