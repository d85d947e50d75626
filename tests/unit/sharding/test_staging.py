"""What a plan says before anything moves: staging as a pure function of hand-made situations."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import msgspec
import pytest

from node.core.ids import NodeId
from node.sharding.book import Book, Cordon, Pin, Plan, entry_of
from node.sharding.nodes import EntityNode, EntityNodes, ShardingSettings
from node.sharding.requests import Declined, Stage
from node.sharding.staging import Situation, stage
from node.store.port import BookEntry, ShardRow, ShardState


def situation(
    loads: tuple[int, ...], *, settings: ShardingSettings | None = None, book: Book | None = None, **nodes: object
) -> Situation:
    """`loads[i]` shards on node n<i+1>."""
    members = tuple(EntityNode(NodeId(f"n{i + 1}", 1)) for i in range(len(loads)))
    owners = [m.node for m, load in zip(members, loads, strict=True) for _ in range(load)]
    rows = [ShardRow(s, o.name, o.incarnation, 3, ShardState.RUNNING) for s, o in enumerate(owners)]
    view = replace(EntityNodes(members, NodeId("n1", 1)), **nodes)  # type: ignore[arg-type]
    return Situation(
        rows, 7, view, frozenset(), book or Book(), settings or ShardingSettings(shard_count=len(rows)), (), 400, 1
    )


def planned(request: Stage, at: Situation) -> Plan:
    plan = stage(request, at)
    assert isinstance(plan, Plan), plan
    return plan


@pytest.mark.parametrize(
    ("loads", "after"),
    [
        ((1, 2, 0), [1, 1, 1]),
        ((2, 0, 0), [0, 1, 1]),
        ((1, 1, 0), [0, 1, 1]),
        ((4, 4, 0), [2, 3, 3]),
        ((4, 4, 2), [3, 3, 4]),
        ((5, 5, 0), [3, 3, 4]),
        ((128, 128, 0), [85, 85, 86]),
        ((256, 0, 0), [85, 85, 86]),
        ((86, 85, 85, 0), [64, 64, 64, 64]),
    ],
)
def test_p42_a_rebalance_plan_ends_in_the_vector(loads: tuple[int, ...], after: list[int]) -> None:
    """P42: up to which of equal nodes keeps the odd shard; no shard moves twice, and none for nothing."""
    at = situation(loads)
    plan = planned(Stage("p", "rebalance"), at)
    counts = at.counts()
    for move in plan.moves:
        counts[move.source] -= 1
        counts[move.to] += 1
    assert sorted(counts.values()) == after
    assert max(Counter(move.shard for move in plan.moves).values(), default=1) == 1
    fewest = sum(max(0, load - kept) for load, kept in zip(sorted(loads), after, strict=True))
    assert len(plan.moves) == fewest
    assert not plan.violations


def test_p44_a_rebalance_waits_for_the_cluster_to_be_whole_unless_it_is_forced() -> None:
    hindered = situation((4, 0), unreachable=("api-1",), joining=("n4",))
    assert stage(Stage("p", "rebalance"), hindered) == Declined("not_now", "api-1 is unreachable; n4 is joining")
    forced = planned(Stage("p", "rebalance", force=True), hindered)
    assert forced.notes == ("overridden: api-1 is unreachable", "overridden: n4 is joining")
    assert len(forced.moves) == 2


def test_the_restart_of_one_node_moves_only_what_it_has() -> None:
    plan = planned(Stage("p", "restart", node="n2"), situation((2, 3, 1)))
    assert plan.target == "node/n2"
    assert [move.source for move in plan.moves] == ["n2"] * 3
    everything = planned(Stage("p", "restart"), situation((2, 3, 1)))
    assert everything.target == "cluster"
    assert {move.source for move in everything.moves} == {"n1", "n2", "n3"}
    assert planned(Stage("p", "restart", node="n1"), situation((4,))).violations


def test_what_the_asker_found_to_be_broken_stands_in_the_plan() -> None:
    asked = Stage("p", "drain", node="n1", force=True, broken=("last-of-role: n1 alone is api",), notes=("n9 is away",))
    plan = planned(asked, situation((2, 3, 1)))
    assert (plan.violations, plan.notes) == (("last-of-role: n1 alone is api",), ("n9 is away",))


def test_p43_a_limit_of_zero_refuses() -> None:
    off = situation((4, 0), settings=ShardingSettings(shard_count=4, moves_at_once=0))
    declined = stage(Stage("p", "rebalance"), off)
    assert isinstance(declined, Declined)
    assert declined.reason == "limit_is_zero"


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Stage("p", "move", (1,), "n9"), "n9 is no entity node that is up: 'node list --filter roles~entity' names"),
        (Stage("p", "move", (1,), "n2"), "n2 is cordoned: 'node uncordon n2' lets"),
        (Stage("p", "move", (1,), "n3"), "n3 drains or leaves: 'node undrain n3' lets"),
        (Stage("p", "move", (1,), "n4"), "n4 is unreachable: 'cluster health' names"),
        (Stage("p", "move", (0,), "n5"), "pinned to n1"),
        (Stage("p", "drain", node="n1"), ""),
    ],
)
def test_what_a_plan_would_violate_is_said_before_anything_moves(request_: Stage, words: str) -> None:
    book = Book([entry_of(Cordon("n2")), entry_of(Pin(0, "n1"))])
    members = [EntityNode(NodeId(f"n{i}", 1)) for i in range(1, 6)]
    members[1], members[3] = replace(members[1], cordoned=True), replace(members[3], reachable=False)
    at = replace(situation((40, 0, 0, 0, 0), book=book, nodes=tuple(members)), draining=frozenset({NodeId("n3", 1)}))
    violations = planned(request_, at).violations
    assert [words in v for v in violations] == ([True] if words else [])


def test_a_node_that_would_own_far_more_than_its_share_is_named() -> None:
    at = situation((40, 0, 0, 0))
    assert not planned(Stage("p", "move", tuple(range(20)), "n2"), at).violations
    crowded = Stage("p", "move", tuple(range(21)), "n2")
    assert planned(crowded, at).violations == (
        "capacity: n2 would own 21 shards, its share is 10; --force capacity overrides it",
    )
    pinned = planned(Stage("p", "pin", tuple(range(21)), "n2"), at)
    assert pinned.violations == ("capacity: n2 would own 21 shards, its share is 10",), "a pin has no such word"
    forced = planned(msgspec.structs.replace(crowded, force=True), at)
    assert forced.notes == ("overridden: capacity: n2 would own 21 shards, its share is 10",)


def test_force_overrides_what_is_a_matter_of_judgement_and_says_so() -> None:
    alone = situation((4,))
    assert planned(Stage("p", "drain", node="n1"), alone).violations == (
        "minimum owners: n1 is the last entity node that takes shards; --force last-entity-node overrides it",
    )
    assert planned(Stage("p", "cordon", node="n1"), alone).violations
    forced = planned(Stage("p", "drain", node="n1", force=True), alone)
    assert (forced.violations, len(forced.notes)) == ((), 1)
    # that a node can't take shards is no matter of judgement
    assert planned(Stage("p", "move", (1,), "n9", force=True), alone).violations


def test_a_plan_expects_its_duration_from_the_hand_offs_seen() -> None:
    at = situation((256, 0))
    assert planned(Stage("p", "rebalance"), at).expected_ms == 7 * 400, "128 shards, 20 at a time"
    assert planned(Stage("p", "rebalance"), replace(at, typical_ms=50)).expected_ms == 350
    # What is done beside the moves takes its time, however fast they are.
    assert planned(Stage("p", "restart", least_ms=24_000), replace(at, typical_ms=0)).expected_ms == 24_000


def test_what_can_not_be_asked_for_is_declined() -> None:
    at = situation((2, 2))
    assert stage(Stage("p", "move", (4,), "n1"), at) == Declined("no_such_shard", "4 is not a shard: they are 0 to 3")
    assert stage(Stage("p", "explode"), at) == Declined("no_such_verb", "explode")


def test_a_record_that_can_not_be_read_is_left_alone_and_named() -> None:
    book = Book([BookEntry("plan/p-1", b"\x80"), entry_of(Pin(3, "n1")), BookEntry("x/1", entry_of(Pin(4, "n1")).body)])
    assert set(book.pins) == {3, 4}
    assert book.unreadable == ["plan/p-1"]


def test_a_pin_that_takes_another_one_s_place_says_so() -> None:
    at = situation((2, 2), book=Book([entry_of(Pin(0, "n2")), entry_of(Pin(1, "n1"))]))
    plan = planned(Stage("p", "pin", (0, 1, 2), "n1"), at)
    assert [pin.shard for pin in plan.pins] == [0, 2]
    assert plan.notes == ("shard 0 is pinned to n2: that pin is taken away",)
    assert planned(Stage("p", "pin", (0,), "n9"), at).notes[0] == plan.notes[0], "pending or not"
