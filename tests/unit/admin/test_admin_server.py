"""The admin server's dispatch: what can't be read, what isn't known, what fails, and the live pushes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from admin_console import DONE, ME, Console, played

from node.actors.actor import Failed, Failure
from node.admin import protocol as p
from node.admin.check_requests import shard_rows
from node.admin.plan_requests import START_TRIES
from node.core.hashing import SHARD_COUNT
from node.core.ids import EntityRef
from node.flows import messages as f
from node.gossip.view import ClusterView
from node.store.port import (
    StoreFailed,
)
from node.wire.codec import dumps


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"nonsense", dumps(7), dumps([]), dumps(["x", 1, "a", 1, {}]), dumps({})]
)
def test_what_has_no_id_is_counted_and_dropped(data: bytes) -> None:
    async def scene(console: Console) -> None:
        console.send(data)

    console = played(scene)
    assert console.replies == []
    assert sum(console.engine.counters.values()) == 1


@pytest.mark.parametrize(
    "rest",
    [
        [5_000, "admin.no_such_request", 1, {}],
        [5_000, "admin.shard_of_get", 1, {}],
        [5_000, "admin.shard_of_get", 1, {"kind": "site", "id": 7}],
        [5_000, 7, 1, {}],
        [5_000, "admin.shard_of_get", "x", {}],
        ["soon", "admin.shard_of_get", 1, {"kind": "site", "id": "a"}],
        [5_000],
    ],
)
def test_what_can_not_be_read_but_has_an_id_is_answered(rest: list[Any]) -> None:
    async def scene(console: Console) -> None:
        console.send(dumps([9, *rest]))

    console = played(scene)
    ((number, meta, answer),) = console.replies
    assert (number, meta.observed_by, answer.code, answer.exit) == (9, "n1", "E-PROTOCOL", 14)
    assert sum(console.engine.counters.values()) == 1


def test_a_registered_message_that_is_no_request_is_refused() -> None:
    async def scene(console: Console) -> None:
        answer = await console.ask(p.Subscribed())
        assert (answer.code, answer.exit) == ("E-PROTOCOL", 14)

    played(scene)


def test_an_entity_type_that_is_none_has_no_place() -> None:
    async def scene(console: Console) -> None:
        bogus = await console.ask(p.GetShardOf(kind="sites", id="news.example"))
        assert (bogus.code, bogus.exit) == ("E-NOT-FOUND", 3)
        assert "Did you mean 'site'?" in bogus.message

    played(scene)


def test_a_request_is_answered_under_its_id_with_who_observed_it() -> None:
    async def scene(console: Console) -> None:
        answer = await console.ask(p.GetShardOf(kind="site", id="news.example"), number=41)
        assert (answer.node, answer.epoch) == ("n1", 1)

    ((number, meta, _),) = played(scene).replies
    assert (number, meta.cluster_name, meta.cluster_id, meta.observed_by) == (41, "demo", "c-1", "n1")


@pytest.mark.parametrize(
    ("request_", "code", "exit_status"),
    [
        (p.GetNode(node="n9"), "E-NOT-FOUND", 3),
        (p.GetShards(node="n9"), "E-NOT-FOUND", 3),
        (p.StageMove(shard=256, to="n2"), "E-BAD-INPUT", 2),
        (p.StageMove(shard=1, to="n9"), "E-NOT-FOUND", 3),
        (p.CommitPlan(id="p-none"), "E-NOT-FOUND", 3),
        (p.CancelPlan(id="p-none"), "E-NOT-FOUND", 3),
        (p.DiscardPlan(id="p/../x"), "E-BAD-INPUT", 2),
        (p.StagePin(shards=(), to="n1"), "E-BAD-INPUT", 2),
        (p.StagePin(shards=(-1,)), "E-BAD-INPUT", 2),
        (p.StageCordon(node="n9"), "E-NOT-FOUND", 3),
        (p.GetShard(shard=-1), "E-BAD-INPUT", 2),
        (p.GetOperation(id="op/../x"), "E-BAD-INPUT", 2),
        (p.GetReplay(id="x" * 500), "E-BAD-INPUT", 2),
        (p.GetEntry(key="nothing"), "E-BAD-INPUT", 2),
        (p.GetEntry(key="a.example|" + "s" * 900), "E-BAD-INPUT", 2),
        (p.StartReplay(sites=("nowhere.example",)), "E-NOT-FOUND", 3),
        (p.GetSite(site="A B"), "E-BAD-INPUT", 2),
        (p.GetSite(site="away.example"), "E-SILENT", 12),
        (p.GetExplanation(), "E-BAD-INPUT", 2),
        (p.CreateAdvertiser(advertiser="a", name="A", daily_budget="0", timezone="UTC"), "E-BAD-INPUT", 2),
        (p.CreateAdvertiser(advertiser="a", name="A", daily_budget="-1", timezone="UTC"), "E-BAD-INPUT", 2),
        (p.StopNode(node="n9", drain=True), "E-NOT-FOUND", 3),
    ],
)
def test_refusals_carry_their_exit_status(request_: msgspec.Struct, code: str, exit_status: int) -> None:
    async def scene(console: Console) -> None:
        answer = await console.ask(request_)
        assert isinstance(answer, p.AdminError), answer
        assert (answer.code, answer.exit) == (code, exit_status), answer.message
        assert answer.message

    played(scene)


def test_a_fault_of_ours_is_answered_too_and_absurd_timeouts_do_no_harm() -> None:
    async def scene(console: Console) -> None:
        sharding = console.engine.sharding
        del console.engine.sharding
        assert (await console.ask(p.GetShardOf(kind="site", id="a"))).code == "E-BUG"
        console.engine.sharding = sharding
        for timeout_ms in (-1, 0, 10**18, 1 << 63):
            assert (await console.ask(p.GetNode(node="n9"), timeout_ms=timeout_ms)).code == "E-NOT-FOUND"

    played(scene)


def test_a_request_that_takes_too_long_says_so() -> None:
    async def scene(console: Console) -> None:
        console.engine.ask = lambda *args: None  # type: ignore[method-assign]
        answer = await console.ask(p.GetSite(site="a.example"), timeout_ms=100)
        assert (answer.code, answer.exit) == ("E-TIMEOUT", 9)

    played(scene)


def test_a_commit_whose_answer_was_lost_can_be_repeated() -> None:
    async def scene(console: Console) -> None:
        engine = console.engine
        engine.answers = [Failed(Failure.UNREACHABLE)]  # n2's report
        plan = await console.ask(p.StageMove(shard=1, to="n2"))
        assert [(move.from_node, move.to, move.state) for move in plan.moves] == [("n1", "n2", "waiting")]
        engine.answers = [*[Failed(Failure.TIMEOUT)] * START_TRIES, Failed(Failure.TIMEOUT), DONE]
        assert (await console.ask(p.CommitPlan(id=plan.id))).exit == 9
        assert (await console.ask(p.CommitPlan(id=plan.id))).id == "op-1"
        operations = {to for to, message in engine.asked if isinstance(message, f.StartOperation)}
        assert operations == {EntityRef("operation", f"op-{plan.id}")}, "both under one name"
        again = await console.ask(p.CommitPlan(id=plan.id, request_id="other"))
        assert (again.code, again.exit) == ("E-CONFLICT", 4)
        assert (await console.ask(p.GetPlan(id=plan.id))).operation == f"op-{plan.id}"

    played(scene)


def test_a_plan_against_an_older_placement_is_not_carried_out() -> None:
    async def scene(console: Console) -> None:
        plan = await console.ask(p.StageMove(shard=1, to="n2"))
        console.engine.coordinator.moved_on()
        answer = await console.ask(p.CommitPlan(id=plan.id))
        assert (answer.code, answer.exit) == ("E-STALE-PLAN", 4)
        assert "placement 1, now 2" in answer.message
        same = await console.ask(p.StageMove(shard=1, to="n1"))
        assert same.changed is False
        assert (await console.ask(p.CommitPlan(id=same.id))).code == "E-NOT-FOUND", "there is nothing to keep"

    played(scene)


def test_plans_are_listed_cancelled_and_discarded_with_what_they_say() -> None:
    async def scene(console: Console) -> None:
        console.engine.answers = [Failed(Failure.UNREACHABLE)] * 9
        pin = await console.ask(p.StagePin(shards=(3, 4, 4, 3), to="n9", reason="near"))
        assert pin.notes[:2] == ("pins shard 3 to n9", "pins shard 4 to n9")
        assert "pending: n9 is no entity node" in pin.notes[2]
        cordon = await console.ask(p.StageCordon(node="n2"))
        assert cordon.notes[0].startswith("cordons n2")
        shown = await console.ask(p.GetPlans())
        assert {plan.id for plan in shown.items} == {pin.id, cordon.id} or pin.id == cordon.id
        assert (await console.ask(p.CancelPlan(id=pin.id))).code == "E-CONFLICT", "it does not run"
        assert (await console.ask(p.DiscardPlan(id=pin.id))).id == pin.id
        assert (await console.ask(p.GetPlan(id=pin.id))).exit == 3
        refused = await console.ask(p.StageRebalance())
        assert refused.changed, "all shards are on n1"
        assert len(refused.moves) == 128

    played(scene)


def test_the_map_and_a_shards_history_come_from_the_coordinator() -> None:
    async def scene(console: Console) -> None:
        found = await console.ask(p.GetShardMap())
        assert [(row.node, row.shards, row.share) for row in found.items] == [("n1", 256, 128), ("n2", 0, 128)]
        assert (found.version, found.term, found.unallocated) == (1, 1, ())
        moves, _, when = found.balance.partition(" moves would even it out; ")
        assert (moves, when.startswith("the coordinator evens it out in ")) == ("128", True), "n2 has just come"
        assert (await console.ask(p.GetShardHistory(shard=3))).items == ()
        assert (await console.ask(p.GetShardHistory(shard=256))).exit == 2
        shown = await console.ask(p.GetShard(shard=3))
        assert (shown.node, shown.state) == ("n1", "running")
        console.engine.sharding.coordinator_node = lambda: None
        silent = await console.ask(p.GetShardMap())
        assert (silent.code, silent.exit) == ("E-NO-COORDINATOR", 8), "nothing ran"

    played(scene)


@pytest.mark.parametrize("failed", [None, StoreFailed("E-STORE-UNREACHABLE", "refused", definite=True)])
def test_the_status_is_told_without_the_store(monkeypatch: pytest.MonkeyPatch, failed: StoreFailed | None) -> None:
    """G1, G3: it says which nodes and shards there are, and that it does not know the coverage."""
    monkeypatch.setattr("node.admin.server.STORE_LOOK_S", 0.05)

    async def scene(console: Console) -> None:
        console.engine.world.submit = lambda _request, done: done(failed) if failed else None
        status = await console.ask(p.GetClusterStatus())
        assert isinstance(status, p.ClusterStatus)
        assert status.shards.allocated == SHARD_COUNT
        assert (status.coverage.ratio, status.coverage.unknown_sites) == (None, None)
        assert [warned.code for warned in console.replies[-1][1].warnings] == ["E-STORE"]

    played(scene)


@pytest.mark.parametrize("gone", [True, False])
def test_check_e9_a_node_that_has_gone_when_it_is_told_to_stop_has_stopped(gone: bool) -> None:
    """Its drain was under way, and ended before it could answer; one that is a member still may have heard it."""

    async def scene(console: Console) -> None:
        engine = console.engine

        def asked(to: Any, message: Any, timeout_ms: int, done: Callable[[Any], None]) -> None:
            if gone:
                engine.view = ClusterView(ME, members={"n1": engine.view.members["n1"]})
            done(Failed(Failure.TIMEOUT, ""))

        engine.ask = asked  # type: ignore[method-assign]
        found = await console.ask(p.StopNode(node="n2", drain=True))
        if gone:
            assert found == p.Done(changed=False, message="n2 has stopped already")
        else:
            assert (found.code, found.exit) == ("E-NO-ANSWER", 9)

    played(scene)


def test_uneven_load_is_no_second_owner() -> None:
    uneven = p.ShardFault(kind="imbalance", shard=-1, detail="n1 2, n2 0: 1 moves would even it out", repair="")
    orphan = p.ShardFault(kind="orphan", shard=3, detail="its owner n3@1 is gone", repair="")

    def results(*faults: p.ShardFault) -> list[tuple[str, str]]:
        found = shard_rows(p.ShardCheck(ok=False, faults=faults, balance="even"))
        return [(row.check, row.result) for row in found]

    assert results(uneven) == [("I5 one owner", "ok"), ("shards balanced", "fail")]
    assert results(orphan) == [("I5 one owner", "fail"), ("shards balanced", "ok")]


def test_balance_is_told_once_and_of_nothing_that_nobody_knows() -> None:
    due = "not yet: 64 moves would even it out; the coordinator evens it out in 6 s"
    told = [shard_rows(p.ShardCheck(ok=True, faults=(), balance=balance)) for balance in ("even", due, None)]
    assert [[(row.result, row.detail) for row in rows[1:]] for rows in told] == [[("ok", "even")], [("ok", due)], []]


def test_views_that_were_not_all_looked_at_are_not_said_to_agree() -> None:
    details = [
        shard_rows(p.ShardCheck(ok=True, faults=(), unchecked=unchecked))[0].detail
        for unchecked in ((), ("n3@1 did not answer",))
    ]
    assert details == ["all four views agree", "what was checked agrees"]


def test_p47_a_list_without_one_node_has_the_others_rows_and_names_it() -> None:
    async def scene(console: Console) -> None:
        found = await console.ask(p.GetShards())  # n2 does not answer
        assert len(found.items) == SHARD_COUNT
        assert [missing.node for missing in console.replies[-1][1].missing] == ["n1", "n2"]

    played(scene)
