"""Goal: routing, buffering and stopping of one region, message by message. Method: literal events, one comparison."""

from __future__ import annotations

from node.core import limits
from node.core.clock import MS
from node.core.hashing import shard_of
from node.core.ids import EntityRef, NodeId
from node.sharding import effects as fx
from node.sharding.messages import (
    BeginHandOff,
    DrainWanted,
    HandOffDone,
    HandOffSettled,
    Homes,
    HomesWanted,
    Passed,
    Passing,
    PlacementVersion,
    Receipt,
    ShardFenced,
)
from node.sharding.nodes import EntityNode, EntityNodes, ShardingSettings
from node.sharding.region import Region
from node.store.port import ShardRow, ShardState
from node.wire.envelope import Envelope, Kind

A, B, C = NodeId("a", 1), NodeId("b", 1), NodeId("c", 1)
NODES = EntityNodes((EntityNode(A), EntityNode(B), EntityNode(C)), coordinator=C)
SHARD = shard_of("x")
RUNNING, MOVING = ShardState.RUNNING, ShardState.MOVING


def envelope(n: int = 1, deadline_ns: int = 0) -> Envelope:
    return Envelope(Kind.ASK, EntityRef("site", "x"), A, DrainWanted(False), n, deadline_ns)


def row(node: NodeId, epoch: int, state: ShardState = RUNNING) -> ShardRow:
    return ShardRow(SHARD, node.name, node.incarnation, epoch, state)


def region(*, buffer_messages: int = 100) -> Region:
    made = Region(A, ShardingSettings(buffer_messages=buffer_messages, buffer_ms=1_000))
    made.step(fx.NodesChanged(NODES), 0)
    return made


def learn(r: Region, version: int, *rows: ShardRow, base: int = 0, now: int = 0) -> list[fx.Effect]:
    out = r.step(fx.Received(C, Homes(version, base, 1, rows)), now)
    r.validate()
    return out


def test_known_homes_are_delivered_here_or_forwarded() -> None:
    r = region()
    assert learn(r, 1, row(A, 1)) == [fx.StartShard(SHARD, 1)]
    e = envelope()
    assert r.route(e, 0) == [fx.Deliver(e)]
    other = region()
    learn(other, 1, row(B, 1))
    assert other.route(e, 0) == [fx.Forward("b", e, 0, epoch=1)]
    assert other.complete()
    assert (r.running(), other.running()) == ({SHARD: 1}, {})


def test_an_unknown_home_is_asked_for_and_what_waited_follows_in_order() -> None:
    r = region()
    waiting = [envelope(n) for n in range(3)]
    assert r.route(waiting[0], 0) == [fx.Send("c", HomesWanted(0))]
    assert r.route(waiting[1], 1) == []  # it has just asked
    r.route(waiting[2], 2)
    assert learn(r, 1, row(B, 1)) == [fx.Forward("b", e, 0, epoch=1) for e in waiting]


def test_what_waits_too_long_is_refused_at_the_earlier_of_both_deadlines() -> None:
    r = region()
    slow, quick = envelope(1), envelope(2, deadline_ns=300 * MS)
    r.route(slow, 0)
    r.route(quick, 0)
    assert fx.Refuse(quick, fx.RefuseReason.NO_HOME) in r.step(fx.Tick(), 300 * MS)
    assert not any(isinstance(e, fx.Refuse) for e in r.step(fx.Tick(), 999 * MS))
    assert fx.Refuse(slow, fx.RefuseReason.NO_HOME) in r.step(fx.Tick(), 1_000 * MS)
    assert r.waiting() == 0
    r.validate()


def test_a_full_buffer_refuses_the_newcomer() -> None:
    r = region(buffer_messages=2)
    r.route(envelope(1), 0)
    r.route(envelope(2), 0)
    assert r.route(envelope(3), 0) == [fx.Refuse(envelope(3), fx.RefuseReason.BUFFER_FULL)]
    r.validate()


