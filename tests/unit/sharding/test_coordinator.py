"""Goal: what the coordinator does with each answer of the store, and that nobody hears of rows that aren't durable.

Method: a coordinator alone, whose store calls the test answers by hand.
"""

from __future__ import annotations

import random

import pytest

from node.core.clock import MS
from node.core.faultpoints import POINTS
from node.core.ids import EntityRef, NodeId
from node.sharding import effects as fx
from node.sharding.coordinator import LEASE, Coordinator
from node.sharding.messages import (
    BeginHandOff,
    CoordinatorLost,
    DrainWanted,
    HandOffDone,
    Homes,
    HomesWanted,
    PlacementVersion,
    Receipt,
    ShardMoved,
)
from node.sharding.nodes import EntityNode, EntityNodes, ShardingSettings
from node.store import port
from node.wire.codec import Codec
from node.wire.envelope import Envelope, Kind, encode
from node.wire.registry import REGISTRY

A, B = NodeId("a", 1), NodeId("b", 1)
NODES = EntityNodes((EntityNode(A), EntityNode(B)), coordinator=A)
SETTINGS = ShardingSettings(shard_count=8, moves_ratio=1.0, moves_at_once=2, lease_ms=3_000)


class Bench:
    """A coordinator with the calls that it waits for."""

    def __init__(self) -> None:
        self.c = Coordinator(A, SETTINGS, random.Random(1))
        self.calls: list[fx.StoreCall] = []
        self.reached: list[str] = []
        self.now = 0

    def step(self, event: fx.CoordinatorEvent, after_ms: int = 0) -> list[fx.Effect]:
        self.now += after_ms * MS
        out = self.c.step(event, self.now)
        self.c.validate()
        self.calls += [e for e in out if isinstance(e, fx.StoreCall)]
        self.reached += [e.point for e in out if isinstance(e, fx.Reached)]
        return [e for e in out if not isinstance(e, fx.StoreCall | fx.Reached)]

    def answer(self, answer: port.Answer, after_ms: int = 0) -> list[fx.Effect]:
        return self.step(fx.StoreAnswered(self.calls.pop(0).tag, answer), after_ms)

    def wanted(self) -> port.Request:
        return self.calls[0].request

    def written(self) -> list[fx.Effect]:
        request = self.wanted()
        assert isinstance(request, port.WritePlacement)
        return self.answer(port.PlacementWritten(request.version + 1))


def rows(*owners: NodeId, state: port.ShardState = port.ShardState.RUNNING) -> tuple[port.ShardRow, ...]:
    return tuple(port.ShardRow(s, o.name, o.incarnation, 3, state) for s, o in enumerate(owners))


def reading() -> Bench:
    bench = Bench()
    bench.step(fx.NodesChanged(NODES))
    assert bench.wanted() == port.AcquireLease(LEASE, "a@1", 3_000)
    bench.answer(port.LeaseGranted(4, 3_000))
    assert bench.wanted() == port.ReadPlacement()
    return bench


def acting(*owners: NodeId) -> Bench:
    bench = reading()
    bench.answer(port.Placement(9, rows(*(owners or (A, B) * 4))))
    assert bench.calls == []
    return bench


def test_rows_are_told_only_once_they_are_durable() -> None:
    bench = reading()
    assert bench.answer(port.Placement(0, tuple(port.ShardRow(s) for s in range(8)))) == [
        fx.Broadcast(Homes(0, 0, 4, tuple(port.ShardRow(s) for s in range(8))))
    ]
    request = bench.wanted()
    assert isinstance(request, port.WritePlacement)
    assert (request.lease, request.holder, request.term, request.version) == (LEASE, "a@1", 4, 0)
    assert {r.shard: r.epoch for r in request.rows} == dict.fromkeys(range(8), 1)
    waiting = bench.step(fx.Tick()) + bench.step(fx.Received(B, HomesWanted(0)))
    assert waiting == [fx.Broadcast(PlacementVersion(0, 4))]
    told = bench.written()
    assert told[0] == fx.Broadcast(Homes(1, 0, 4, request.rows))


