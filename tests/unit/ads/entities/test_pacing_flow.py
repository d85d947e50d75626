"""Pacing from end to end: reservations tell what was spent, and page views go without an ad when that is too much."""

import pytest
from ads_world import DAY_MS, HOUR_MS, PAGE, SITE, World, serving_world

from node.ads import messages as m
from node.ads.entities.site_pacing import HEARD_MS_MAX
from node.ads.pacing.window import day_window
from node.ads.serve_stats import ServeStats

FLOOR = 1_000_000
PRICE = FLOOR // 1_000
BUDGET = 1_000 * PRICE  # an impression every minute and a half, and ten at any time
AT_NIGHT = 60_000


def paced_world(budget: int = BUDGET) -> World:
    """A minute after midnight. Floors move nothing in these tests, for the only bid is near the least."""
    world = serving_world(cpm=FLOOR + 10_000, budget=budget)
    midnight = day_window(world.clock.wall_ms(), "UTC").end_ms
    world.advance(midnight + AT_NIGHT - world.clock.wall_ms())
    assert isinstance(world.ask("site", SITE, m.UpdateSite(floor_micros=FLOOR, paced=True)), m.SiteInfo)
    world.advance(2_000)
    return world


def view(world: World, times: int, gap_ms: int = 1_000) -> list[str]:
    """What became of so many page views: empty for one with an ad."""
    seen = []
    for _ in range(times):
        seen.append(world.select(PAGE).outcomes[0].reason)
        world.advance(gap_ms)
    return seen


def stats(world: World) -> ServeStats:
    found = world.ask("adserver", SITE, m.GetServeStats())
    assert isinstance(found, ServeStats)
    return found


def test_a_budget_is_not_spent_before_its_time() -> None:
    world = paced_world()
    seen = view(world, 120)
    served = seen.count("")
    assert set(seen) == {"", "held_back_by_pacing"}
    assert 5 <= served <= 30
    found = stats(world)
    assert (found.selected, found.pacing_skipped) == (served, 120 - served)
    assert found.spend_micros == served * PRICE
    assert sum(found.hourly) == served


def test_a_budget_that_lasts_is_served_from() -> None:
    world = paced_world(budget=10_000 * BUDGET)
    assert set(view(world, 40)) == {""}
    assert stats(world).pacing_skipped == 0


def test_pacing_that_is_not_wanted_holds_nothing_back() -> None:
    world = paced_world()
    world.ask("site", SITE, m.UpdateSite(paced=False))
    world.advance(2_000)
    assert view(world, 40) == [""] * 40


def test_why_a_page_view_went_without_an_ad_is_explained() -> None:
    world = paced_world()
    assert "held_back_by_pacing" in view(world, 60)
    decision = next(
        found
        for found in (world.explain(slot="top"), *(world.explain(slot="top") for _ in range(3) if view(world, 5)))
        if found.reason == "held_back_by_pacing"
    )
    assert [row.reason for row in decision.candidates] == ["held_back_by_pacing"]


@pytest.mark.parametrize("days", [1, 2])
def test_a_site_that_was_held_back_serves_again_the_next_day(days: int) -> None:
    """OP3. After midnight hardly anything is expected, and a site went dark every night for what it had spent."""
    world = paced_world()
    first = view(world, 60).count("")
    for _ in range(days):
        world.advance(DAY_MS)
        world.classify()
        world.advance(3_000)
    again = view(world, 60).count("")
    assert again >= 5
    assert abs(again - first) < 10
    assert stats(world).selected == again, "the day's own figures"


def test_what_was_not_heard_lately_holds_nothing_back() -> None:
    world = paced_world()
    assert "held_back_by_pacing" in view(world, 60)
    world.advance(HEARD_MS_MAX)
    world.index.spent.numbers.clear()
    assert view(world, 1) == [""]


def test_what_is_spent_elsewhere_holds_back_here() -> None:
    """A campaign on many sites with few readers each was heard of by none, and spent its day's budget by noon."""
    world = paced_world()
    view(world, 1)
    world.index.spent.set("camp", 60, day_window(world.clock.wall_ms(), "UTC").end_ms)
    assert view(world, 20).count("") <= 3
    world.advance(HEARD_MS_MAX)
    assert view(world, 20).count("") <= 3, "it needs not be asked for that"


def test_an_ad_server_that_has_just_started_holds_back_whom_it_never_heard() -> None:
    """At night, an hour without a reader ends it: each such start was a free round for every campaign of the site."""
    world = paced_world()
    world.index.spent.set("camp", 60, day_window(world.clock.wall_ms(), "UTC").end_ms)
    assert "camp" not in world.actor("adserver", SITE)._pacing._book.monies
    assert view(world, 20) == ["held_back_by_pacing"] * 20


def test_the_share_that_a_campaign_tells_grows_with_its_spend_and_is_told_in_steps() -> None:
    world = paced_world(budget=50 * PRICE)
    shares: list[int | None] = []
    for _ in range(30):
        view(world, 1)
        shares.append(world.index.spent.get("camp"))
    spent = world.ask("campaign", "camp", m.GetCampaign())
    assert isinstance(spent, m.CampaignInfo)
    assert shares[-1] == (spent.spent_micros + spent.reserved_micros) * 100 // spent.daily_budget_micros > 0
    world.advance(DAY_MS)
    assert world.index.spent.get("camp") is None, "of its next day it has spent nothing"


def test_when_visitors_come_is_remembered_over_a_restart() -> None:
    world = paced_world()
    view(world, 4, gap_ms=HOUR_MS)
    known = world.actor("site", SITE)._state.traffic
    assert known is not None
    assert known.updates >= 3
    world.restart()
    world.advance(30_000)
    assert world.actor("adserver", SITE)._pacing._shape.today[:3] == known.today[:3]
    world.advance(DAY_MS)
    world.classify()
    world.advance(3_000)
    view(world, 1)
    learned = world.actor("adserver", SITE)._pacing._shape
    assert (learned.days, learned.by_day) == (1, True), "the day that the restart fell into has ended once"
