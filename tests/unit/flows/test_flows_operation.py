"""Operations: drains that end when their node has left, plans that end when the coordinator says how."""

from __future__ import annotations

from typing import Any

import pytest
from flows_world import World

from node.actors.actor import Failed
from node.core import limits
from node.core.clock import SECOND
from node.core.ids import EntityRef
from node.core.limits import drain_blockers_named_max
from node.engine.drain import ALL
from node.flows.drain_outcome import left_on, waiting
from node.flows.messages import (
    BeginDrain,
    CancelDrain,
    CancelOperation,
    DrainCancelled,
    DrainProgress,
    GetOperation,
    OperationStatus,
    Phase,
    Recorded,
    StartOperation,
)
from node.flows.operation import PLAN_TIMEOUT_MS, POLL_MS
from node.sharding.book import Plan, PlannedMove
from node.sharding.requests import Cancel, Declined, GetPlans, PlanView, PlanViews
from node.store.port import ListStates, StatePage

DRAIN = StartOperation("drain", "n2", 1)
MOVE = StartOperation("move", plan="p-1", target="shard/17")
STEPS = [step.value for step in ALL]


@pytest.fixture
def world() -> World:
    return World()


def start(world: World, order: StartOperation) -> OperationStatus:
    status = world.ask("operation", "op-1", order)
    assert isinstance(status, OperationStatus), status
    return status


def status(world: World) -> OperationStatus:
    found = world.ask("operation", "op-1", GetOperation())
    assert isinstance(found, OperationStatus)
    return found


def progress(world: World, *phases: tuple[str, str], moved: int = 3, lost: int = 0) -> None:
    rows = tuple(Phase(name, state) for name, state in phases)
    world.system.tell(EntityRef("operation", "op-1"), DrainProgress(rows, moved, lost))
    world.run()


# ---- drain


def test_a_drain_is_done_when_its_node_has_left(world: World) -> None:
    begun = start(world, DRAIN)
    assert (begun.state, begun.target) == ("running", "n2")
    world.advance(POLL_MS)
    assert ("n2", BeginDrain("op-1", 1)) in world.to_nodes(BeginDrain)
    progress(world, ("shards", "running"), ("flush", "waiting"))
    progress(world, ("shards", "done"), ("leave", "running"))
    world.cluster.members.discard(("n2", 1))
    world.advance(POLL_MS)
    found = status(world)
    assert (found.state, found.result) == ("done", {"shards_moved": 3, "messages_lost": 0})
    assert [phase.state for phase in found.phases] == ["done", "done"]
    assert found.ended_ms >= found.started_ms


@pytest.mark.parametrize("number", range(1, 10))
@pytest.mark.parametrize("how", ["keep-majority", ""])
def test_p3_a_drain_whose_node_died_says_at_which_phase_by_whichever_operation_owner(
    world: World, number: int, how: str
) -> None:
    start(world, DRAIN)
    states = ["done"] * (number - 1) + ["running"] + ["waiting"] * (9 - number)
    progress(world, *zip(STEPS, states, strict=True))
    world.restart()  # the owner of the operation dies with it, too
    world.cluster.members.discard(("n2", 1))
    world.cluster.ended = how
    world.advance(POLL_MS)
    found = status(world)
    if number == len(STEPS) and not how:
        assert found.state == "done", "it had flushed, and nobody knows that it was put out"
        return
    assert (found.state, found.result["interrupted_at"], found.result["phase"]) == ("failed", STEPS[number - 1], number)
    assert [p.state for p in found.phases] == ["done"] * (number - 1) + ["interrupted"] + ["waiting"] * (9 - number)
    assert found.result.get("cause", "") == how
    unknown = number < len(STEPS)  # one that leaves has told everything
    assert (found.result["messages_lost"] is None) == unknown


def test_a_drain_whose_node_was_never_heard_of_it_failed_at_the_start(world: World) -> None:
    start(world, DRAIN)
    world.cluster.members.discard(("n2", 1))
    world.cluster.members.add(("n2", 2))
    world.advance(POLL_MS)
    assert (status(world).state, status(world).result["interrupted_at"]) == ("failed", "reach")


def test_a_phase_that_overran_makes_the_drain_fail_although_the_node_left(world: World) -> None:
    start(world, DRAIN)
    progress(world, ("shards", "overran"), ("leave", "running"), lost=2)
    world.cluster.members.discard(("n2", 1))
    world.advance(POLL_MS)
    assert (status(world).state, status(world).result["messages_lost"]) == ("failed", 2)


