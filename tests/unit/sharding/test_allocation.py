"""Goal: the laws of where shards go. Method: properties over tables and node sets, and known vectors."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.core.ids import NodeId
from node.sharding.allocation import drained, hindrances, place, rebalance, score, successor
from node.sharding.nodes import EntityNode, EntityNodes, ShardingSettings
from node.sharding.placement import owner, placed
from node.store.port import ShardRow, ShardState

SHARDS = 256
EMPTY = [ShardRow(s) for s in range(SHARDS)]

nodes_st = st.lists(st.sampled_from([1.0, 2.0, 4.0]), min_size=1, max_size=8).map(
    lambda capacities: [EntityNode(NodeId(f"n{i}", 1), capacity=c) for i, c in enumerate(capacities)]
)


def rows_of(homes: dict[int, NodeId]) -> list[ShardRow]:
    return [placed(ShardRow(s), homes[s]) for s in range(SHARDS)]


@given(nodes_st)
@settings(deadline=None)
def test_every_shard_is_placed_on_a_target_within_its_fair_share(nodes: list[EntityNode]) -> None:
    homes = place(EMPTY, {}, nodes, SHARDS)
    assert set(homes) == set(range(SHARDS))
    counts = Counter(homes.values())
    weight = sum(n.capacity for n in nodes)
    assert set(counts) <= {n.node for n in nodes}
    for n in nodes:
        share = SHARDS * n.capacity / weight
        assert counts[n.node] <= math.ceil(share)
        assert counts[n.node] >= share - len(nodes)


@given(nodes_st, st.data())
@settings(deadline=None)
def test_a_loss_moves_only_the_lost_nodes_shards(nodes: list[EntityNode], data: st.DataObject) -> None:
    before = rows_of(place(EMPTY, {}, nodes, SHARDS))
    lost = data.draw(st.sampled_from(nodes))
    rest = [n for n in nodes if n is not lost]
    orphans = [r for r in before if owner(r) == lost.node]
    counts = Counter(owner(r) for r in before if owner(r) != lost.node)
    homes = place(orphans, counts, rest, SHARDS)
    assert set(homes) == ({r.shard for r in orphans} if rest else set())
    assert lost.node not in homes.values()


@given(nodes_st)
@settings(deadline=None)
def test_a_first_placement_needs_no_rebalance(nodes: list[EntityNode]) -> None:
    rows = rows_of(place(EMPTY, {}, nodes, SHARDS))
    assert len(rebalance(rows, nodes, 20)) <= len(nodes) - 1


def test_rendezvous_without_bounds_follows_capacity() -> None:
    wins = Counter(max(("a", 1.0), ("b", 3.0), key=lambda n: score(s, n[0], n[1]))[0] for s in range(20_000))
    assert wins["b"] / 20_000 == pytest.approx(0.75, abs=0.02)


def test_a_returning_node_gets_its_own_shards_whatever_the_load() -> None:
    two = [EntityNode(NodeId("a", 1)), EntityNode(NodeId("b", 1))]
    before = [ShardRow(s, "a", 1, 1, ShardState.RUNNING) for s in range(SHARDS)]
    back = [EntityNode(NodeId("a", 2)), two[1]]
    assert set(place(before, {}, back, SHARDS).values()) == {NodeId("a", 2)}


@given(
    st.lists(st.integers(0, 200), min_size=2, max_size=6),
    st.integers(1, 20),
)
@settings(max_examples=60, deadline=None)
def test_rebalance_narrows_within_its_limit_and_comes_to_rest(loads: list[int], limit: int) -> None:
    nodes = [EntityNode(NodeId(f"n{i}", 1)) for i in range(len(loads))]
    owners = [n.node for n, load in zip(nodes, loads, strict=True) for _ in range(load)]
    rows = [placed(ShardRow(shard), o) for shard, o in enumerate(owners)]
    for _ in range(1_000):
        moves = rebalance(rows, nodes, limit)
        assert len(moves) <= limit
        if not moves:
            break
        for shard, to in moves:
            assert owner(rows[shard]) != to
            rows[shard] = placed(rows[shard], to)
    counts = Counter(owner(r) for r in rows)
    after = [counts[n.node] for n in nodes]
    assert sum(after) == sum(loads)
    assert max(after) - min(after) <= 1


@pytest.mark.parametrize(
    ("loads", "after"),
    [
        ([1, 2, 0], [1, 1, 1]),
        ([2, 0, 0], [0, 1, 1]),
        ([1, 1, 0], [0, 1, 1]),
        ([4, 4, 0], [2, 3, 3]),
        ([4, 4, 2], [3, 3, 4]),
        ([5, 5, 0], [3, 3, 4]),
    ],
)
def test_least_shard_vectors(loads: list[int], after: list[int]) -> None:
    """Public vectors of the least-shard strategy (P42), here without a limit and up to the nodes' order."""
    nodes = [EntityNode(NodeId(f"n{i}", 1)) for i in range(3)]
    owners = [n.node for n, load in zip(nodes, loads, strict=True) for _ in range(load)]
    rows = [placed(ShardRow(i), o) for i, o in enumerate(owners)]
    for shard, to in rebalance(rows, nodes, 20):
        rows[shard] = placed(rows[shard], to)
    counts = Counter(owner(r) for r in rows)
    assert sorted(counts[n.node] for n in nodes) == after


