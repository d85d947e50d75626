"""Operations as operators ask for them: listed from what is durable, shown also while their entity is on its way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from node.actors.actor import Failed, Failure
from node.admin import protocol as p
from node.admin.operation_requests import OperationRequests, drain_name
from node.admin.states import States
from node.core.clock import ManualClock
from node.core.hashing import SHARD_COUNT
from node.core.ids import EntityRef, ServiceRef
from node.flows import messages as f
from node.flows.state import OperationState
from node.store.port import Absent, ListStates, ReadState, Record, ShardRow, StatePage
from node.wire.codec import CODEC

CALL = p.Meta(cluster_name="demo", cluster_id="c-1", observed_at="", observed_by="n1")


def status(name: str, started_ms: int, state: str = "running", reason: str = "") -> f.OperationStatus:
    return f.OperationStatus(name, "drain", "n2", state, (f.Phase("shards", "running"),), started_ms, 0, {}, reason)


class Desk:
    """The requests over a scripted cluster: asks are answered by receiver, the store holds `durable`."""

    def __init__(self, *durable: f.OperationStatus) -> None:
        self.durable = {s.id: OperationState(f.StartOperation("drain", "n2", 1), s) for s in durable}
        self.answers: dict[Any, Any] = {}
        self.gone: set[str] = set()
        self.silent: set[str] = set()
        placed = (ShardRow(0, "n1", 1, 1), ShardRow(1, "n2", 1, 1), ShardRow(2, "n2", 2, 1))
        self.homes = (*placed, *(ShardRow(shard, "n1", 1, 1) for shard in range(3, SHARD_COUNT)))
        self.asked: list[tuple[Any, Any]] = []
        self.engine = SimpleNamespace(
            view=SimpleNamespace(members={"n1": None, "n2": None}),
            membership=SimpleNamespace(state=SimpleNamespace(members={})),
            world=SimpleNamespace(clock=ManualClock(wall_ms=10_000), submit=self._store),
            ask=self._ask,
            sharding=SimpleNamespace(
                is_member=lambda node, _: node not in self.gone,
                reachable=lambda node: node not in self.silent,
                how_ended=lambda *_: "left",
                region=SimpleNamespace(homes=lambda: self.homes),
            ),
        )
        self.server = cast(Any, SimpleNamespace(engine=self.engine, handlers={}, states=States(cast(Any, self.engine))))
        self.requests = OperationRequests(self.server)

    def _ask(self, to: Any, message: Any, timeout_ms: int, done: Callable[[Any], None]) -> None:
        self.asked.append((to, message))
        done(self.answers.get((to, type(message)), Failed(Failure.NO_HOME, "its shard moves")))

    def _store(self, request: Any, done: Callable[[Any], None]) -> None:
        if isinstance(request, ListStates):
            records = tuple(self._record(name) for name in sorted(self.durable))
            done(StatePage(records, False))
        elif isinstance(request, ReadState):
            done(self._record(request.id) if request.id in self.durable else Absent())

    def _record(self, name: str) -> Record:
        return Record("operation", name, 1, 1, CODEC.encode_record(self.durable[name]))

    def run(self, request: Any) -> Any:
        handler = self.server.handlers[type(request)]
        return asyncio.run(handler(request, CALL))[0]


def test_the_newest_first_and_only_those_wanted() -> None:
    desk = Desk(status("op-a", 1, "done"), status("op-b", 3, reason="kernel"), status("op-c", 2, "done"))
    assert [item.id for item in desk.run(p.ListOperations()).items] == ["op-b", "op-c", "op-a"]
    assert [item.id for item in desk.run(p.ListOperations(state="done")).items] == ["op-c", "op-a"]
    assert desk.run(p.ListOperations(state="running")).items[0].reason == "kernel"


def test_check_v3_what_is_durable_is_shown_while_nobody_can_be_asked() -> None:
    desk = Desk(status("op-a", 1))
    assert (desk.run(p.GetOperation(id="op-a")).state, desk.asked[0][0]) == ("running", EntityRef("operation", "op-a"))
    with pytest.raises(p.AdminRefusal):
        desk.run(p.GetOperation(id="op-none"))
    desk.answers[EntityRef("operation", "op-a"), f.GetOperation] = status("op-a", 1, "done")
    assert desk.run(p.GetOperation(id="op-a")).state == "done"


def test_a_silent_nodes_drain_is_told_by_the_placement_table_and_found_by_its_node() -> None:
    desk = Desk(status("op-a", 1, "done"), status("op-b", 2))
    assert desk.run(p.GetOperation(id="op-b")).result == {}, "who can speak for itself does"
    desk.silent.add("n2")
    for ended, state in ((False, "running"), (True, "failed")):
        desk.gone = {"n2"} if ended else set()
        found = desk.run(p.GetOperation(id="op-b"))
        assert (found.state, found.result["shards_left"]) == (state, 1)
        assert [phase.blockers for phase in found.phases] == [("shard/1: is placed on n2, which does not answer",)]
        under_way = asyncio.run(desk.requests.running_drain("n2", 1))
        assert under_way == ("" if ended else "op-b")
    assert asyncio.run(desk.requests.running_drain("n2", 2)) == "", "another start of it is drained by nobody"


def test_undrain_cancels_whoever_started_it_and_says_when_there_is_nothing_to_cancel() -> None:
    desk = Desk()
    node = ServiceRef("n2", "/node")
    desk.answers[node, f.GetDrainName] = f.DrainName("op-a", False)
    assert desk.run(p.Undrain(node="n2")).changed is False
    desk.answers[node, f.GetDrainName] = f.DrainName("op-a", True)
    desk.answers[EntityRef("operation", "op-a"), f.CancelOperation] = status("op-a", 1, "cancelled")
    done = desk.run(p.Undrain(node="n2", reason="not today"))
    assert (done.changed, "op-a" in done.message) == (True, True)
    assert desk.asked[-1] == (EntityRef("operation", "op-a"), f.CancelOperation("not today"))
    with pytest.raises(p.AdminRefusal) as refused:
        desk.run(p.Undrain(node="n9"))
    assert refused.value.exit_status == 3


def test_a_drain_that_has_begun_to_flush_is_a_conflict() -> None:
    desk = Desk(status("op-a", 1))
    refused = Failed(Failure.REJECTED, "conflict: n2 has begun to flush; there is no way back")
    desk.answers[EntityRef("operation", "op-a"), f.CancelOperation] = refused
    with pytest.raises(p.AdminRefusal) as error:
        desk.run(p.CancelOperation(id="op-a"))
    assert (error.value.exit_status, "flush" in error.value.message) == (4, True)


def test_p63_the_node_names_its_drain_and_one_that_can_not_be_asked_leaves_the_name_to_the_plan() -> None:
    desk = Desk()
    assert asyncio.run(drain_name(desk.server, "n2")) == ""
    desk.answers[ServiceRef("n2", "/node"), f.GetDrainName] = f.DrainName("op-a", True)
    assert asyncio.run(drain_name(desk.server, "n2")) == "op-a"
