"""Replays: every site once, coverage awaited, taken over by another owner, ended when sites stay silent."""

from __future__ import annotations

import pytest
from flows_world import World

from node.actors.actor import Failed
from node.core.ids import EntityRef
from node.core.limits import operations_kept_ms
from node.flows.messages import (
    CancelReplay,
    GetReplay,
    OpenReplay,
    ReplayRefused,
    ReplayReport,
    ReplaySilent,
    ReplayStatus,
    StartReplay,
)
from node.flows.replay import CHUNK, LIMIT_MS, SETTLE_MS, SITES_AT_ONCE, TRIES_MAX
from node.flows.replay_register import REGISTER, REPLAY_TIMEOUT_MS


@pytest.fixture
def world() -> World:
    return World()


def start(
    world: World, *sites: str, name: str = "r-1", missing: bool = False, rate: int = 0, until: float = 0.0
) -> ReplayStatus:
    status = world.ask("replay", name, StartReplay(sites, "all sites", missing, rate, until))
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


def test_why_it_was_started_is_kept_beside_why_it_ended(world: World) -> None:
    world.ask("replay", "r-7", StartReplay((), "all sites", why="after the restore"))
    assert status(world, "r-7").why == "after the restore"
    cancelled = world.ask("replay", "r-7", CancelReplay("too much load"))
    assert isinstance(cancelled, ReplayStatus)
    assert cancelled.why == "after the restore"


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
    world.advance(SETTLE_MS + 4_000)
    assert (status(world).state, status(world).failed) == ("failed", 4)
    assert len(world.replayed) == TRIES_MAX


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


def counts(found: ReplayStatus) -> tuple[int, int, int, int]:
    return found.total, found.replayed, found.ignored, found.failed


def test_a_large_site_goes_in_lots_and_an_owner_that_takes_over_counts_no_page_twice(world: World) -> None:
    world.pages["s1"] = 1_000
    world.present["s1"] = 2
    start(world, "s1", rate=100)
    world.advance(4_100)
    before = status(world)
    assert before.state == "running"
    assert 200 <= before.replayed + before.ignored <= 600
    assert before.total == 1_000
    assert (before.coverage_before, before.coverage_after) == (0.5, 0.5)
    world.restart()
    assert world.orders == [] or int(world.orders[0].after) > 0, "it goes on behind what was counted"
    world.present.clear()
    world.advance(12_000)
    found = status(world)
    assert (found.state, counts(found)) == ("done", (1_000, 750, 250, 0))
    assert (found.coverage_before, found.coverage_after) == (0.5, 1.0)


def test_no_more_pages_a_second_than_were_asked_for(world: World) -> None:
    world.pages = dict.fromkeys(("s1", "s2", "s3"), 300)
    start(world, "s1", "s2", "s3", rate=20)
    world.advance(10_000)
    found = status(world)
    assert found.state == "running"
    assert 150 <= found.replayed <= 200
    assert max(order.limit for order in world.orders) <= 20
    start(world, "s1", "s2", "s3", name="r-2")
    world.advance(2_000)
    assert counts(status(world, "r-2")) == (900, 675, 225, 0), "without a rate as fast as sites answer"
    assert max(order.limit for order in world.orders) == CHUNK


def test_before_every_site_was_heard_it_does_not_say_where_coverage_stands(world: World) -> None:
    world.silent = {"s2"}
    start(world, "s1", "s2")
    world.advance(600)
    found = status(world)
    assert (found.state, counts(found), found.coverage_before) == ("running", (0, 0, 0, 0), 0.0)


def test_only_what_is_missing_asks_only_sites_that_lack_something(world: World) -> None:
    world.present = {"s2": 1}
    assert start(world, "s1", "s2", missing=True).state == "running"
    world.advance(1_000)
    world.present.clear()
    world.advance(2_000)
    found = status(world)
    assert (found.state, world.replayed, counts(found)) == ("done", ["s2"], (4, 3, 1, 0))
    assert (found.coverage_before, found.coverage_after) == (0.625, 1.0)
    assert all(order.missing for order in world.orders)
    start(world, "s1", "s2", name="r-2", missing=True)
    world.advance(1_000)
    assert (status(world, "r-2").reason, counts(status(world, "r-2"))) == ("nothing is missing", (0, 0, 0, 0))


