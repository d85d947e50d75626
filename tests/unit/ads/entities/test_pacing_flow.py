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
    elsewhere = m.Reserve("r", 600 * PRICE, world.clock.wall_ms(), "camp-1")
    assert world.ask("campaign", "camp", elsewhere).outcome == "reserved"
    assert world.ask("campaign", "camp", m.Confirm("r", "elsewhere.example", "camp-1", 600 * PRICE)).counted
    assert view(world, 20).count("") <= 3
    world.advance(HEARD_MS_MAX)
    assert view(world, 20).count("") <= 3, "it needs not be asked for that"


def test_an_ad_server_that_has_just_started_holds_back_whom_it_never_heard() -> None:
    """At night, an hour without a reader ends it: each such start was a free round for every campaign of the site."""
    world = paced_world()
    world.index.spent.set("camp", 600, day_window(world.clock.wall_ms(), "UTC").end_ms)
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
    assert shares[-1] == (spent.spent_micros + spent.reserved_micros) * 1_000 // spent.daily_budget_micros > 0
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


# ---- a campaign that knows when its readers come

EVEN = (60,) * 24


def knowing_world(*others: str) -> World:
    """The minute after a midnight, at which the first impression of a day's thousand is due, and no more."""
    world = paced_world()
    world.tell("campaign", "camp", m.ReadersCame(world.clock.wall_ms() // DAY_MS - 1, EVEN))
    for name in others:
        world.campaign(name, cpm=FLOOR + 10_000)
        world.approve(f"{name}-1")
    world.advance(3_000)
    return world


def due_by_now(world: World) -> float:
    """Impressions, of a thousand."""
    return 1_000 * (world.clock.wall_ms() % DAY_MS) / DAY_MS


def test_a_site_is_told_when_an_impression_is_not_due_and_asks_again_when_it_is() -> None:
    """By its own reckoning ten are due at any time: it can't tell a quiet night from one that has not begun."""
    world = knowing_world()
    for _ in range(5):
        seen = view(world, 120)
        assert set(seen) == {"", "held_back_by_pacing"}
        spent = world.ask("campaign", "camp", m.GetCampaign())
        ahead = (spent.spent_micros + spent.reserved_micros) / PRICE - due_by_now(world)
        assert -2 < ahead <= 0.51


def test_who_refuses_is_not_asked_at_each_page_view() -> None:
    world = knowing_world()
    asked = []
    reserve = world.actor("campaign", "camp")._too_early

    def counted(*args: object) -> object:
        asked.append(args)
        return reserve(*args)

    world.actor("campaign", "camp")._too_early = counted
    served = view(world, 400, gap_ms=100).count("")
    assert len(asked) <= served + 3


def test_what_is_not_due_is_explained_and_another_campaign_is_shown_instead() -> None:
    world = knowing_world("other")
    won = [world.select().outcomes[0].winner for _ in range(12)]
    names = [winner.campaign for winner in won if winner]
    assert len(names) == 12
    assert names.count("camp") <= 1
    reasons = {row.reason for _ in names for row in world.explain(slot="top").candidates if row.campaign_id == "camp"}
    assert "held_back_by_pacing" in reasons


def test_a_page_that_nobody_was_due_for_was_held_back_by_pacing() -> None:
    world = knowing_world()
    assert world.select().outcomes[0].reason == ""
    refused = world.select().outcomes[0]
    assert refused.reason == "held_back_by_pacing"
    assert world.explain(slot="top").reason == "held_back_by_pacing"
    assert stats(world).pacing_skipped == 1
    assert stats(world).budget_exhausted == 0


def test_a_site_that_does_not_pace_is_refused_nothing() -> None:
    world = knowing_world()
    world.ask("site", SITE, m.UpdateSite(paced=False))
    world.advance(2_000)
    assert view(world, 40) == [""] * 40


def test_a_campaign_is_told_of_its_readers_when_a_sites_day_has_ended() -> None:
    """Also one that has been out of the pools for want of money, and it knows them after a restart."""
    world = paced_world()
    today = world.clock.wall_ms() // DAY_MS
    view(world, 24, gap_ms=HOUR_MS)
    world.classify()
    world.advance(3_000)
    view(world, 1)
    world.index.remove(SITE, f"{SITE}|top")
    world.advance(HOUR_MS)
    readers = world.actor("campaign", "camp")._state.readers
    assert (readers.day, sum(readers.today)) == (today, 24)
    world.restart()
    world.advance(30_000)
    assert world.actor("campaign", "camp")._state.readers == readers
    told = world.ask("campaign", "camp", m.Reserve("r", PRICE, world.clock.wall_ms(), "camp-1")).money
    assert told.passed == pytest.approx((world.clock.wall_ms() % DAY_MS) / DAY_MS, abs=0.01)


def test_a_day_that_was_not_seen_from_its_beginning_is_not_told_of() -> None:
    world = paced_world()
    world.advance(5 * HOUR_MS)
    view(world, 19, gap_ms=HOUR_MS)
    world.classify()
    world.advance(3_000)
    view(world, 1)
    world.advance(HOUR_MS)
    assert world.actor("campaign", "camp")._state.readers.day == -1
