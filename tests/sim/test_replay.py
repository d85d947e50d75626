"""Tokens, shrinking, traps, topologies and crash points of the simulator."""

from __future__ import annotations

import json
import random
import time
import uuid

import pytest

from node.core import faultpoints
from node.core.errors import BadInput
from node.sim import faults, topology
from node.sim.faults import CLASSES, Disturbance
from node.sim.recipe import Recipe, parse
from node.sim.run import Result, run
from node.sim.scheduler import HostClock, Scheduler
from node.sim.shrink import Shrinker
from node.sim.traps import NotDeterministicError, sealed

SMALL = Recipe(
    117,
    5,
    90,
    frozenset({"cut", "point"}),
    frozenset({"cut1", "point0"}),
    frozenset({"n4"}),
    80,
    31_500,
    "lost-write",
    "3f09c2d1",
)


def test_a_token_says_all_of_a_recipe_and_does_not_depend_on_the_order_of_leaving_out() -> None:
    token = "117.n5.s90.fcut+point.xcut1+point0.wn4.o80.u31500.plost-write.t3f09c2d1"
    assert SMALL.token() == token
    assert parse(token) == SMALL
    assert parse("117") == Recipe(117)
    assert parse("117", nodes=5, seconds=10) == Recipe(117, 5, 10)


@pytest.mark.parametrize(
    "token", ["", "x", "-1", "7.q3", "7.n0", "7.n99", "7.s", "7.n4.n5", "7.fmoon", "7.pnone", "7."]
)
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(BadInput):
        parse(token)


def test_leaving_a_class_out_changes_no_other() -> None:
    hosts = ("n1", "n2", "n3", "n4")
    whole = faults.draw(Scheduler(5).derive, hosts, 60)
    for name in CLASSES:
        part = faults.draw(Scheduler(5).derive, hosts, 60, CLASSES.keys() - {name})
        assert part.disturbances == tuple(d for d in whole.disturbances if not d.tag.startswith(name))
    assert {d.tag.rstrip("0123456789") for d in whole.disturbances} <= CLASSES.keys()


def test_a_shrunk_failure_is_smaller_and_replays_by_its_token() -> None:
    failed = run(Recipe(1, plant="lost-write"))
    assert failed.violation is not None
    shrunk = Shrinker(failed, run, runs_max=25).shrink()
    assert shrunk.violation is not None
    assert shrunk.violation.invariant == failed.violation.invariant
    assert shrunk.recipe.healed_ms < failed.recipe.healed_ms
    assert len(shrunk.knobs.disturbances) < len(failed.knobs.disturbances)
    again = run(parse(shrunk.recipe.token()))
    assert (again.violation, again.trace_hash) == (shrunk.violation, shrunk.trace_hash)


def test_shrinking_keeps_what_breaks_another_invariant_out() -> None:
    failed = run(Recipe(1, plant="lost-write"))

    def other(recipe: Recipe) -> Result:
        return run(Recipe(recipe.seed, recipe.nodes, 1, frozenset()))  # holds

    assert Shrinker(failed, other, runs_max=5).shrink() is failed


@pytest.mark.parametrize("forbidden", [time.time, time.monotonic_ns, random.random, uuid.uuid4])
def test_what_no_seed_decides_raises_inside_a_simulation(forbidden: object) -> None:
    module, name = forbidden.__module__ or "random", forbidden.__name__  # type: ignore[attr-defined]
    with sealed(), pytest.raises(NotDeterministicError, match=name):
        getattr(random if module == "random" else {"time": time, "uuid": uuid}[module], name)()
    assert time.time() > 0
    assert random.random() >= 0


@pytest.mark.parametrize("drift_ppm", [-20_000, 0, 137, 20_000])
def test_a_drifting_clock_is_never_woken_early(drift_ppm: int) -> None:
    scheduler = Scheduler(1)
    clock = HostClock(scheduler, 17, 0, drift_ppm)
    for mono_ns in (17, 1_000, 999_999_999, 3_600 * 10**9 + 1):
        scheduler.now_ns = clock.world_ns(mono_ns)
        assert mono_ns <= clock.mono_ns() <= mono_ns + 1


def test_every_crash_point_is_reached_and_springs() -> None:
    """One run with a trap at each point of a hand-off and of a commit: each ends its node there."""
    points = [p for p in faultpoints.POINTS if p.startswith(("store.", "handoff."))]
    traps = tuple(
        Disturbance(7_000 + 5_000 * n, "point_kill", ("n1", "n2", "n3", "n4"), 800, point, 1)
        for n, point in enumerate(points)
    )
    moves = tuple(Disturbance(9_000 + 700 * n, "move", (f"n{n % 4 + 1}",), 1) for n in range(120))
    both = tuple(sorted((*traps, *moves), key=lambda d: d.at_ms))
    result = run(Recipe(2, seconds=95), drawn=faults.calm(disturbances=both))
    assert result.ok, result.violation
    assert set(points) <= result.points_fired.keys()


CLUSTER = {
    "nodes": [{"name": f"{name}@3", "roles": ["api", "entity", "singleton"]} for name in ("east", "west", "mid")]
}


def test_a_topology_is_rehearsed_under_the_names_it_has() -> None:
    hosts = topology.read(json.dumps(CLUSTER), "status.json")
    result = run(Recipe(3, seconds=15), hosts)
    assert result.ok, result.violation
    named = {host for d in result.knobs.disturbances for host in d.hosts}
    assert named
    assert named <= {"east", "west", "mid"}


@pytest.mark.parametrize(
    "document",
    [
        "{",
        "[]",
        '{"nodes": []}',
        '{"nodes": [{"name": "a"}]}',
        '{"nodes": [{"name": "a", "roles": ["boss"]}]}',
        '{"nodes": [{"name": "a", "roles": ["api"]}]}',
        json.dumps({**CLUSTER, "profile": "swift"}),
        json.dumps({"nodes": CLUSTER["nodes"] * 9}),
    ],
)
def test_what_is_no_topology_is_refused_by_the_name_of_its_file(document: str) -> None:
    with pytest.raises(BadInput, match=r"status\.json"):
        topology.read(document, "status.json")
