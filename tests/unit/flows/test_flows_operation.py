"""Operations: drains that end when their node has left, moves that end when they are durable or refused."""

from __future__ import annotations

import pytest
from flows_world import World

from node.actors.actor import Failed
from node.core.ids import EntityRef
from node.flows.messages import (
    BeginDrain,
    DrainProgress,
    GetOperation,
    MoveOutcome,
    MoveShard,
    OperationStatus,
    Phase,
    StartOperation,
)
from node.flows.operation import LIMIT_MS, MOVE_TIMEOUT_MS, POLL_MS

DRAIN = StartOperation("drain", "n2", 1)
MOVE = StartOperation("move", "n2", shard=17)


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


def test_a_drain_whose_node_died_on_the_way_says_where(world: World) -> None:
    start(world, DRAIN)
    progress(world, ("readiness", "done"), ("shards", "running"), ("leave", "waiting"))
    world.cluster.members.discard(("n2", 1))
    world.advance(POLL_MS)
    found = status(world)
    assert (found.state, found.result["interrupted_at"]) == ("failed", "shards")


def test_a_drain_whose_node_was_never_heard_of_it_failed_at_the_start(world: World) -> None:
    start(world, DRAIN)
    world.cluster.members.discard(("n2", 1))
    world.cluster.members.add(("n2", 2))
    world.advance(POLL_MS)
    assert (status(world).state, status(world).result) == ("failed", {"interrupted_at": "start"})


def test_a_phase_that_overran_makes_the_drain_fail_although_the_node_left(world: World) -> None:
    start(world, DRAIN)
    progress(world, ("shards", "overran"), ("leave", "running"), lost=2)
    world.cluster.members.discard(("n2", 1))
    world.advance(POLL_MS)
    assert (status(world).state, status(world).result["messages_lost"]) == ("failed", 2)


def test_progress_that_says_nothing_new_writes_nothing(world: World) -> None:
    start(world, DRAIN)
    progress(world, ("shards", "running"))
    before = world.writes
    for _ in range(5):
        progress(world, ("shards", "running"))
    assert world.writes == before


def test_a_drain_goes_on_under_another_owner_and_ends_once(world: World) -> None:
    start(world, DRAIN)
    progress(world, ("flush", "running"))
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


# ---- move


def test_a_move_is_done_when_the_coordinator_says_so(world: World) -> None:
    start(world, MOVE)
    world.advance(POLL_MS)
    assert world.to_nodes(MoveShard) == [("n1", MoveShard(17, "n2"))]
    world.advance(5 * POLL_MS)
    assert len(world.to_nodes(MoveShard)) == 1, "asked once while the answer is awaited"
    world.answer(MoveOutcome(True, epoch=9))
    assert (status(world).state, status(world).result) == ("done", {"shards_moved": 1, "epoch": 9})


def test_a_refused_move_fails_with_the_reason(world: World) -> None:
    start(world, MOVE)
    world.advance(POLL_MS)
    world.answer(MoveOutcome(False, reason="not_a_target: n2"))
    assert (status(world).state, status(world).result) == ("failed", {"reason": "not_a_target: n2"})


@pytest.mark.parametrize("reason", ["not_coordinator", "coordinator_lost: its lease ended", "already_moving: stopping"])
def test_a_coordinator_that_is_none_any_more_is_followed_by_the_next(world: World, reason: str) -> None:
    start(world, MOVE)
    world.advance(POLL_MS)
    world.cluster.coordinator = "n2"
    world.answer(MoveOutcome(False, reason=reason))
    world.advance(POLL_MS)
    assert [node for node, _ in world.to_nodes(MoveShard)] == ["n1", "n2"]
    world.answer(MoveOutcome(True, epoch=4))
    assert status(world).state == "done"


def test_a_move_whose_answer_was_lost_is_done_when_the_shard_is_there(world: World) -> None:
    start(world, MOVE)
    world.advance(POLL_MS + MOVE_TIMEOUT_MS + POLL_MS)
    assert len(world.to_nodes(MoveShard)) == 2
    world.answer(MoveOutcome(False, reason="already_there: n2@1"))
    assert status(world).state == "done"


def test_without_a_coordinator_a_move_waits_and_then_fails(world: World) -> None:
    world.cluster.coordinator = None
    start(world, MOVE)
    world.advance(LIMIT_MS - 2_000)
    assert status(world).state == "running"
    world.advance(4_000)
    assert (status(world).state, status(world).result) == ("failed", {"reason": "no coordinator"})


def test_without_an_answer_a_move_fails(world: World) -> None:
    start(world, MOVE)
    world.advance(LIMIT_MS + 2 * MOVE_TIMEOUT_MS)
    assert (status(world).state, status(world).result) == ("failed", {"reason": "no answer"})


def test_the_same_id_again_changes_nothing_and_an_unknown_one_does_not_exist(world: World) -> None:
    first = start(world, MOVE)
    assert start(world, DRAIN) == first
    found = world.ask("operation", "op-none", GetOperation())
    assert isinstance(found, Failed)
    world.advance(100)
    assert world.system.cells_by_kind() == {"operation": 1}
