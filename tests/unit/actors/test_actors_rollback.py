"""A write that definitely failed leads back to what is durable, without asking the store; one that may have happened
does not."""

from __future__ import annotations

from typing import Any

import pytest
from actors_harness import Get, Got, Kept, Node, Owner, Put, kind

from node.actors.actor import Context, Failed, Failure, ReplyTo
from node.core.ids import EntityRef
from node.store.port import Answer, Conflict, ReadState, StoreFailed, WriteState

A = EntityRef("thing", "a")
DOWN = StoreFailed("E-STORE-UNREACHABLE", "down", definite=True)
UNKNOWN = StoreFailed("E-STORE-TIMEOUT", "no answer to COMMIT", definite=False)
REFUSED = Failed(Failure.STOPPED, DOWN.code)


class Returning(Owner):
    """As Owner, and goes back; keeps the reply of what it is told to (`Get(1)`), and counts timers."""

    def start(self, ctx: Context, state: Kept | None) -> None:
        super().start(ctx, state)
        ctx.every("tick", 1_000, "tick")
        self.kept: ReplyTo | None = None

    def receive(self, ctx: Context, message: Any) -> None:
        if message == Get(1):
            self.kept = ctx.reply_later()
        else:
            super().receive(ctx, message)

    def roll_back(self, ctx: Context, state: Kept | None) -> None:
        self.state = state or Kept()
        self.log.append(("back", self.state.values))


def living(actor: type[Owner], *written: int) -> tuple[Node, list[Any]]:
    """An entity that has written these values, over a store whose answers are held back."""
    log: list[Any] = []
    node = Node(kind(lambda _: actor(log), durable=Kept))
    node.own(A)
    for value in written:
        node.ask(A, Put(value))
    node.ask(A, Get())
    node.run()
    node.seen.clear()
    log.clear()
    node.hold_store = True
    return node, log


def reads(node: Node) -> int:
    return sum(isinstance(request, ReadState) for request in node.seen)


def test_it_goes_back_to_what_is_durable_answers_the_failure_and_lives_on() -> None:
    node, log = living(Returning, 1, 2)
    kept = node.ask(A, Get(1), timeout_ms=60_000)
    lost = [node.ask(A, Put(value)) for value in (3, 4)]
    node.run()
    node.answer_store(instead=DOWN)
    node.run()
    assert lost == [[REFUSED], [REFUSED]], "of the one under way, and of the one that waited behind it"
    assert [outcome.failure for outcome in kept] == [Failure.FAILED], "what would have led to its answer may be lost"
    assert log[-1] == ("back", (1, 2))
    during = node.ask(A, Get())
    node.run()
    assert during == [Got(2)], "it answers at once"
    node.advance(3_000)
    assert log.count("tick") == 3, "timers go on"
    assert reads(node) == 0
    node.hold_store = False
    again = node.ask(A, Put(5))
    node.run()
    assert again == [Got(5)]
    last = [request for request in node.seen if isinstance(request, WriteState)][-1]
    assert (last.revision, node.system.stats()["rolled_back"]) == (2, 1)


def test_failure_upon_failure_it_asks_the_store_for_nothing() -> None:
    node, log = living(Returning, 1)
    for value in range(20):
        outcome = node.ask(A, Put(value))
        node.run()
        node.answer_store(instead=DOWN)
        node.run()
        assert outcome == [REFUSED]
    assert ("start", (1,)) not in log
    assert reads(node) == 0


def test_what_was_written_meanwhile_is_what_it_goes_back_to() -> None:
    node, log = living(Returning)
    node.ask(A, Put(1))
    node.run()
    second = node.ask(A, Put(2))
    node.run()
    node.answer_store(1)
    node.run()
    node.answer_store(instead=DOWN)
    node.run()
    assert second == [REFUSED]
    assert log[-1] == ("back", (1,))


def test_before_its_first_write_it_goes_back_to_nothing() -> None:
    node, log = living(Returning)
    node.ask(A, Put(1))
    node.run()
    node.answer_store(instead=DOWN)
    node.run()
    assert log[-1] == ("back", ())


@pytest.mark.parametrize("answer", [UNKNOWN, Conflict(7)])
def test_what_may_have_happened_is_read_before_anything_else(answer: Answer) -> None:
    node, log = living(Returning, 1)
    node.ask(A, Put(2))
    node.run()
    during = node.ask(A, Get(), timeout_ms=60_000)
    node.answer_store(1, instead=answer)
    node.run()
    assert ("back", (1,)) not in log
    node.advance(2_000)
    assert (reads(node), during) == (1, [])
    node.hold_store = False
    node.advance(1)
    assert during == [Got(1)]


def test_an_actor_that_cannot_go_back_starts_again_from_what_is_durable_without_a_read() -> None:
    node, log = living(Owner, 1)
    lost = node.ask(A, Put(2))
    node.run()
    node.answer_store(instead=DOWN)
    node.run()
    assert lost == [REFUSED]
    during = node.ask(A, Get(), timeout_ms=60_000)
    node.advance(5_000)
    assert (during, reads(node), ("start", (1,)) in log) == ([Got(1)], 0, True)


def test_an_operators_restart_reads_the_store_all_the_same() -> None:
    node, _ = living(Owner, 1)
    node.ask(A, Put(2))
    node.run()
    node.answer_store(instead=DOWN)
    node.run()
    node.system.restart(A)
    node.run()
    assert reads(node) == 1


def test_one_that_persists_while_it_goes_back_is_a_failure_of_its_own() -> None:
    class Stubborn(Returning):
        def roll_back(self, ctx: Context, state: Kept | None) -> None:
            ctx.persist(self.state)

    node, _ = living(Stubborn, 1)
    node.ask(A, Put(2))
    node.run()
    node.answer_store(instead=DOWN)
    node.run()
    assert (len(node.requests), node.system.stats()["failures"]) == (0, 1)
    node.hold_store = False
    again = node.ask(A, Get(), timeout_ms=60_000)
    node.advance(5_000)
    assert again == [Got(1)]
