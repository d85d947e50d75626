"""Drills: each fails when what it proves does not hold, is refused where not all is well, and is on record."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import msgspec
import pytest

from node.admin import protocol as p
from node.admin.drills import Drills, fenced_words
from node.admin.held_plans import HeldPlans
from node.admin.protocol import diagnosis as d
from node.core.clock import ManualClock
from node.core.hashing import SHARD_COUNT, shard_of
from node.core.ids import NodeId
from node.engine.diagnosis_messages import EventPage
from node.engine.events import NodeEvent
from node.gossip.member import Member, Status
from node.gossip.view import ClusterView
from node.sharding.book import Cordon, Pin
from node.sharding.requests import GetPlacing, Placing
from node.store.port import Conflict, Fenced, Record, ShardRow, ShardState, WriteState

META = p.Meta(cluster_name="demo", cluster_id="c-1", observed_at="", observed_by="n1")
SITE = "blog.example"
SHARD = shard_of(SITE)
FENCED = Fenced(5)
RECORD = Record("site", SITE, 3, 5, b"state")

_SHOWN = p.SiteShow(site=SITE, host=SITE, publisher="ann", verified_host="", slots=(), pages_fresh=0, suspended=False)


class Server:
    """n1 owns everything under epoch 5, n2 is there too; `answers` says what becomes of a write and of each move."""

    def __init__(self, *, write: Any = FENCED, ends: Any = None, nodes: tuple[str, ...] = ("n1", "n2")) -> None:
        self.written: list[WriteState] = []
        self.moved: list[str] = []
        self.events: list[NodeEvent] = []
        self.record = RECORD
        self.faults: tuple[p.FaultRow, ...] = ()
        self._ends = ends or {}
        rows = tuple(ShardRow(shard, "n1", 1, 5, ShardState.RUNNING) for shard in range(SHARD_COUNT))
        members = {n: Member(n, 1, f"{n}:1", roles=("entity",), status=Status.UP) for n in nodes}

        def submit(request: WriteState, done: Callable[[Any], None]) -> None:
            self.written.append(request)
            done(write)

        self.engine = SimpleNamespace(
            me=NodeId("n1", 1),
            world=SimpleNamespace(clock=ManualClock(), rng=random.Random(1), submit=submit),
            sharding=SimpleNamespace(region=SimpleNamespace(version=1, homes=lambda: rows)),
            view=ClusterView(NodeId("n1", 1), members=members),
            emit=self._emit,
        )
        self.roster: tuple[str, ...] = ()
        self.placing = Placing("n1", 1, 1, ("n1@1",) * SHARD_COUNT, (5,) * SHARD_COUNT)
        self.states = SimpleNamespace(ids=self._ids, record=self._record)
        self.gatherer = SimpleNamespace(each=self._each)
        self.handlers: dict[type, Any] = {
            p.CommitPlan: self._commit,
            p.StageMove: self._stage,
            p.GetSite: self._answers(_SHOWN),
        }
        Drills(cast(Any, self), HeldPlans(cast(Any, self)))

    async def placed(self, _engine: Any, _request: GetPlacing) -> Placing:
        return self.placing

    def _emit(self, topic: str, about: str, text: str, *, cluster: bool) -> None:
        assert cluster
        self.events.append(NodeEvent(len(self.events), topic, about, text, "n1"))

    async def _ids(self, _kind: str) -> list[str]:
        return [SITE]

    async def _record(self, _kind: str, _name: str) -> Record:
        return self.record

    async def _each(self, _nodes: Any, _message: Any, _answer: Any) -> Any:
        return [EventPage("n1", 1, tuple(self.events), len(self.events))], []

    async def status(self, call: p.Meta) -> Any:
        totals = p.ShardTotals(total=256, allocated=256, moving=0, unallocated=0)
        index = p.ServeIndexTotals(maps=32, keys=0, agree=True, max_lag_ms=0, tombstones=0, pending_removals=0)
        status = p.ClusterStatus(
            converged=True,
            leader="n1",
            coordinator="n1",
            term=1,
            nodes=(),
            shards=totals,
            serveindex=index,
            coverage=p.CoverageTotals(expected=0, present=0, ratio=1.0),
            faults=self.faults,
        )
        return status, call

    def with_missing(self, meta: p.Meta, _missing: Any) -> p.Meta:
        return meta

    def _answers(self, found: msgspec.Struct) -> Any:
        async def answer(_request: Any, call: p.Meta) -> Any:
            return found, call

        return answer

    async def _stage(self, request: p.StageMove, call: p.Meta) -> Any:
        assert request.shard == SHARD
        return p.Plan(id=f"p-{request.to}", verb="move", target=request.to, base_version=1, moves=()), call

    async def _commit(self, request: p.CommitPlan, call: p.Meta) -> Any:
        target = request.id.removeprefix("p-")
        self.moved.append(target)
        state, result = self._ends.get(target, ("done", {"messages_lost": 0}))
        if state == "edited":
            self.record, state = msgspec.structs.replace(RECORD, body=b"other"), "done"
        done = p.Operation(
            id="op", verb="move", target=target, state=state, phases=(), elapsed_s=0.1, result=cast(Any, result)
        )
        return done, call

    def ask(self, request: msgspec.Struct) -> Any:
        with patch("node.admin.drills.ask_coordinator", self.placed):
            return asyncio.run(self.handlers[type(request)](request, META))[0]

    def drilled(self, drill: str) -> Any:
        plan = self.ask(d.StageDrill(drill=drill, site=SITE))
        assert not plan.violations
        return self.ask(p.CommitPlan(id=plan.id))


def test_a_fence_is_proven_by_a_write_that_could_change_nothing() -> None:
    server = Server()
    done = server.drilled("fence")
    [write] = server.written
    assert (write.epoch, write.shard, write.body) == (4, SHARD, RECORD.body)
    assert write.revision > RECORD.revision
    assert (done.state, [event.topic for event in server.events]) == ("done", ["drill.passed"])


def test_a_fence_tells_of_an_owner_before_only_where_there_was_one() -> None:
    assert fenced_words(7, 4, 5) == "a write under epoch 4, that of the owner before, is refused; epoch 5 writes"
    assert fenced_words(7, 0, 1).startswith("shard 7 never moved: epoch 1 is its first")


@pytest.mark.parametrize("answer", [Conflict(3), RECORD])
def test_a_fence_that_lets_a_stale_writer_through_fails_the_drill(answer: Any) -> None:
    server = Server(write=answer)
    assert server.drilled("fence").state == "failed"
    assert [event.topic for event in server.events] == ["drill.failed"]


def test_a_shard_goes_away_and_comes_back() -> None:
    server = Server()
    assert server.drilled("move").state == "done"
    assert server.moved == ["n2", "n1"]


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ({"n2": ("failed", {})}, "is failed"),
        ({"n1": ("done", {"messages_lost": 2})}, "2 messages were lost"),
        ({"n2": ("edited", {})}, "another than before"),
    ],
)
def test_a_move_that_loses_something_fails_the_drill(ends: Any, words: str) -> None:
    done = Server(ends=ends).drilled("move")
    assert (done.state, words in str(done.result["found"])) == ("failed", True)


@pytest.mark.parametrize(
    ("nodes", "placing", "words"),
    [
        (("n1",), {}, "no other entity node"),
        (("n1", "n2"), {"pins": (Pin(SHARD, "n1"),)}, f"'shard unpin {SHARD}' lets it move"),
        (("n1", "n2"), {"cordons": (Cordon("n1"),)}, "could not come back"),
        (("n1", "n2"), {"draining": ("n2@1",)}, "no other entity node"),
    ],
)
def test_a_move_that_can_not_go_there_and_back_is_refused_before_it_begins(
    nodes: tuple[str, ...], placing: dict[str, Any], words: str
) -> None:
    server = Server(nodes=nodes)
    server.placing = msgspec.structs.replace(server.placing, **placing)
    plan = server.ask(d.StageDrill(drill="move", site=SITE))
    assert [text for text in plan.violations if words in text]
    with pytest.raises(p.AdminRefusal):
        server.ask(p.CommitPlan(id=plan.id))
    assert server.moved == []
    assert server.ask(d.StageDrill(drill="fence", site=SITE)).violations == ()


def test_a_cluster_that_is_not_healthy_is_not_drilled() -> None:
    server = Server()
    server.faults = (p.FaultRow(code="E-STORE", object="store", message="it does not answer", since=""),)
    plan = server.ask(d.StageDrill(drill="fence", site=SITE))
    assert any("does not answer" in text for text in plan.violations)
    with pytest.raises(p.AdminRefusal):
        server.ask(p.CommitPlan(id=plan.id))
    assert server.written == []


def test_what_was_proven_is_on_record() -> None:
    server = Server()
    assert [item.last for item in server.ask(d.GetDrills()).items] == [None] * 4
    server.drilled("fence")
    [item] = server.ask(d.GetDrills(drill="fence")).items
    assert item.last is not None
    assert (item.last.outcome, len(item.runs)) == ("passed", 1)


@pytest.mark.parametrize("request_", [d.StageDrill(drill="flood", site=SITE), d.StageDrill(drill="fence", site="x.y")])
def test_what_is_not_there_is_not_found(request_: msgspec.Struct) -> None:
    with pytest.raises(p.AdminRefusal) as refused:
        Server().ask(request_)
    assert refused.value.exit_status == 3


def test_a_term_is_proven_by_a_write_that_could_change_nothing() -> None:
    server = Server()
    assert server.drilled("term").state == "done"
    [write] = cast(Any, server.written)
    assert (write.lease, write.term, write.rows, write.book) == ("shard-coordinator", 0, (), ())


@pytest.mark.parametrize("answer", [Conflict(3), RECORD])
def test_a_term_that_is_over_and_still_writes_fails_the_drill(answer: Any) -> None:
    done = Server(write=answer).drilled("term")
    assert (done.state, "not fenced" in str(done.result["found"])) == ("failed", True)


class Letters:
    """A queue of dead letters. `keeps`: what is told becomes one; `settles`: replaying and discarding take it out;
    `again`: what is replayed comes back."""

    def __init__(self, *, keeps: bool = True, settles: bool = True, again: bool = True, missed: bool = False) -> None:
        self.server = Server()
        self.told: list[Any] = []
        self.kept: dict[str, str] = {"n1.1.1": "drill:other.example"}
        self._keeps, self._settles, self._again, self._missed = keeps, settles, again, missed
        self._plans: dict[str, p.StageDeadLetters] = {}
        self.server.engine.system = SimpleNamespace(tell=self._tell)
        self.server.handlers |= {
            p.GetDeadLetters: self._list,
            p.StageDeadLetters: self._stage,
        }
        self._others = self.server.handlers[p.CommitPlan]
        self.server.handlers[p.CommitPlan] = self._commit

    def _tell(self, to: Any, message: Any) -> None:
        self.told.append((to, message))
        if self._keeps:
            self.kept[f"n2.1.{len(self.kept) + 7}"] = f"{to.kind}:{to.id}"

    async def _list(self, _request: p.GetDeadLetters, call: p.Meta) -> Any:
        items = tuple(
            p.DeadLetterShow(
                id=name,
                at="",
                node=name[:2],
                reason="rejected",
                to=to,
                message_type="ads.get_site",
                message_bytes=1,
                sender="",
                deliveries=0,
                error="",
                trace="",
                replayable=True,
            )
            for name, to in self.kept.items()
        )
        return p.DeadLetterList(items=items, total=len(items)), call

    async def _stage(self, request: p.StageDeadLetters, call: p.Meta) -> Any:
        name = f"letters-{len(self._plans)}"
        self._plans[name] = request
        return p.Plan(id=name, verb=request.verb, target="", base_version=1, moves=()), call

    async def _commit(self, request: p.CommitPlan, call: p.Meta) -> Any:
        staged = self._plans.get(request.id)
        if staged is None:
            return await self._others(request, call)
        to = self.kept[staged.ids[0]]
        if self._settles:
            del self.kept[staged.ids[0]]
        if staged.verb == "replay" and self._again:
            self.kept[f"n2.1.{len(self.told) + 99}"] = to
        state = "failed" if self._missed else "done"
        return p.Operation(id="op", verb="", target="", state=state, phases=(), elapsed_s=0, result={}), call


def test_a_dead_letter_goes_round_and_others_stay() -> None:
    letters = Letters()
    assert letters.server.drilled("deadletter").state == "done"
    [(to, _)] = letters.told
    assert (to.kind, to.id) == ("drill", SITE)
    assert letters.kept == {"n1.1.1": "drill:other.example"}


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({"keeps": False}, "nowhere among the dead letters"),
        ({"again": False}, "nowhere among the dead letters"),
        ({"settles": False}, "although it was sent again or forgotten"),
        ({"missed": True}, "is failed"),
    ],
)
def test_a_queue_that_loses_or_keeps_what_it_should_not_fails_the_drill(
    broken: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("node.admin.drills.LETTER_S", 0.0)
    done = Letters(**broken).server.drilled("deadletter")
    assert (done.state, words in str(done.result["found"])) == ("failed", True)
