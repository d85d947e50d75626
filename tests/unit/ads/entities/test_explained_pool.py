"""What a decision says of the pool it was made from."""

from __future__ import annotations

from ads_world import PAGE, World, serving_world

from node.admin import domain_views as views


def age_s(world: World, **query: str) -> float:
    pool = views.explanation(world.explain(**query)).pool
    assert pool is not None
    return pool.age_s


def test_the_pool_of_a_decision_is_as_old_as_it_was_then() -> None:
    world = serving_world()
    world.advance(7_000)
    assert world.winner() is not None
    decided = world.explain(page=PAGE).request_id
    was_s = age_s(world, request_id=decided)
    assert was_s >= 7
    world.advance(60_000)
    assert age_s(world, request_id=decided) == was_s