def test_pinned_shards_stay_and_go_home_first() -> None:
    nodes = [EntityNode(NodeId("a", 1)), EntityNode(NodeId("b", 1), version="9")]
    rows = [ShardRow(s, "a", 1, 1, ShardState.RUNNING) for s in range(10)]
    pins = dict.fromkeys(range(8), "a")
    assert {shard for shard, _ in rebalance(rows, nodes, 20, pins)} == {8, 9}
    orphans = [ShardRow(s, "gone", 1, 1, ShardState.RUNNING) for s in range(10)]
    homes = place(orphans, {}, nodes, 10, pins)
    assert {s for s, at in homes.items() if at.name == "a"} == set(range(8)), "the others go to the newest version"
    assert place(orphans, {}, nodes[1:], 10, pins).keys() == set(range(10)), "a pin to a node that is away waits"
    assert drained([ShardRow(3, "c", 1, 1, ShardState.RUNNING)], "c", nodes, pins) == {3: NodeId("a", 1)}


def test_p56_what_must_be_placed_goes_to_the_newest_version() -> None:
    """P56, and a returning node of an old version gets nothing while newer ones are there."""
    nodes = [EntityNode(NodeId("a", 2), version="1"), EntityNode(NodeId("b", 1), version="1")]
    nodes.append(EntityNode(NodeId("c", 1), version="2"))
    orphans = [ShardRow(s, "a", 1, 1, ShardState.RUNNING) for s in range(6)]
    assert set(place(orphans, {NodeId("b", 1): 3}, nodes, 9).values()) == {NodeId("c", 1)}


def test_p44_what_stands_in_the_way_of_a_rebalance_is_named() -> None:
    a, b = EntityNode(NodeId("a", 1), version="1"), EntityNode(NodeId("b", 1), version="2")
    assert hindrances(EntityNodes((a,))) == ()
    found = hindrances(EntityNodes((a, b), unreachable=("api-1",), joining=("n4",)))
    assert found == ("api-1 is unreachable", "n4 is joining", "mixed versions: a 1, b 2")


def test_a_drained_shard_goes_to_the_newest_version_then_the_lightest_load() -> None:
    a, b, c = (NodeId(n, 1) for n in "abc")
    nodes = [EntityNode(a, version="1.9"), EntityNode(b, version="1.10"), EntityNode(c, 2.0, version="1.10")]
    assert successor({a: 0, b: 50, c: 90}, nodes) == c  # 45 for each unit of capacity
    assert successor({a: 0, b: 40, c: 90}, nodes) == b
    assert successor({}, []) is None


def test_moves_at_once_are_bounded_both_ways() -> None:
    assert ShardingSettings().moves_max == 20
    assert ShardingSettings(shard_count=100).moves_max == 10
    assert ShardingSettings(shard_count=4).moves_max == 1