def test_a_move_is_marked_asked_and_placed_in_that_order() -> None:
    bench = acting()
    assert bench.step(fx.MoveRequested(1, "a", tag=5)) == []
    marked = bench.wanted()
    assert isinstance(marked, port.WritePlacement)
    assert [(r.shard, r.node, r.epoch, r.state) for r in marked.rows] == [(1, "b", 3, port.ShardState.MOVING)]
    assert bench.written() == [
        fx.Broadcast(Homes(10, 9, 4, marked.rows)),
        fx.Send("b", BeginHandOff(1, 3)),
    ]
    assert bench.calls == []
    receipt = Receipt(arrived=2, handled=2, entities=1)
    assert bench.step(fx.Received(B, HandOffDone(1, 3, receipt))) == []
    placed = bench.wanted()
    assert isinstance(placed, port.WritePlacement)
    assert [(r.node, r.incarnation, r.epoch, r.state) for r in placed.rows] == [("a", 1, 4, port.ShardState.RUNNING)]
    assert bench.written() == [
        fx.Broadcast(Homes(11, 10, 4, placed.rows)),
        fx.Note(ShardMoved(1, "b@1", "a@1", 4, "operator")),
        fx.Reply(5, fx.MoveDone(1, A, 4, receipt)),
    ]
    steps = ["marked", "stop_sent", "acknowledged", "epoch_issued", "started"]
    assert bench.reached == [f"handoff.{step}" for step in steps]
    assert set(bench.reached) <= set(POINTS)
    assert bench.c.status().causes == ((1, "operator"),)


def test_a_receipt_of_another_owner_or_epoch_is_counted_only() -> None:
    bench = acting()
    bench.step(fx.MoveRequested(1, "a", tag=5))
    bench.written()
    for sender, epoch in ((A, 3), (B, 2), (NodeId("b", 2), 3)):
        bench.step(fx.Received(sender, HandOffDone(1, epoch, Receipt())))
    assert bench.calls == []
    assert bench.c.status().receipts_late == 3


def test_a_lost_request_is_repeated_then_retried_then_forced() -> None:
    bench = acting()
    bench.step(fx.MoveRequested(1, "a", tag=5))
    bench.written()
    asked = 0
    for _ in range(320):  # 32 s: the lease is renewed meanwhile
        out = bench.step(fx.Tick(), after_ms=100)
        asked += sum(isinstance(e, fx.Send) for e in out)
        while bench.calls and isinstance(bench.wanted(), port.AcquireLease):
            bench.answer(port.LeaseGranted(4, 3_000))
        if bench.calls:
            break
    assert asked == 7 + 1 + 7  # every 2 s of 15 s, the retry, and again
    assert isinstance(bench.wanted(), port.WritePlacement)
    assert fx.Note(ShardMoved(1, "b@1", "a@1", 4, "forced")) in bench.written()


@pytest.mark.parametrize(
    ("answer", "then"),
    [
        (port.Conflict(12), port.ReadPlacement),
        (port.StoreFailed("E", "may have been written", definite=False), port.ReadPlacement),
        (port.StoreFailed("E", "was not written", definite=True), port.WritePlacement),
    ],
)
def test_a_write_that_failed_is_read_again_where_it_may_have_happened(answer: port.Answer, then: type) -> None:
    bench = acting()
    bench.step(fx.MoveRequested(1, "a", tag=5))
    bench.answer(answer)
    bench.step(fx.Tick(), after_ms=500)
    assert [type(c.request) for c in bench.calls] == [then]


def test_a_superseded_move_is_answered_after_a_conflict() -> None:
    bench = acting()
    bench.step(fx.MoveRequested(1, "a", tag=5))
    bench.answer(port.Conflict(12))
    present = list(rows(*(A, B) * 4))
    present[1] = port.ShardRow(1, "b", 1, 7, port.ShardState.RUNNING)
    out = bench.answer(port.Placement(12, tuple(present)))
    assert out[1:] == [fx.Reply(5, fx.Refused("superseded", "b@1"))]
    assert bench.c.status().moves == ()


def test_a_fenced_write_ends_the_tenure_at_once() -> None:
    bench = acting()
    bench.step(fx.MoveRequested(1, "a", tag=5))
    out = bench.answer(port.Fenced(5))
    assert out == [fx.Reply(5, fx.Refused("coordinator_lost", "fenced")), fx.Note(CoordinatorLost("a@1", 4, "fenced"))]
    assert not bench.c.status().active
    assert bench.step(fx.Received(B, HomesWanted(0))) == []