def test_a_hand_off_bounces_flushes_and_gives_a_receipt() -> None:
    r = region()
    learn(r, 1, row(A, 1))
    ran, unrun, late = envelope(1), envelope(2), envelope(3)
    r.route(ran, 0)
    r.route(unrun, 0)
    assert learn(r, 2, row(A, 1, MOVING), base=1) == [fx.StopShard(SHARD)]
    r.route(late, 0)  # arrives while the shard stops, before the actors give back what was there first
    assert r.step(fx.Received(C, BeginHandOff(SHARD, 1)), 0) == []
    r.bounced(unrun, 0)
    done = HandOffDone(SHARD, 1, Receipt(arrived=2, handled=1, bounced=1, entities=4))
    assert r.step(fx.LocalStopped(SHARD, handled=1, entities=4, arrived=2), 0) == [fx.Send("c", done)]
    assert r.step(fx.Received(C, BeginHandOff(SHARD, 1)), 0) == [fx.Send("c", done)]  # asked again: the same
    settled = fx.Send("c", HandOffSettled(SHARD, 1, forwarded=2, refused=0))
    forwarded = [fx.Forward("b", unrun, 1, epoch=2), fx.Forward("b", late, 0, epoch=2)]
    assert learn(r, 3, row(B, 2), base=2) == [*forwarded, settled]
    assert r.held() == 0


def test_a_hand_off_that_overtakes_the_homes_stops_the_shard_for_good() -> None:
    r = region()
    assert r.step(fx.Received(C, BeginHandOff(SHARD, 5)), 0) == [fx.Send("c", HandOffDone(SHARD, 5, Receipt()))]
    assert learn(r, 9, row(A, 5)) == [], "epoch 5 was given up before it began"
    assert learn(r, 10, row(A, 6)) == [fx.StartShard(SHARD, 6)]
    answer = r.step(fx.Received(C, BeginHandOff(SHARD, 5)), 0)
    assert answer == [fx.Send("c", HandOffDone(SHARD, 5, Receipt()))]
    assert r.running() == {SHARD: 6}, "a late request for a former life stops nothing"


def test_a_late_request_for_a_former_life_does_not_displace_the_present_one() -> None:
    r = region()
    learn(r, 1, row(A, 3))
    r.step(fx.Received(C, BeginHandOff(SHARD, 3)), 0)
    late = r.step(fx.Received(B, BeginHandOff(SHARD, 1)), 0)
    assert late == [fx.Send("b", HandOffDone(SHARD, 1, Receipt()))]
    done = HandOffDone(SHARD, 3, Receipt(entities=1))
    assert r.step(fx.LocalStopped(SHARD, 0, 1), 0) == [fx.Send("c", done)]


def test_receipts_of_two_lives_are_not_mixed_up() -> None:
    r = region()
    for life, epoch in enumerate((1, 2), start=1):
        learn(r, 2 * epoch, row(A, epoch))
        r.route(envelope(), 0)
        r.step(fx.Received(C, BeginHandOff(SHARD, epoch)), 0)
        done = HandOffDone(SHARD, epoch, Receipt(arrived=1, handled=1, entities=life))
        assert r.step(fx.LocalStopped(SHARD, 1, life, arrived=1), 0) == [fx.Send("c", done)]
    never_ran = r.step(fx.Received(C, BeginHandOff(SHARD, 7)), 0)
    assert never_ran == [fx.Send("c", HandOffDone(SHARD, 7, Receipt()))]


def test_old_news_changes_nothing() -> None:
    r = region()
    learn(r, 5, row(A, 3))
    for old in (row(B, 2), row(B, 2, MOVING), row(A, 3)):
        assert learn(r, 4, old, base=3) == []
    assert r.running() == {SHARD: 3}


