"""Replays: every site once, coverage awaited, taken over by another owner, ended when sites stay silent."""

from __future__ import annotations

import pytest
from flows_world import World

from node.actors.actor import Failed
from node.flows.messages import GetReplay, ReplayReport, ReplayStatus, StartReplay
from node.flows.replay import LIMIT_MS, SETTLE_MS, SITES_AT_ONCE


@pytest.fixture
def world() -> World:
    return World()


def start(world: World, *sites: str, name: str = "r-1") -> ReplayStatus:
    status = world.ask("replay", name, StartReplay(sites, "all sites"))
    assert isinstance(status, ReplayStatus), status
    return status


def status(world: World, name: str = "r-1") -> ReplayStatus:
    found = world.ask("replay", name, GetReplay())
    assert isinstance(found, ReplayStatus)
    return found


def test_every_site_is_replayed_once_and_the_counts_are_added(world: World) -> None:
    sites = tuple(f"s{n}" for n in range(3 * SITES_AT_ONCE))
    world.present = dict.fromkeys(sites, 1)
    assert start(world, *sites).state == "running"
    world.advance(1_000)
    world.present.clear()
    world.advance(5_000)
    found = status(world)
    assert (found.state, found.total, found.replayed, found.ignored, found.failed) == ("done", 96, 72, 24, 0)
    assert (found.coverage_before, found.coverage_after) == (0.25, 1.0)
    assert found.ended_ms > found.started_ms
    assert sorted(world.replayed) == sorted(sites)
    world.advance(60_000)
    assert sorted(world.replayed) == sorted(sites), "nothing goes on when it has ended"


def test_the_same_id_again_changes_nothing(world: World) -> None:
    first = start(world, "s1")
    assert start(world, "s1", "s2") == first
    world.advance(5_000)
    assert start(world, "s2") == status(world)
    assert world.replayed == ["s1"]


def test_coverage_that_does_not_grow_any_more_ends_it_too(world: World) -> None:
    world.present = {"s1": 2}
    start(world, "s1")
    world.advance(SETTLE_MS - 1_000)
    assert status(world).state == "running"
    world.advance(3_000)
    assert (status(world).state, status(world).coverage_after) == ("done", 0.5)


def test_a_site_that_is_silent_is_asked_again(world: World) -> None:
    world.silent = {"s2"}
    start(world, "s1", "s2")
    world.advance(8_000)
    assert (status(world).state, world.replayed) == ("running", ["s1"])
    world.silent.clear()
    world.advance(8_000)
    assert (status(world).state, world.replayed) == ("done", ["s1", "s2"])


def test_sites_that_stay_silent_end_it_as_failed(world: World) -> None:
    world.silent = {"s2"}
    start(world, "s1", "s2")
    world.advance(LIMIT_MS + 7_000)
    assert status(world).state == "failed"
    world.silent.clear()
    world.advance(10_000)
    assert status(world).state == "failed"
    assert world.replayed == ["s1"]


def test_a_replay_that_reached_no_page_has_failed(world: World) -> None:
    world.reports["s1"] = ReplayReport(4, 0, 0, 4)
    world.present["s1"] = 0
    start(world, "s1")
    world.advance(SETTLE_MS + 2_000)
    assert (status(world).state, status(world).failed) == ("failed", 4)


def test_without_sites_there_is_nothing_to_do(world: World) -> None:
    start(world)
    world.advance(1_500)
    assert (status(world).state, status(world).total) == ("done", 0)


def test_another_owner_asks_only_those_that_had_not_answered(world: World) -> None:
    world.silent = {"s2"}
    start(world, "s1", "s2")
    world.advance(3_000)
    world.silent.clear()
    world.restart()
    world.advance(5_000)
    assert (status(world).state, world.replayed) == ("done", ["s1", "s2"])
    assert status(world).replayed == 6


def test_what_was_never_started_does_not_exist_and_does_not_stay(world: World) -> None:
    found = world.ask("replay", "r-none", GetReplay())
    assert isinstance(found, Failed)
    assert found.detail.startswith("there is no replay")
    world.advance(100)
    assert "replay" not in world.system.cells_by_kind()
