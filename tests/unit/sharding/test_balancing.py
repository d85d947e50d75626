"""Until when uneven load is nobody's fault: as long as something is under way that evens it out by itself."""

from __future__ import annotations

from dataclasses import replace

from sharding_world import SETTINGS, World

from node.sharding.nodes import ShardingSettings
from node.sharding.requests import GetPlacing, Placing


def placing(world: World) -> Placing:
    found = world.ask(GetPlacing())
    assert isinstance(found, Placing)
    return found


def with_a_node_more(settings: ShardingSettings) -> World:
    world = World(("n1", "n2", "n3"), 1, settings)
    world.run(8_000)
    assert placing(world).uneven == 0
    world.start("n4")
    world.settle_views(0)
    world.run(100)
    return world


def test_it_is_due_then_under_way_then_over() -> None:
    world = with_a_node_more(SETTINGS)
    before = placing(world)
    assert before.uneven == 64
    assert "evens it out in 10 s" in before.balancing
    world.run(4_000)
    assert "evens it out in 6 s" in placing(world).balancing
    seen = set()
    while (now := placing(world)).uneven:
        assert now.balancing, "at no moment is it left to anybody"
        seen.add(now.balancing.lstrip("0123456789 "))
        world.run(50)
    assert "shards are on their way" in seen


def test_where_nobody_will_even_it_out_it_is_one() -> None:
    world = with_a_node_more(replace(SETTINGS, moves_ratio=0.0))
    assert (placing(world).uneven, placing(world).balancing) == (64, "")


def test_mixed_versions_are_no_excuse() -> None:
    world = World(("n1", "n2", "n3"), 1)
    world.run(8_000)
    world.versions["n4"] = "2"
    world.start("n4")
    world.settle_views(0)
    world.run(100)
    assert placing(world).balancing == ""
    world.versions["n4"] = "1"
    world.settle_views(0)
    world.run(100)
    assert placing(world).balancing
