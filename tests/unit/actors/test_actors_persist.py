"""Durable writes: one under way, the rest folded; nothing is answered before it is durable; refusals stop the cell."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from actors_harness import Get, Got, Kept, Node, Owner, Poison, Put, Scripted, kind

from node.actors.actor import Context, Failed, Failure
from node.core import limits
from node.core.ids import EntityRef
from node.store.port import Answer, Conflict, ReadState, StoreFailed, WriteState

A = EntityRef("thing", "a")


def owner(log: list[Any]) -> Node:
    node = Node(kind(lambda _: Owner(log), durable=Kept))
    node.own(A)
    node.ask(A, Get())
    node.run()
    node.seen.clear()
    log.clear()
    node.hold_store = True
    return node


def writes(node: Node) -> list[WriteState]:
    return [request for request in node.seen if isinstance(request, WriteState)]


def test_persists_made_meanwhile_are_folded_and_replies_wait_for_their_write() -> None:
    log: list[Any] = []
    node = owner(log)
    outcomes = [node.ask(A, Put(value)) for value in range(5)]
    node.run()
    assert log == [Put(value) for value in range(5)], "the handler goes on while the write is under way"
    assert len(writes(node)) == 1
    assert outcomes == [[]] * 5
    node.answer_store()
    node.run()
    assert [len(write.facts) for write in writes(node)] == [1, 4], "the other four share one write"
    assert outcomes == [[Got(0)], [], [], [], []]
    node.answer_store()
    node.run()
    assert outcomes == [[Got(value)] for value in range(5)]
    assert log[5:] == [("done", value) for value in range(5)]
    assert node.facts() == ["test_actors.put_fact"] * 5
    assert [write.revision for write in writes(node)] == [0, 1]


class Repeated(Owner):
    """Asked for what it holds already, it says so when that is durable."""

    def receive(self, ctx: Context, message: Any) -> None:
        if isinstance(message, Get):
            ctx.reply_durable(Got(len(self.state.values)))
        else:
            super().receive(ctx, message)


@pytest.mark.parametrize(("puts", "fenced"), [(1, False), (2, False), (1, True), (2, True)])
def test_an_answer_about_what_holds_waits_for_the_write_that_makes_it_so(puts: int, fenced: bool) -> None:
    node = Node(kind(lambda _: Repeated(), durable=Kept))
    node.own(A)
    at_once = node.ask(A, Get())
    node.run()
    assert at_once == [Got(0)], "nothing is under way"
    node.hold_store = True
    for value in range(puts):
        node.ask(A, Put(value))
    again = [node.ask(A, Get()) for _ in range(2)]
    node.run()
    assert again == [[], []], "memory is ahead of the store"
    if fenced:
        node.place([A.shard], epoch=9, node="n2")
    before = len(writes(node))
    node.answer_store()
    node.run()
    if puts == 2 and not fenced:
        assert again == [[], []], "what they speak of is in the second write"
        node.answer_store()
        node.run()
    assert again == [[Failed(Failure.STOPPED, "fenced")] if fenced else [Got(puts)]] * 2
    assert len(writes(node)) - before == (puts - 1 if not fenced else 0), "an answer alone writes nothing"


def test_a_handler_that_raises_persists_nothing() -> None:
    log: list[Any] = []
    node = owner(log)
    node.system.tell(A, Poison())
    node.run()
    assert writes(node) == []


def test_a_fenced_write_stops_the_cell_tells_the_region_and_fails_what_waits() -> None:
    log: list[Any] = []
    node = owner(log)
    outcomes = [node.ask(A, Put(value)) for value in range(3)]
    node.run()
    node.place([A.shard], epoch=9, node="n2")
    node.answer_store()
    node.run()
    assert node.fenced == [(A.shard, 1, 9)]
    assert outcomes == [[Failed(Failure.STOPPED, "fenced")]] * 3
    later = node.ask(A, Get())
    node.run()
    assert later == [], "nothing runs on memory that may be stale"
    tallies: list[Any] = []
    node.system.shard_stopping(A.shard, tallies.append)
    node.run()
    assert [envelope.message for envelope in node.bounced] == [Get()]
    assert len(tallies) == 1
    assert node.facts() == []


@pytest.mark.parametrize(
    ("answer", "first", "second"),
    [
        (Conflict(7), Failed(Failure.STOPPED, "conflict"), Failed(Failure.STOPPED, "conflict")),
        (StoreFailed("E-X", "x", definite=True), Failed(Failure.STOPPED, "E-X"), Failed(Failure.STOPPED, "E-X")),
        (StoreFailed("E-X", "x", definite=False), Failed(Failure.FAILED, "E-X"), Failed(Failure.STOPPED, "E-X")),
    ],
)
def test_a_write_that_fails_restarts_the_entity_from_the_store(answer: Answer, first: Failed, second: Failed) -> None:
    log: list[Any] = []
    node = owner(log)
    outcomes = [node.ask(A, Put(value)) for value in range(2)]
    node.run()
    node.answer_store(instead=answer)
    node.run()
    assert outcomes == [[first], [second]]
    node.hold_store = False
    again = node.ask(A, Put(5), timeout_ms=10_000)
    node.advance(2_000)
    assert ("start", ()) in log
    assert again == [Got(5)]


def test_a_store_that_is_down_quarantines_nobody() -> None:
    log: list[Any] = []
    node = Node(kind(lambda _: Owner(log), durable=Kept))
    node.own(A)
    node.hold_store = True
    node.system.tell(A, Get())
    for _ in range(3 * limits.restarts_max):
        node.run()
        assert node.requests
        node.answer_store(instead=StoreFailed("E-DOWN", "down", definite=True))
        node.advance(40_000)
    node.hold_store = False
    node.advance(1)
    assert log == [("start", ()), Get()]


def test_g2_whom_the_store_failed_is_back_soon_after_it_however_long_it_was_away() -> None:
    node = Node(kind(lambda _: Owner([]), durable=Kept))
    node.own(A)
    node.hold_store = True
    outcome = node.ask(A, Get(), timeout_ms=10_000_000)
    for _ in range(20):
        node.run()
        assert node.requests, "it asks again, and not at once"
        node.answer_store(instead=StoreFailed("E-STORE-UNREACHABLE", "down", definite=True))
        node.run()
        assert not node.requests
        node.advance(limits.store_backoff_ms_max * 2)
    node.hold_store = False
    node.advance(1)
    assert outcome == [Got(0)]


def test_a_restart_reads_only_after_the_write_under_way_was_answered() -> None:
    log: list[Any] = []
    node = owner(log)
    outcome = node.ask(A, Put(1), timeout_ms=60_000)
    node.system.tell(A, Poison())
    node.run()
    node.advance(5_000)
    assert not any(isinstance(request, ReadState) for request in node.seen)
    node.hold_store = False
    node.run()
    assert outcome == [Got(1)]
    assert ("start", (1,)) in log
    assert log.count(Poison()) == 2, "delivered again after the restart"


def test_a_state_that_is_too_large_fails_its_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "record_bytes_max", 10)
    log: list[Any] = []
    node = owner(log)
    node.ask(A, Put(1))
    node.run()
    assert writes(node) == []
    assert node.system.stats()["failures"] == 1


def test_a_record_of_another_type_does_not_start_the_entity() -> None:
    node = owner([])
    node.hold_store = False
    body = node.system._kernel.ports.codec.encode(Got(1))
    other = EntityRef("thing", "other")
    node.own(other, epoch=2)
    node.store.apply([WriteState("thing", "other", other.shard, 2, 0, body)])
    node.system.tell(other, Get())
    node.advance(300_000)
    [(ref, fault)] = node.system.quarantined().items()
    assert (ref, fault.failures) == (other, limits.restarts_max + 1)
    assert "holds Got" in fault.error


def test_persist_from_start_is_written_under_the_revision_that_was_read() -> None:
    class Opening:
        def start(self, ctx: Context, state: Kept | None) -> None:
            ctx.persist(Kept((1,)) if state is None else msgspec.structs.replace(state, values=(*state.values, 2)))

        def receive(self, ctx: Context, message: Any) -> None:
            ctx.passivate()

    node = Node(kind(lambda _: Opening(), durable=Kept))
    node.own(A)
    for _ in range(2):
        node.system.tell(A, Get())
        node.run()
    record: Any = node.store.apply([ReadState("thing", "a")])[0]
    assert (record.revision, node.system._kernel.ports.codec.decode(record.body)) == (2, Kept((1, 2)))


def test_only_a_durable_type_persists() -> None:
    node = Node(kind(lambda _: Scripted([], lambda ctx, message: ctx.persist(Kept()))))
    node.own(A)
    node.system.tell(A, Get())
    node.run()
    assert node.system.stats()["failures"] == 1