def test_a_skipped_phase_makes_it_fail_too(world: World) -> None:
    start(world, DRAIN)
    progress(world, ("shards", "skipped"), ("leave", "running"))
    world.cluster.members.discard(("n2", 1))
    world.advance(POLL_MS)
    assert status(world).state == "failed"


def test_progress_is_acknowledged_when_it_is_durable_and_a_late_report_changes_nothing(world: World) -> None:
    start(world, DRAIN)
    newer = DrainProgress((Phase("shards", "done"), Phase("asks", "running")), 3, 0, sequence=2)
    older = DrainProgress((Phase("shards", "running"), Phase("asks", "waiting")), 1, 0, sequence=1)
    before = world.writes
    assert world.ask("operation", "op-1", newer) == Recorded(2)
    assert world.writes == before + 1
    assert world.ask("operation", "op-1", older) == Recorded(1)
    assert [p.state for p in status(world).phases] == ["done", "running"]


def test_o2_a_drain_of_a_node_out_of_reach_waits_and_says_why(world: World) -> None:
    world.cluster.away.add("n2")
    start(world, DRAIN)
    world.advance(3 * POLL_MS)
    found = status(world)
    assert (found.state, found.phases[0].name) == ("running", "reach")
    assert "n2" in found.phases[0].blockers[0]
    writes = world.writes
    world.advance(10 * POLL_MS)
    assert world.writes == writes, "waiting is not written again and again"
    world.cluster.away.clear()
    world.advance(POLL_MS)
    assert status(world).phases == ()
    progress(world, ("readiness", "running"))
    assert [p.name for p in status(world).phases] == ["readiness"]


def cancel(world: World, answer: DrainCancelled | None) -> object:
    outcomes: list[object] = []
    world.system.ask(EntityRef("operation", "op-1"), CancelOperation(), 5_000, outcomes.append)
    world.run()
    assert world.to_nodes(CancelDrain) == [("n2", CancelDrain(1))]
    if answer is None:
        world.advance(3_000)
    else:
        world.answer(answer)
    assert len(outcomes) == 1
    return outcomes[0]


def test_a_cancelled_drain_stays_where_it_was(world: World) -> None:
    start(world, DRAIN)
    progress(world, ("readiness", "done"), ("shards", "running"), ("asks", "waiting"))
    found = cancel(world, DrainCancelled())
    assert isinstance(found, OperationStatus)
    assert found == status(world)
    assert (found.state, [p.state for p in found.phases]) == ("cancelled", ["done", "cancelled", "waiting"])
    assert found.result["shards_moved"] == 3
    world.restart()
    world.advance(10 * POLL_MS)
    assert world.to_nodes(BeginDrain) == []
    assert world.ask("operation", "op-1", CancelOperation()) == status(world), "asking twice is no mistake"


@pytest.mark.parametrize(("answer", "word"), [(DrainCancelled("it has begun to flush"), "flush"), (None, "try again")])
def test_a_drain_that_can_not_be_cancelled_goes_on(world: World, answer: DrainCancelled | None, word: str) -> None:
    start(world, DRAIN)
    progress(world, ("flush", "running"))
    found = cancel(world, answer)
    assert isinstance(found, Failed)
    assert word in found.detail
    assert status(world).state == "running"


def test_progress_that_says_nothing_new_writes_nothing(world: World) -> None:
    start(world, DRAIN)
    progress(world, ("shards", "running"))
    before = world.writes
    for _ in range(5):
        progress(world, ("shards", "running"))
    assert world.writes == before


def test_a_drain_goes_on_under_another_owner_and_ends_once(world: World) -> None:
    start(world, DRAIN)
    progress(world, ("flush", "done"), ("leave", "running"))
    world.restart()
    world.advance(POLL_MS)
    assert world.to_nodes(BeginDrain), "the node is asked again; it drains once"
    world.cluster.members.discard(("n2", 1))
    world.advance(POLL_MS)
    ended = status(world)
    assert ended.state == "done"
    progress(world, ("readiness", "running"))
    world.restart()
    world.advance(10 * POLL_MS)
    assert status(world) == ended
    assert not world.to_nodes(BeginDrain)


# ---- plans