def test_a_row_for_another_incarnation_starts_nothing() -> None:
    r = region()
    assert learn(r, 1, row(NodeId("a", 2), 1)) == []
    assert r.route(envelope(), 0) != [fx.Deliver(envelope())]
    assert r.waiting() == 1


def test_a_shard_that_comes_back_while_it_stops_starts_afterwards() -> None:
    r = region()
    learn(r, 1, row(A, 1))
    assert learn(r, 2, row(B, 2), base=1) == [fx.StopShard(SHARD)]
    assert learn(r, 3, row(A, 3), base=2) == []
    e = envelope()
    r.route(e, 0)
    assert r.epoch(SHARD) == 1, "flushes of the former life carry its epoch"
    assert r.step(fx.LocalStopped(SHARD, 0, 0), 0) == [fx.StartShard(SHARD, 3), fx.Deliver(e)]
    r.validate()


def test_a_missed_loss_restarts_the_shard_under_the_new_epoch() -> None:
    r = region()
    learn(r, 1, row(A, 1))
    assert learn(r, 3, row(A, 3)) == [fx.StopShard(SHARD)]
    assert r.step(fx.LocalStopped(SHARD, 0, 0), 0) == [fx.StartShard(SHARD, 3)]


def test_a_fenced_write_stops_the_shard_and_asks_for_the_whole_table() -> None:
    r = region()
    learn(r, 7, row(A, 1))
    out = r.step(fx.Fenced(SHARD, 1, 2), 0)
    assert out == [
        fx.Note(ShardFenced(SHARD, "a@1", 1, 2)),
        fx.StopShard(SHARD),
        fx.Send("c", HomesWanted(0)),
    ]
    assert r.counters.fenced == 1
    late = r.step(fx.Fenced(SHARD, 1, 2), 0)
    assert not any(isinstance(e, fx.StopShard) for e in late)
    assert r.step(fx.LocalStopped(SHARD, 0, 0), 0) == [], "it waits for a greater epoch"
    assert learn(r, 8, row(A, 3)) == [fx.StartShard(SHARD, 3)]
    r.step(fx.Fenced(SHARD, 1, 3), 0)
    assert r.running() == {SHARD: 3}, "a refusal of the former life says nothing about this one"


def test_messages_that_regions_pass_to_and_fro_wait_for_news() -> None:
    r = region()
    learn(r, 1, row(B, 1))
    e = envelope()
    assert r.relayed(e, 0, 0) == [fx.Forward("b", e, 1, epoch=1)]
    assert r.relayed(e, limits.region_hops_max, 0) == [fx.Send("c", HomesWanted(1))]
    assert r.step(fx.NodesChanged(NODES), 0) == [], "the same view is no news"
    # What went to b before comes first: a marker behind it says when.
    assert learn(r, 2, row(C, 2), base=1) == [fx.Send("b", Passing(SHARD, 2, "a"))]
    assert r.step(fx.Received(C, Passed(SHARD, 2)), 0) == [fx.Forward("c", e, 1, epoch=2)]


def test_p49_a_marker_follows_what_waits_and_is_answered_where_the_shard_runs() -> None:
    old = region()  # a, which owned it and does not know its next owner yet
    learn(old, 1, row(A, 1))
    learn(old, 2, row(A, 1, MOVING), base=1)
    old.step(fx.LocalStopped(SHARD, 0, 0), 0)
    unrun = envelope(1)
    old.relayed(unrun, 0, 0)
    assert old.step(fx.Received(C, Passing(SHARD, 2, "c")), 0) == []
    out = learn(old, 3, row(B, 2), base=2)
    assert out[:2] == [fx.Forward("b", unrun, 1, epoch=2), fx.Send("b", Passing(SHARD, 2, "c", 1))]

    new = region()  # a again, as the next owner
    assert new.step(fx.Received(B, Passing(SHARD, 1, "c", 1)), 0) == [], "it does not run here yet"
    assert fx.Send("c", Passed(SHARD, 1)) in learn(new, 1, row(A, 1))


