"""Targeting through all entities: where and when a campaign bids, what it is worth there, and who is told why not."""

from __future__ import annotations

import pytest
from ads_world import AUTO, CARS, PAGE, SITE, TRAVEL, TRAVEL_PARENT, World, serving_world

from node.ads import explain
from node.ads import messages as m
from node.ads import targeting as t
from node.ads.places import load_gazetteer, place_reach
from node.ads.view import TurnedAway
from node.singleton.campaign_directory import SETTLE_MS

KAMAKURA = f"https://{SITE}/kamakura"
PARIS = f"https://{SITE}/paris"
BLANK = f"https://{SITE}/blank"
HOUR_MS = 3_600_000


def world_with(targeting: t.Targeting, name: str = "aimed", *categories: str) -> World:
    """A site of travel pages about Kamakura, Paris and nowhere; one campaign anywhere, one with a targeting."""
    world = serving_world()
    for url, text in ((KAMAKURA, "travel to Kamakura"), (PARIS, "travel to Paris")):
        world.classify(url, text)
    world.campaign(name, *categories, cpm=9_000_000, targeting=targeting)
    world.advance(3_000)
    world.approve(f"{name}-1")
    world.advance(3_000)
    return world


def winners(world: World, url: str, views: int = 20) -> set[str]:
    return {won.campaign for _ in range(views) if (won := world.winner(url))}


def reasons(world: World, url: str) -> dict[str, str]:
    return {c.campaign_id: c.reason for c in world.explain(page=url).candidates if c.outcome == explain.FILTERED}


def away_from(world: World, url: str) -> tuple[TurnedAway, ...]:
    """Whom the page's auction turned away, as the decision of a page view keeps it."""
    world.winner(url)
    return tuple(world.explain(page=url).turned_away)


def slot_why(world: World, slot: str = "top") -> tuple[str, str]:
    explained = world.ask("site", SITE, m.ExplainCoverage())
    found = next(each for each in explained.slots if each.slot == slot)
    return found.reason, found.why


def test_a_campaign_that_wants_a_place_is_served_on_pages_about_it_only() -> None:
    world = world_with(t.Targeting(places=("JP",)))
    assert world.index.creatives() == {"camp-1", "aimed-1"}, "one pool serves all the pages"
    assert "aimed" in winners(world, KAMAKURA)
    assert winners(world, PARIS) == {"camp"}
    assert winners(world, PAGE) == {"camp"}, "a page about nowhere is about no place that is wanted"
    assert reasons(world, PARIS) == reasons(world, PAGE) == {"aimed": t.PLACE_NOT_ALLOWED}
    assert world.explain(page=KAMAKURA).page_places == ("GN1860672",)


def test_the_distance_to_the_place_that_is_wanted_costs_score_and_stays_recomputable() -> None:
    near, far = (world_with(t.Targeting(places=(code,))) for code in ("GN1860672", "JP"))
    means = []
    for world in (near, far):
        world.winner(KAMAKURA)
        drawn = {c.campaign_id: c for c in world.explain(page=KAMAKURA).candidates}
        means.append(drawn["aimed"].ctr_mean)
        assert drawn["camp"].ctr_mean == pytest.approx(0.5), "who wants no place pays for no distance"
    assert means == pytest.approx([0.5, 0.5 * 0.7**2])


def test_a_blocked_category_keeps_a_campaign_off_the_pages_below_it() -> None:
    world = world_with(t.Targeting(blocked_categories=(TRAVEL_PARENT,)), "picky", TRAVEL, AUTO)
    assert winners(world, PAGE) == {"camp"}
    assert TurnedAway("picky", t.CATEGORY_BLOCKED) in away_from(world, PAGE)
    world.classify(CARS, "a text about cars")
    world.advance(3_000)
    world.approve("picky-1")
    world.advance(3_000)
    assert winners(world, CARS) == {"picky"}
    assert winners(world, PAGE) == {"camp"}


def test_a_campaign_bids_on_the_sites_that_it_names() -> None:
    world = world_with(t.Targeting(sites=("other.example",)))
    assert world.index.creatives() == {"camp-1"}
    assert TurnedAway("aimed", t.SITE_NOT_ALLOWED) in away_from(world, PAGE)
    world.ask("campaign", "aimed", m.UpdateCampaign(sites=("other.example", SITE)))
    world.advance(3_000)
    assert "aimed" in winners(world, PAGE), "a site that is added is auctioned within seconds"
    world.ask("campaign", "aimed", m.UpdateCampaign(sites=("other.example",)))
    world.run()
    assert world.index.creatives() == {"camp-1"}, "a site that is taken away is left before any auction"