def seen(state: str, moved: tuple[int, ...] = (), moving: tuple[int, ...] = (), **more: Any) -> PlanViews:
    """The coordinator's view of a plan of three moves."""
    moves = tuple(PlannedMove(shard, "n1", "n2", 4) for shard in (17, 18, 19))
    plan = Plan("p-1", "move", "shard/17", 7, moves, state=state, dropped=more.pop("dropped", ()))
    waiting = tuple(s for s in (17, 18, 19) if s not in (*moved, *moving))
    return PlanViews((PlanView(plan, moved, moving, waiting, **more),))


def test_a_plan_is_over_when_the_coordinator_says_so(world: World) -> None:
    begun = start(world, MOVE)
    assert (begun.verb, begun.target) == ("move", "shard/17")
    world.advance(POLL_MS)
    assert world.to_nodes(GetPlans) == [("n1", GetPlans("p-1"))]
    world.advance(5 * POLL_MS)
    assert len(world.to_nodes(GetPlans)) == 1, "asked once while the answer is awaited"
    world.answer(seen("running", (17,), (18,), blockers=("shard 18: n1@1 has not acknowledged the hand-off",)))
    (phase,) = status(world).phases
    assert (phase.state, phase.detail) == ("running", "1/3 moved, 1 moving, 1 waiting")
    assert "n1@1" in phase.blockers[0]
    world.advance(POLL_MS)
    world.answer(seen("done", (17, 18, 19)))
    assert (status(world).state, status(world).result) == ("done", {"shards_moved": 3})


def test_a_plan_that_left_something_behind_fails_and_says_why(world: World) -> None:
    start(world, MOVE)
    world.advance(POLL_MS)
    world.answer(seen("failed", (17,), dropped=((18, "n2 is cordoned"), (19, "n2 is cordoned"))))
    result = {"shards_moved": 1, "shards_dropped": 2, "dropped_because": "n2 is cordoned"}
    assert (status(world).state, status(world).result) == ("failed", result)


@pytest.mark.parametrize("answer", [Declined("not_coordinator"), Declined("coordinator_lost"), None])
def test_p50_a_plan_is_asked_of_the_next_coordinator(world: World, answer: Declined | None) -> None:
    """P50: who coordinates now knows how far it is; a lost answer is asked for again."""
    start(world, MOVE)
    world.advance(POLL_MS)
    world.cluster.coordinator = None
    if answer is None:
        world.advance(PLAN_TIMEOUT_MS)
    else:
        world.answer(answer)
    world.advance(10 * POLL_MS)
    assert status(world).state == "running"
    world.cluster.coordinator = "n2"
    world.advance(POLL_MS)
    assert [node for node, _ in world.to_nodes(GetPlans)] == ["n1", "n2"]
    world.answer(seen("done", (17, 18, 19)))
    assert status(world).state == "done"


@pytest.mark.parametrize(("coordinator", "words"), [("n1", "node/n1: coordinates"), (None, "no node coordinates")])
def test_check_v9_a_plan_says_that_nobody_carries_it_on_and_forgets_nothing(
    world: World, coordinator: str | None, words: str
) -> None:
    start(world, MOVE)
    world.advance(POLL_MS)
    world.answer(seen("running", (17,), (18,)))
    world.cluster.coordinator = coordinator
    world.cluster.away.add("n1")
    world.advance(POLL_MS)
    found = status(world)
    assert (found.state, found.result, found.phases[0].detail) == (
        "running",
        {"shards_moved": 1},
        "1/3 moved, 1 moving, 1 waiting",
    )
    assert [text.startswith(words) for text in found.phases[0].blockers] == [True]
    if coordinator is not None:
        world.advance(PLAN_TIMEOUT_MS)  # it was asked all the same
    world.cluster.coordinator = "n2"
    world.advance(POLL_MS)
    world.answer(seen("running", (17, 18), (19,)))
    assert status(world).phases[0].blockers == ()


def test_shards_left_on_a_silent_node_are_named_and_the_rest_counted() -> None:
    phases = (Phase("readiness", "done"), Phase("shards", "interrupted", 0, "", ("2 shards are still here",)))
    few = left_on("n2", phases, [3, 5])
    assert few == (phases[0], Phase("shards", "interrupted", blockers=tuple(map(placed, (3, 5)))))
    many = left_on("n2", phases, range(drain_blockers_named_max + 2))[1].blockers
    assert (many[0], many[-1], len(many)) == (placed(0), "and 2 more", drain_blockers_named_max + 1)


