"""Random cuts of random clusters come out as the live rule had rehearsed them on the view before."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from sim_membership import World

from node.gossip import rehearse
from node.gossip.settings import FAST, MembershipSettings

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
RULES = ("keep-majority", "keep-oldest", "static-quorum", "down-all", "lease-majority")


def drawn_settings(world: World, count: int) -> MembershipSettings:
    strategy = world.rng.choice(RULES)
    return replace(FAST, strategy=strategy, quorum=count // 2 + 1 if strategy == "static-quorum" else 0)


@pytest.mark.parametrize("seed", range(40 * SCALE))
def test_a_cut_comes_out_as_rehearsed(seed: int) -> None:
    """200 of them with PROMOVOLVE_TEST_SCALE=5: two to nine nodes, some without the role, two or three sides."""
    world = World(seed, loss=0.02)
    count = world.rng.randrange(2, 10)
    world.settings = drawn_settings(world, count)
    names = [f"n{i}" for i in range(1, count + 1)]
    for name in names:
        world.start(name, roles=("entity",) if world.rng.random() < 0.8 else ("api",))
    assert world.run(30, lambda: world.one_cluster(*names)), world.trace[-20:]
    world.run(1)
    world.rng.shuffle(names)
    first = world.rng.randrange(1, count)
    second = world.rng.randrange(first, count)
    sides = [side for side in (names[:first], names[first:second], names[second:]) if side]
    foretold = rehearse.cut(world.processes[names[0]].machine.view, world.settings, sides)
    world.partition(*(set(side) for side in sides))
    world.run(25)
    alive = tuple(sorted(world.processes))
    if world.settings.strategy == "lease-majority" and not foretold.survivors:
        assert alive in {tuple(sorted(side)) for side in sides}, "without a majority, one that asked first"
        return
    assert alive == foretold.survivors, (sides, [d.text() for d in foretold.decisions])
    taken = {d.node.name: d for d in world.decided}
    assert all(d.outcome == taken[d.node.name].outcome for d in foretold.decisions if d.node.name in taken)