def test_the_lease_ends_counted_from_before_it_was_asked_for() -> None:
    bench = Bench()
    bench.step(fx.NodesChanged(NODES))
    bench.answer(port.LeaseGranted(4, 3_000), after_ms=2_000)
    assert isinstance(bench.calls.pop(0).request, port.AcquireLease)  # the renewal, which nobody answers
    bench.answer(port.Placement(9, rows(*(A, B) * 4)), after_ms=900)
    assert bench.c.status().active
    bench.step(fx.Tick(), after_ms=99)
    assert bench.c.status().active
    assert fx.Note(CoordinatorLost("a@1", 4, "expired")) in bench.step(fx.MoveRequested(1, "a", 5), after_ms=1)
    assert not bench.c.status().active


def test_an_answer_that_comes_after_the_end_finds_nobody() -> None:
    bench = acting()
    bench.step(fx.MoveRequested(1, "a", tag=5))
    write = bench.calls.pop(0)
    bench.step(fx.Tick(), after_ms=3_000)
    assert bench.step(fx.StoreAnswered(write.tag, port.PlacementWritten(10))) == []


def test_an_answer_for_a_former_tenure_is_not_taken_for_the_present_one() -> None:
    bench = acting()
    bench.step(fx.MoveRequested(1, "a", tag=5))
    write = bench.calls.pop(0)
    bench.step(fx.Tick(), after_ms=3_000)
    bench.answer(port.LeaseGranted(5, 3_000))
    assert bench.wanted() == port.ReadPlacement()
    bench.step(fx.StoreAnswered(write.tag, port.PlacementWritten(10)))
    assert not bench.c.status().active
    assert [type(c.request) for c in bench.calls] == [port.ReadPlacement]


def test_a_successor_asks_the_owner_of_a_moving_shard_and_gives_it_to_another() -> None:
    bench = reading()
    table = list(rows(A, A, A, A, A, A, B, B))
    table[6] = port.ShardRow(6, "b", 1, 3, port.ShardState.MOVING)
    assert bench.answer(port.Placement(9, tuple(table)))[1:] == [fx.Send("b", BeginHandOff(6, 3))]
    bench.step(fx.Received(B, HandOffDone(6, 3, Receipt())))
    request = bench.wanted()
    assert isinstance(request, port.WritePlacement)
    assert [(r.shard, r.node, r.epoch) for r in request.rows] == [(6, "a", 4)], "though b has fewer"


def test_a_successor_does_not_wait_for_a_moving_shards_owner_that_is_gone() -> None:
    bench = reading()
    table = list(rows(*(A, B) * 4))
    table[6] = port.ShardRow(6, "z", 1, 3, port.ShardState.MOVING)
    bench.answer(port.Placement(9, tuple(table)))
    request = bench.wanted()
    assert isinstance(request, port.WritePlacement)
    assert [(r.shard, r.epoch, r.state) for r in request.rows] == [(6, 4, port.ShardState.RUNNING)]


@pytest.mark.parametrize(
    ("nodes", "moves"),
    [
        ((EntityNode(A), EntityNode(B)), 2),
        ((EntityNode(A), EntityNode(B), EntityNode(NodeId("c", 1), reachable=False)), 0),
        ((EntityNode(A), EntityNode(B), EntityNode(NodeId("c", 1), leaving=True)), 0),
    ],
)
def test_load_is_evened_out_only_while_nothing_else_is_the_matter(nodes: tuple[EntityNode, ...], moves: int) -> None:
    bench = acting(*(A,) * 8)
    bench.step(fx.NodesChanged(EntityNodes(nodes, A)))
    for _ in range(110):
        bench.step(fx.Tick(), after_ms=100)
        while bench.calls and isinstance(bench.wanted(), port.AcquireLease):
            bench.answer(port.LeaseGranted(4, 3_000))
    written = [c.request.rows for c in bench.calls if isinstance(c.request, port.WritePlacement)]
    assert sum(len(r) for r in written) == moves


def test_operators_moves_wait_for_their_turn() -> None:
    bench = acting(*(B,) * 8)
    for shard in range(5):
        bench.step(fx.MoveRequested(shard, "a", tag=shard))
    bench.written()  # the first was marked at once
    second = bench.wanted()
    assert isinstance(second, port.WritePlacement)
    assert len(second.rows) == 1  # two at a time
    bench.written()
    assert bench.calls == []
    assert sorted(m.state for m in bench.c.status().moves) == ["asked", "asked", "planned", "planned", "planned"]