@pytest.mark.parametrize(
    ("state", "held"), [("running", ("node/n2: does not answer; no shard is placed on it",)), ("interrupted", ())]
)
def test_what_a_silent_node_said_last_is_not_repeated_once_no_shard_is_placed_on_it(
    state: str, held: tuple[str, ...]
) -> None:
    before = Phase("ingestion", "overran", 0, "", ("1 classifications run",))
    last_words = ("entity/campaign/c-1: stops, its shard 7 stops", "1 shards are still here")
    found = left_on("n2", (before, Phase("shards", state, 0, "", last_words)), [])
    assert found == (before, Phase("shards", state, blockers=held)), "what an earlier phase left behind stays on record"
    reach = waiting("n2", (), reachable=False)
    assert left_on("n2", reach, []) == reach, "that says itself what it waits for"


def placed(shard: int) -> str:
    return f"shard/{shard}: is placed on n2, which does not answer"


def test_a_forgotten_plan_fails(world: World) -> None:
    start(world, MOVE)
    world.advance(POLL_MS)
    world.answer(Declined("no_such_plan", "p-1"))
    assert status(world).state == "failed"


def test_a_plan_is_cancelled_by_the_coordinator_and_ends_when_it_has(world: World) -> None:
    start(world, MOVE)
    world.advance(POLL_MS)
    world.answer(seen("running", (17,), (18,)))
    outcomes: list[object] = []
    world.system.ask(EntityRef("operation", "op-1"), CancelOperation(), 5_000, outcomes.append)
    world.run()
    assert world.to_nodes(Cancel) == [("n1", Cancel("p-1"))]
    world.answer(seen("cancelling", (17,), (18,)).items[0])
    assert isinstance(outcomes[0], OperationStatus)
    assert status(world).state == "running", "what moves ends first"
    world.advance(POLL_MS)
    world.answer(seen("cancelled", (17, 18), dropped=((19, "cancelled"),)))
    assert (status(world).state, status(world).result["shards_moved"]) == ("cancelled", 2)


def test_a_plan_that_can_not_be_cancelled_says_so(world: World) -> None:
    start(world, MOVE)
    outcomes: list[object] = []
    for coordinator, answer in ((None, None), ("n1", Declined("store_failed"))):
        world.cluster.coordinator = coordinator
        world.system.ask(EntityRef("operation", "op-1"), CancelOperation(), 5_000, outcomes.append)
        world.run()
        if answer is not None:
            world.answer(answer)
    assert [type(outcome) for outcome in outcomes] == [Failed, Failed]


def test_the_same_id_again_changes_nothing_and_an_unknown_one_does_not_exist(world: World) -> None:
    first = start(world, MOVE)
    assert start(world, DRAIN) == first
    found = world.ask("operation", "op-none", GetOperation())
    assert isinstance(found, Failed)
    world.advance(100)
    assert world.system.cells_by_kind() == {"operation": 1}


# ---- what is kept of them


@pytest.mark.parametrize(("days", "kept"), [(29, True), (31, False)])
def test_p72_an_operation_that_ended_long_ago_is_deleted_when_it_starts_and_a_running_one_never(
    world: World, days: int, kept: bool
) -> None:
    start(world, DRAIN)
    world.ask("operation", "op-2", StartOperation("drain", "n9", 1))  # no member, so it ends at once
    world.advance(POLL_MS)
    assert world.ask("operation", "op-2", GetOperation()).ended_ms > 0
    world.system = None  # type: ignore[assignment]  # nobody runs, and time passes
    world.clock.advance_ns(days * 86_400 * SECOND)
    world.restart()
    world.advance(1_000)
    page = world.store.apply([ListStates(("operation",), bodies=False)])[0]
    assert isinstance(page, StatePage)
    assert [record.id for record in page.records] == ["op-1", *(["op-2"] if kept else [])]
    assert status(world).state == "running"


# ---- rolling restart


def test_a_restart_ordered_while_the_cluster_is_not_whole_waits_for_it_from_its_start(world: World) -> None:
    """Not since 1970: it failed at once when the first look found shards on their way."""
    world.cluster.unplaced = "3 shards are on their way"
    start(world, StartOperation("restart", nodes=(("n2", 1),)))
    world.advance(limits.roll_settle_ms_max - 2 * POLL_MS)
    assert status(world).state == "running"
    world.advance(10 * POLL_MS)
    ended = status(world)
    assert ended.state == "failed"
    assert "3 shards are on their way" in ended.result["reason"]