def test_a_campaign_bids_where_its_readers_are_by_the_publishers_word() -> None:
    world = world_with(t.Targeting(audience=("JP",)))
    assert world.index.creatives() == {"camp-1"}, "a site that says nothing has no such readers"
    assert TurnedAway("aimed", t.AUDIENCE_NOT_ALLOWED) in away_from(world, PAGE)
    kamakura = tuple(place_reach(load_gazetteer(), ("GN1860672",)).items())
    assert world.ask("site", SITE, m.UpdateSite(audience=kamakura)).audience == kamakura
    world.advance(3_000)
    world.approve("aimed-1")
    world.advance(3_000)
    assert "aimed" in winners(world, PAGE), "what is wanted is where that lies in"
    world.ask("campaign", "aimed", m.UpdateCampaign(audience=("JP-13",)))
    world.advance(3_000)
    assert winners(world, PAGE) == {"camp"}
    world.ask("campaign", "aimed", m.UpdateCampaign(audience=()))
    world.advance(3_000)
    assert "aimed" in winners(world, PAGE)
    world.ask("campaign", "aimed", m.UpdateCampaign(audience=("JP",)))
    assert world.ask("site", SITE, m.UpdateSite(audience=())).audience == ()
    world.restart()
    world.advance(SETTLE_MS + 5_000)
    assert world.index.creatives() == {"camp-1"}


def test_another_targeting_replaces_what_stands_in_the_pools() -> None:
    world = world_with(t.Targeting(places=("JP",)))
    changed = world.ask("campaign", "aimed", m.UpdateCampaign(places=("FR",)))
    assert (changed.changed, changed.targeting.places) == (True, ("FR",))
    world.advance(3_000)
    assert "aimed" in winners(world, PARIS)
    assert winners(world, KAMAKURA) == {"camp"}
    assert world.ask("campaign", "aimed", m.UpdateCampaign(places=("FR",))).changed is False
    world.ask("campaign", "aimed", m.UpdateCampaign(places=()))
    world.advance(3_000)
    assert "aimed" in winners(world, KAMAKURA)
    assert "aimed" in winners(world, PAGE), "an empty list lifts the restriction"
    world.restart()
    world.advance(3_000)
    assert world.ask("campaign", "aimed", m.GetCampaign()).targeting.places == ()


def test_a_slot_that_only_the_targeting_keeps_empty_says_so_and_names_the_campaign() -> None:
    world = World()
    world.advance(20_000)
    world.site()
    world.advertiser()
    world.campaign("aimed", targeting=t.Targeting(places=("JP",)))
    world.campaign("far", targeting=t.Targeting(sites=("other.example",)))
    world.classify()
    world.advance(3_000)
    assert away_from(world, PAGE) == (TurnedAway("aimed", t.PLACE_NOT_ALLOWED), TurnedAway("far", t.SITE_NOT_ALLOWED))
    reason, why = slot_why(world)
    assert reason == "turned_away"
    assert "aimed (place_not_allowed), far (site_not_allowed)" in why


def test_a_schedule_opens_and_closes_on_time_without_any_event() -> None:
    world = serving_world()
    now_ms = world.clock.wall_ms()
    begin, end = now_ms + 10 * 60_000, now_ms + HOUR_MS
    world.campaign("timed", cpm=9_000_000, targeting=t.Targeting(start_ms=begin, end_ms=end))
    world.approve("timed-1")
    assert world.ask("campaign", "timed", m.GetCampaign()).standing == "scheduled"
    world.advance(begin - world.clock.wall_ms() - 1)
    assert world.index.creatives() == {"camp-1"}
    world.advance(3_001)
    assert world.ask("campaign", "timed", m.GetCampaign()).standing == "active"
    assert "timed" in winners(world, PAGE), "served seconds after its begin"
    world.advance(end - world.clock.wall_ms())
    assert world.index.creatives() == {"camp-1"}, "gone from the pools at its end"
    assert world.ask("campaign", "timed", m.GetCampaign()).standing == "ended"
    outcome = world.ask("campaign", "timed", m.Reserve("r", 1_000, world.clock.wall_ms(), "timed-1"))
    assert outcome.outcome == m.NOT_ACTIVE, "whatever a pool that came late says"


def test_a_page_without_a_category_goes_to_those_who_want_such_and_to_no_others() -> None:
    world = world_with(t.Targeting(unmatched=True), "filler", AUTO)
    world.classify(BLANK, "nothing that anybody knows")
    world.advance(3_000)
    world.approve("filler-1")
    world.advance(3_000)
    assert winners(world, BLANK) == {"filler"}
    assert winners(world, PAGE) == {"camp"}
    assert reasons(world, BLANK) == {"camp": explain.WRONG_CATEGORY}
    assert winners(world, f"https://{SITE}/never-seen") == set(), "not judged is not without a category"
    world.ask("campaign", "filler", m.UpdateCampaign(unmatched=False))
    world.advance(3_000)
    assert winners(world, BLANK) == set()