def test_an_owner_that_is_removed_in_a_hand_off_is_not_waited_for() -> None:
    bench = acting()
    bench.step(fx.MoveRequested(1, "a", tag=5))
    bench.written()
    bench.step(fx.NodesChanged(EntityNodes((EntityNode(A),), A)))
    request = bench.wanted()
    assert isinstance(request, port.WritePlacement)
    assert {r.shard for r in request.rows} == {1, 3, 5, 7}


def test_a_drained_node_that_restarts_is_drained_no_more() -> None:
    bench = acting()
    bench.step(fx.Received(B, DrainWanted(True)))
    assert bench.c.status().draining == (("b@1", 4),)
    bench.step(fx.NodesChanged(EntityNodes((EntityNode(A), EntityNode(NodeId("b", 2))), A)))
    assert bench.c.status().draining == ()


def test_stepping_down_gives_the_lease_back_and_stays_down_until_another_was_oldest() -> None:
    bench = acting()
    bench.step(fx.Stepdown())
    assert bench.wanted() == port.ReleaseLease(LEASE, "a@1", 4)
    bench.calls.clear()
    bench.step(fx.Tick(), after_ms=5_000)
    assert bench.calls == []
    bench.step(fx.NodesChanged(EntityNodes(NODES.nodes, B)))
    bench.step(fx.NodesChanged(NODES))
    assert isinstance(bench.wanted(), port.AcquireLease)


def test_a_lease_that_another_holds_is_asked_for_again_before_it_ends() -> None:
    bench = Bench()
    bench.step(fx.NodesChanged(NODES))
    bench.answer(port.LeaseHeld("b@1", 3, 2_500))
    assert bench.c.status().held_by == "b@1"
    bench.step(fx.Tick(), after_ms=1_000)
    assert bench.calls == []
    bench.step(fx.Tick(), after_ms=60)
    assert isinstance(bench.wanted(), port.AcquireLease)


def test_a_cancelled_drain_lets_finish_what_had_begun_and_starts_no_more() -> None:
    bench = acting()
    bench.step(fx.Received(B, DrainWanted(True)))
    bench.written()
    assert bench.c.status().draining == (("b@1", 4),)
    assert len(bench.c.status().moves) == 2
    bench.step(fx.Received(B, DrainWanted(False)))
    assert bench.c.status().draining == ()
    for move in bench.c.status().moves:
        bench.step(fx.Received(B, HandOffDone(move.shard, 3, Receipt())))
    while bench.calls:
        bench.written()
    assert bench.c.status().moves == ()


@pytest.mark.parametrize(
    ("shard", "to", "reason"),
    [(99, "a", "no_such_shard"), (1, "z", "not_a_target"), (0, "a", "already_there")],
)
def test_impossible_moves_are_refused_with_the_reason(shard: int, to: str, reason: str) -> None:
    (reply,) = acting().step(fx.MoveRequested(shard, to, tag=5))
    assert isinstance(reply, fx.Reply)
    assert isinstance(reply.outcome, fx.Refused)
    assert reply.outcome.reason == reason


def test_who_does_not_coordinate_moves_nothing() -> None:
    idle = Bench()
    assert idle.step(fx.MoveRequested(1, "a", tag=4)) == [fx.Reply(4, fx.Refused("not_coordinator"))]


def test_an_unreachable_owner_keeps_its_shards_until_it_is_removed() -> None:
    bench = acting()
    bench.step(fx.NodesChanged(EntityNodes((EntityNode(A), EntityNode(B, reachable=False)), A)))
    assert bench.calls == []
    bench.step(fx.NodesChanged(EntityNodes((EntityNode(A),), A)))
    request = bench.wanted()
    assert isinstance(request, port.WritePlacement)
    assert {(r.shard, r.node, r.epoch) for r in request.rows} == {(s, "a", 4) for s in (1, 3, 5, 7)}


def test_the_whole_table_fits_a_control_frame() -> None:
    """Registered, encodable, and within 64 KiB even when every name is as long as names may be."""
    longest = NodeId("n" * 63, 4_000_000_000)
    table = tuple(
        port.ShardRow(s, longest.name, longest.incarnation, 1 << 40, port.ShardState.MOVING) for s in range(256)
    )
    homes = Homes(1 << 40, 0, 1 << 40, table)
    sent = Envelope(Kind.TELL, EntityRef("site", "x"), longest, homes)
    assert len(encode(sent, Codec(REGISTRY), 0)) < 64 << 10
