"""An entity that deletes itself: gone for good once that is durable; what comes meanwhile is for who follows (P72)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from actors_harness import Get, Got, Kept, Node, Owner, Put, PutFact, Scripted, kind

from node.actors.actor import Context, Failed, Failure
from node.core.errors import LocalProtocolError
from node.core.ids import EntityRef
from node.store.port import Absent, Answer, DeleteState, ListStates, ReadState, Record, StatePage, StoreFailed
from node.wire.registry import wire_type

A = EntityRef("thing", "a")
ELSEWHERE = EntityRef("thing", "not here")
DELETED = Got(-1)


@wire_type("test_actors.delete")
class Delete(msgspec.Struct, frozen=True):
    pass


class Mortal(Owner):
    """Deletes itself when told; leaves a timer and an ask behind."""

    def receive(self, ctx: Context, message: Any) -> None:
        if not isinstance(message, Delete):
            super().receive(ctx, message)
            return
        self.log.append(message)
        ctx.after("later", 10, Get())
        ctx.ask(ELSEWHERE, Get(), 100, lambda outcome: outcome)
        ctx.delete(facts=[PutFact(0)], reply=DELETED)


def living(log: list[Any], **more: Any) -> Node:
    """One that has written its state once, its store held."""
    node = Node(kind(lambda _: Mortal(log), durable=Kept, **more))
    node.own(A)
    node.ask(A, Put(1))
    node.run()
    log.clear()
    node.hold_store = True
    return node


def stored(node: Node) -> Answer:
    return node.store.apply([ReadState(A.kind, A.id)])[0]


def test_p72_it_is_gone_once_that_is_durable_and_nobody_starts_it_again() -> None:
    log: list[Any] = []
    node = living(log, remember=True)
    outcome = node.ask(A, Delete())
    node.run()
    assert outcome == [], "not before it is durable"
    node.hold_store = False
    node.run()
    assert outcome == [DELETED]
    assert stored(node) == Absent(2)
    assert node.facts() == ["test_actors.put_fact"] * 2
    node.advance(60_000)
    assert log == [Delete()], "neither its timer nor the outcome of its ask runs"
    assert node.system.cell(A) is None
    again = Node(kind(lambda _: Mortal(log), durable=Kept, remember=True), store=node.store, clock=node.clock)
    again.system.shard_started(A.shard, 1)
    again.advance(60_000)
    assert again.system.cell(A) is None, "it is not remembered"
    assert again.store.apply([ListStates((A.kind,))])[0] == StatePage((), more=False)


def test_mail_that_comes_meanwhile_starts_a_new_one_without_a_state_after_the_delete_is_durable() -> None:
    log: list[Any] = []
    node = living(log)
    outcomes = [node.ask(A, message) for message in (Put(2), Delete(), Put(3), Get())]
    node.run()
    assert log == [Put(2), Delete()]
    node.hold_store = False
    node.run()
    assert outcomes == [[Got(2)], [DELETED], [Got(3)], [Got(1)]]
    assert log[2:4] == [("start", ()), Put(3)]
    found = stored(node)
    assert isinstance(found, Record)
    assert found.revision == 4, "two puts, the delete, and one on its tombstone"
    assert node.facts() == ["test_actors.put_fact"] * 4


@pytest.mark.parametrize("mail_waits", [False, True])
def test_when_the_delete_fails_it_starts_again_with_its_state(mail_waits: bool) -> None:
    log: list[Any] = []
    node = living(log)
    outcome = node.ask(A, Delete())
    node.run()
    waiting = [node.ask(A, Get(), 60_000)] if mail_waits else []
    node.run()
    node.answer_store(instead=StoreFailed("E-STORE", "no", definite=True))
    node.hold_store = False
    node.advance(5_000)
    assert outcome == [Failed(Failure.STOPPED, "E-STORE")]
    assert ("start", (1,)) in log
    assert all(answers == [Got(1)] for answers in waiting)
    assert isinstance(stored(node), Record)


def test_a_former_owner_s_delete_is_fenced() -> None:
    node = living([])
    node.place([A.shard], epoch=2, node="n2")
    outcome = node.ask(A, Delete())
    node.hold_store = False
    node.run()
    assert outcome == [Failed(Failure.STOPPED, "fenced")]
    assert node.fenced == [(A.shard, 1, 2)]
    assert isinstance(stored(node), Record)


def test_a_shard_that_stops_waits_for_the_delete_and_hands_over_what_waited() -> None:
    node = living([])
    node.ask(A, Delete())
    node.run()
    node.ask(A, Get())
    stopped: list[Any] = []
    node.system.shard_stopping(A.shard, stopped.append)
    node.run()
    assert stopped == []
    assert [envelope.message for envelope in node.bounced] == [Get()]
    node.hold_store = False
    node.run()
    (tally,) = stopped
    assert tally.arrived == tally.handled + tally.bounced + tally.dropped
    assert tally.digest == 0, "there is no state that the next owner should find"
    assert stored(node) == Absent(2)


def test_it_may_delete_itself_when_it_starts() -> None:
    log: list[Any] = []

    def start(ctx: Context, state: Kept | None) -> None:
        log.append(state)
        if state is not None:
            ctx.delete()

    node = living([])
    again = Node(kind(lambda _: Scripted(log, start=start), durable=Kept), store=node.store, clock=node.clock)
    again.system.shard_started(A.shard, 1)
    again.system.tell(A, Get())
    again.run()
    assert log == [Kept((1,)), None, Get()]
    assert stored(again) == Absent(2)


def test_deleting_what_keeps_nothing_and_persisting_after_it_are_errors_of_the_handler() -> None:
    failures: list[str] = []

    def attempt(ctx: Context, _message: Any) -> None:
        try:
            ctx.delete()
            ctx.persist(Kept())
        except LocalProtocolError as error:
            failures.append(str(error))

    for durable in (None, Kept):
        node = Node(kind(lambda _: Scripted([], attempt), durable=durable))
        node.own(A)
        node.system.tell(A, Get())
        node.run()
    assert ["keeps no state" in failures[0], "deleted itself" in failures[1]] == [True, True]
    assert any(isinstance(request, DeleteState) for request in node.seen)