def test_p49_what_the_former_owner_passes_on_comes_before_what_was_held_back_for_it() -> None:
    """Seed 20 of four nodes: the next owner had sent to the former one itself, and more while its marker was out."""
    r = region()
    learn(r, 1, row(B, 1))
    first, second, third = envelope(1), envelope(2), envelope(3)
    assert r.route(first, 0) == [fx.Forward("b", first, 0, epoch=1)]
    learn(r, 2, row(B, 1, MOVING), base=1)
    r.route(second, 0)
    assert learn(r, 3, row(A, 2), base=2) == [fx.Send("b", Passing(SHARD, 2, "a"))]
    r.route(third, 0)
    r.relayed(first, 1, 0)
    assert r.waiting() == 3
    out = r.step(fx.Received(B, Passing(SHARD, 2, "a", 1)), 0)
    assert out == [fx.StartShard(SHARD, 2), *(fx.Deliver(each) for each in (first, second, third))]
    r.validate()


def test_p49_order_is_given_up_when_the_former_owner_is_gone_or_silent() -> None:
    for gone in (True, False):
        r = region()
        learn(r, 1, row(B, 1))
        r.route(envelope(1), 0)
        learn(r, 2, row(C, 2), base=1)
        held = envelope(2)
        r.route(held, 0)
        if gone:
            out = r.step(fx.NodesChanged(EntityNodes(tuple(n for n in NODES.nodes if n.node != B), C)), 0)
        else:
            out = [each for _ in range(limits.passage_ticks_max) for each in r.step(fx.Tick(), 0)]
        assert fx.Forward("c", held, 0, epoch=2) in out


def test_a_message_from_who_knows_more_waits_for_the_news() -> None:
    """Sent back by the old row it would come again, and overtake itself."""
    r = region()
    learn(r, 1, row(B, 1))
    e = envelope(1)
    assert not [x for x in r.relayed(e, 1, 0, 2) if isinstance(x, fx.Forward)]
    assert fx.Deliver(e) in learn(r, 2, row(A, 2), base=1)


def test_a_home_that_left_the_cluster_is_waited_for() -> None:
    r = region()
    learn(r, 1, row(B, 1))
    r.step(fx.NodesChanged(EntityNodes((EntityNode(A), EntityNode(C)), C)), 0)
    e = envelope()
    r.route(e, 0)
    assert r.waiting() == 1
    assert learn(r, 2, row(C, 2), base=1) == [fx.Forward("c", e, 0, epoch=2)]


def test_a_gap_in_versions_is_noticed_and_mended_by_the_whole_table() -> None:
    r = region()
    learn(r, 1, row(B, 1))
    out = learn(r, 5, row(B, 1, MOVING), base=4, now=1_000 * MS)
    assert out == [fx.Send("c", HomesWanted(1))]
    assert not r.complete()
    learn(r, 5, row(B, 1, MOVING))
    assert r.complete()
    assert r.step(fx.Received(C, PlacementVersion(6, 1)), 2_000 * MS) == [fx.Send("c", HomesWanted(5))]


def test_nonsense_from_a_peer_is_counted_and_changes_nothing() -> None:
    r = region()
    for message in (Homes(1, 0, 1, (ShardRow(999, "a", 1, 1, RUNNING),)), BeginHandOff(-1, 1)):
        r.step(fx.Received(B, message), 0)
    assert r.counters.stale == 2
    assert r.running() == {}
    r.validate()


def test_a_draining_node_repeats_its_wish() -> None:
    r = region()
    assert r.drain(True, 0) == [fx.Send("c", DrainWanted(True))]
    assert r.drain(True, 1) == []
    assert fx.Send("c", DrainWanted(True)) in r.step(fx.Tick(), 2_000 * MS)
    assert r.drain(False, 3_000 * MS) == [fx.Send("c", DrainWanted(False))]