def test_the_wanted_coverage_ends_it_early_and_one_that_does_not_come_fails_it(world: World) -> None:
    world.pages = {"s1": 1_000}
    world.present = {"s1": 2}
    start(world, "s1", rate=10, until=0.75)
    world.advance(3_000)
    assert status(world).state == "running"
    world.present["s1"] = 3
    start(world, "s2", name="r-2", until=0.5)
    world.advance(1_000)
    assert (status(world, "r-2").state, counts(status(world, "r-2"))[1:]) == ("done", (0, 0, 0)), "it already holds"
    world.advance(110_000)
    found = status(world)
    assert found.state == "done", "looked at once its pages are through"
    start(world, "s1", name="r-3", until=1.0)
    world.advance(SETTLE_MS + 3_000)
    found = status(world, "r-3")
    assert (found.state, found.reason) == ("failed", "coverage is 0.750, 1 was wanted")
    assert (found.missing, found.reasons) == ((("s1", "slot-3", "no_demand"),), {"no_demand": 1})


def test_cancelled_in_the_middle_it_stays_so_and_says_what_it_did(world: World) -> None:
    world.pages = {"s1": 1_000}
    start(world, "s1", rate=20)
    world.advance(5_000)
    cancelled = world.ask("replay", "r-1", CancelReplay("too much load"))
    assert (cancelled.state, cancelled.reason) == ("cancelled", "too much load")
    assert 50 <= cancelled.replayed + cancelled.ignored <= 150
    assert cancelled.total == 1_000
    asked = len(world.orders)
    world.advance(10_000)
    world.restart()
    world.advance(10_000)
    assert (status(world), len(world.orders)) == (cancelled, 0), f"nothing after the {asked} orders before"
    assert world.ask("replay", "r-1", CancelReplay()) == cancelled, "once more is no other cancel"


def test_a_site_that_is_deleted_meanwhile_is_left_out(world: World) -> None:
    world.gone = {"s2"}
    start(world, "s1", "s2")
    world.advance(4_000)
    assert (status(world).state, counts(status(world))) == ("done", (4, 3, 1, 0))


# ---- the register: no two through one site


def opened(world: World, name: str, *sites: str) -> ReplayStatus | ReplayRefused:
    found = world.ask("replay-register", "cluster", OpenReplay(name, StartReplay(sites, ", ".join(sites))))
    assert isinstance(found, ReplayStatus | ReplayRefused), found
    return found


def test_two_that_want_the_same_site_do_not_run_at_once(world: World) -> None:
    world.pages = {"s1": 4}
    world.silent = {"s1"}
    first = opened(world, "r-1", "s1", "s2")
    assert isinstance(first, ReplayStatus)
    refused = opened(world, "r-2", "s1", "s3")
    assert isinstance(refused, ReplayRefused)
    assert (refused.running.id, refused.sites) == ("r-1", 1)
    assert world.ask("replay", "r-2", GetReplay()).detail.startswith("there is no replay")
    assert isinstance(opened(world, "r-3", "s3"), ReplayStatus), "other sites are another matter"
    again = opened(world, "r-1", "s1", "s2")
    assert isinstance(again, ReplayStatus)
    assert again.started_ms == first.started_ms
    world.restart()
    assert isinstance(opened(world, "r-2", "s1"), ReplayRefused), "another owner of the register knows it too"
    world.silent.clear()
    world.advance(15_000)
    assert status(world).state == "done"
    assert isinstance(opened(world, "r-2", "s1"), ReplayStatus)


def test_one_that_nobody_remembers_stands_in_nobodys_way(world: World) -> None:
    assert isinstance(opened(world, "r-1", "s1"), ReplayStatus)
    world.advance(15_000)
    world.advance(operations_kept_ms + 1)
    world.restart()
    assert world.ask("replay", "r-1", GetReplay()).detail.startswith("there is no replay")
    assert isinstance(opened(world, "r-2", "s1"), ReplayStatus)


def test_one_whose_node_is_silent_stands_in_the_way_until_it_is_known_to_be_over(world: World) -> None:
    assert isinstance(opened(world, "r-1", "s1"), ReplayStatus)
    world.advance(15_000)
    assert status(world).state == "done"
    world.system.shard_stopping(EntityRef("replay", "r-1").shard, lambda _tally: None)
    outcomes: list[object] = []
    order = StartReplay(("s1",), "s1")
    world.system.ask(REGISTER, OpenReplay("r-2", order), 2 * REPLAY_TIMEOUT_MS, outcomes.append)
    world.advance(REPLAY_TIMEOUT_MS)
    assert outcomes == [ReplaySilent("r-1")]
    found = world.ask(REGISTER.kind, REGISTER.id, OpenReplay("r-2", order, over=("r-1",)))
    assert isinstance(found, ReplayStatus)
    assert found.id == "r-2"
