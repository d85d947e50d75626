"""Links that are cut, bad or one-way, and processes that pause, in a deterministic world of members."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sim_membership import FIVE, five, view

from node.core.clock import SECOND
from node.core.ids import NodeId
from node.gossip.settings import FAST

SEEDS = range(8)


@pytest.mark.parametrize("seed", SEEDS)
def test_three_against_two(seed: int) -> None:
    world = five(seed, loss=0.05)
    world.run(3)
    at = world.seconds
    world.partition({"n1", "n2"}, {"n3", "n4", "n5"})
    assert world.run(10, lambda: world.one_cluster("n3", "n4", "n5") and len(world.removed) == 2)
    assert world.seconds - at < 8
    assert {node.name for _, node, _, left in world.removed if not left} == {"n1", "n2"}
    assert all("keep-majority: 2 counted, 3 required" in cause for _, _, cause, _ in world.removed)
    world.heal()
    for name in ("n1", "n2"):
        world.start(name, existed=True)
    assert world.run(10, lambda: world.one_cluster(*FIVE))


def test_a_cut_that_heals_in_time_costs_nothing() -> None:
    world = five(5)
    world.run(3)
    world.partition({"n1"}, {"n2", "n3", "n4", "n5"})
    assert world.run(5, lambda: bool(view(world, "n2").unreachable))
    assert "n1" in view(world, "n2").unreachable
    assert not view(world, "n1").converged
    world.run(0.5)
    world.heal()
    assert world.run(2, lambda: world.one_cluster(*FIVE))
    world.run(10)
    assert world.one_cluster(*FIVE)
    assert not world.decided


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_pair_that_cannot_see_each_other_the_younger_goes_and_no_third(seed: int) -> None:
    """N4, S03: one bad link, for minutes; everybody else sees both."""
    world = five(seed)
    world.run(3)
    a, b = world.rng.sample(FIVE, 2)
    pair = {NodeId(a, 1), NodeId(b, 1)}
    younger = max((view(world, "n1").members[n] for n in (a, b)), key=lambda m: m.up_number)
    world.partition({a}, {b})
    assert world.run(5, lambda: all({n for p in view(world, x).indirect for n in p} == pair for x in FIVE))
    assert not any(view(world, name).unreachable for name in FIVE)
    assert world.run(4, lambda: bool(world.removed))
    world.run(60)
    assert [node for _, node, _, _ in world.removed] == [younger.id]
    assert world.one_cluster(*(n for n in FIVE if n != younger.node))
    (decision,) = world.decided
    assert (decision.outcome, decision.goes, set(decision.pairs[0])) == ("down_indirect", (younger.id,), pair)


def test_a_bad_link_that_heals_in_time_costs_nobody() -> None:
    world = five(6)
    world.run(3)
    world.partition({"n2"}, {"n4"})
    world.run(3)
    assert view(world, "n1").indirect
    world.heal()
    assert world.run(3, lambda: all(not view(world, n).indirect for n in FIVE))
    world.run(10)
    assert world.one_cluster(*FIVE)
    assert not world.decided


@pytest.mark.parametrize("heard", [True, False])
def test_a_cut_in_one_direction_ends_with_one_side(heard: bool) -> None:
    world = five(7)
    world.run(3)
    others = [n for n in FIVE if n != "n3"]
    world.cut = {("n3", n) if heard else (n, "n3") for n in others}
    assert world.run(12, lambda: world.one_cluster(*others) and len(world.removed) == 1)
    assert world.removed[0][1].name == "n3"


def test_a_flapping_link_is_decided_in_bounded_time() -> None:
    """N16: unreachable for about two seconds, reachable for about two: never the same for `stable_after`. It is
    removed once."""
    world = five(8, settings=replace(FAST, stable_after_ns=4 * SECOND))
    world.run(3)
    at = world.seconds
    while not world.removed and world.seconds - at < 60:
        world.partition({"n5"}, {"n1", "n2", "n3", "n4"})
        world.run(4)
        world.heal()
        world.run(0.5)
    assert {node.name for _, node, _, _ in world.removed} == {"n5"}
    assert world.seconds - at < 20


# --- pauses


def test_a_paused_node_learns_that_it_was_removed() -> None:
    world = five(9)
    world.run(3)
    world.pause("n2")
    assert world.run(10, lambda: world.one_cluster("n1", "n3", "n4", "n5"))
    world.run(20)
    world.resume("n2")
    world.run(1)
    assert [(node.name, left) for _, node, _, left in world.removed] == [("n2", False)]
    decision = world.decided[-1]
    assert f"by decision {decision.id}, keep-majority: 4 counted" in world.removed[0][2]
    assert "n1, n3, n4, n5 go on" in world.removed[0][2]
    world.start("n2", existed=True)
    assert world.run(5, lambda: world.one_cluster(*FIVE))


def test_short_pauses_and_a_pause_of_all_are_held_against_nobody() -> None:
    """P11: no flapping, nothing removed."""
    world = five(10)
    world.run(3)
    start = len(world.views)
    for _ in range(10):
        world.pause("n3")
        world.run(0.7)
        world.resume("n3")
        world.run(1.5)
    for name in FIVE:
        world.pause(name)
    world.run(60)
    for name in FIVE:
        world.resume(name)
    world.run(10)
    assert world.one_cluster(*FIVE)
    assert not any(v.unreachable for _, _, v in world.views[start:])
    assert world.processes["n1"].machine.counters["self_late"] >= 1


def test_a_cluster_formed_twice_becomes_one_again() -> None:
    world = five(11)
    world.run(3)
    world.crash("n1")
    world.partition({"n1"}, {"n2", "n3", "n4", "n5"})
    world.start("n1", existed=True)
    world.run(12)
    assert view(world, "n1").up()[0].node == "n1"
    assert view(world, "n1").formation != view(world, "n2").formation
    world.heal()
    assert world.run(15, lambda: bool(world.removed))
    assert [node.name for _, node, _, _ in world.removed] == ["n1"]
    assert "formed twice" in world.removed[0][2]
    world.start("n1", existed=True)
    assert world.run(5, lambda: world.one_cluster(*FIVE))


def test_a_survivor_of_the_old_cluster_gives_way_to_the_new_one() -> None:
    world = five(12)
    world.run(3)
    world.pause("n5")
    world.crash("n1", "n2", "n3", "n4")
    for name in ("n1", "n2", "n3", "n4"):
        world.start(name, existed=True)
    assert world.run(10, lambda: world.one_cluster("n1", "n2", "n3", "n4"))
    world.resume("n5")
    world.run(20)
    assert [node.name for _, node, _, _ in world.removed] == ["n5"]
    assert world.one_cluster("n1", "n2", "n3", "n4")
