"""Floors from end to end: auctions report demand, the site learns, bidders and page views hear of it."""

from typing import Any

from ads_world import PAGE, SITE, TRAVEL, World, serving_world

from node.ads import messages as m
from node.ads.entities.site_learning import PERIOD_MS
from node.ads.floors.quality import Placement
from node.ads.floors.site_floors import SiteFloors
from node.core.hashing import stripe_of
from node.core.ids import EntityRef

UNIT = 1_000_000


def floors(world: World) -> SiteFloors | None:
    state: Any = world.actor("site", SITE)._state
    found: SiteFloors | None = state.floors
    return found


def rounds(world: World) -> int:
    auctioneer: Any = world.actor("auctioneer", SITE)
    count: int = auctioneer._rounds
    return count


def test_a_lone_bidder_pays_just_below_its_bid_once_that_was_learned() -> None:
    world = serving_world(cpm=2 * UNIT)
    winner = world.winner()
    assert winner is not None
    assert winner.price_micros == 100_000, "the publisher's floor, before anything was learned"
    world.advance(PERIOD_MS + 3_000)
    learned = floors(world)
    assert learned is not None
    assert learned.category_floors_micros == {TRAVEL: 1_980_000}
    winner = world.winner()
    assert winner is not None
    assert winner.price_micros == 1_980_000


def test_learned_floors_outlive_the_process() -> None:
    world = serving_world(cpm=2 * UNIT)
    world.advance(PERIOD_MS + 3_000)
    before = floors(world)
    world.restart()
    world.advance(30_000)
    assert floors(world) == before
    winner = world.winner()
    assert winner is not None
    assert winner.price_micros == 1_980_000


def test_a_tick_that_changes_no_floor_auctions_nothing() -> None:
    """TR09, OP15. Unchanged floors that were pushed had the whole site auctioned at every tick."""
    world = serving_world(cpm=2 * UNIT)
    world.advance(2 * PERIOD_MS)
    counts = []
    for _ in range(3):
        before = rounds(world)
        world.advance(PERIOD_MS)
        counts.append(rounds(world) - before)
    assert counts == [3, 3, 3], "the periodic auctions, every five minutes, and no other"


def test_what_waits_for_approval_moves_no_floor() -> None:
    world = serving_world(cpm=2 * UNIT)
    world.campaign("rich", cpm=50 * UNIT)
    world.advance(2 * PERIOD_MS)
    learned = floors(world)
    assert learned is not None
    assert learned.category_floors_micros == {TRAVEL: 1_980_000}
    world.approve("rich-1")
    world.advance(2 * PERIOD_MS)
    learned = floors(world)
    assert learned is not None
    assert learned.category_floors_micros[TRAVEL] <= 1_980_000, "below the second bid, now that there are two"


def test_an_impression_teaches_the_category_that_it_was_won_under() -> None:
    world = serving_world(cpm=2 * UNIT)
    world.campaign("other", cpm=3 * UNIT)
    world.advance(3_000)
    world.approve("other-1")
    world.advance(2 * PERIOD_MS)
    learned = floors(world)
    assert learned is not None
    assert learned.categories[TRAVEL].phase == "sweep"
    for _ in range(3):
        winner = world.winner()
        assert winner is not None
        assert world.beacon(winner.impression_query).verdict == "counted"
    world.advance(PERIOD_MS)
    learned = floors(world)
    assert learned is not None
    assert sum(result.impressions for result in learned.categories[TRAVEL].results) == 3
    assert sum(result.impressions for result in learned.site.results) == 0


def test_another_least_floor_starts_the_learning_anew() -> None:
    world = serving_world(cpm=2 * UNIT)
    world.advance(PERIOD_MS + 3_000)
    assert isinstance(world.ask("site", SITE, m.UpdateSite(floor_micros=500_000)), m.SiteInfo)
    world.advance(3_000)
    assert floors(world) is None
    winner = world.winner(PAGE)
    assert winner is not None
    assert winner.price_micros == 500_000
    world.advance(2 * PERIOD_MS)
    winner = world.winner(PAGE)
    assert winner is not None
    assert winner.price_micros == 1_980_000


def test_a_late_bidder_leaves_the_floor_of_its_category_alone() -> None:
    world = serving_world(cpm=2 * UNIT)
    world.advance(PERIOD_MS + 3_000)
    before = floors(world)
    assert before is not None
    world.silence(EntityRef("category-bidder", f"{TRAVEL}|{stripe_of(SITE)}"))
    world.advance(PERIOD_MS)
    after = floors(world)
    assert after is not None
    assert after.category_floors_micros == before.category_floors_micros


def test_a_slots_own_floor_binds_it_whatever_the_sites_is() -> None:
    world = serving_world(cpm=2 * UNIT)
    world.ask("site", SITE, m.UpdateSite(floor_micros=5 * UNIT))
    world.advance(3_000)
    assert world.winner() is None
    assert isinstance(world.ask("site", SITE, m.UpdateSite(slot_floors=(("top", 750_000),))), m.SiteInfo)
    world.advance(3_000)
    winner = world.winner()
    assert winner is not None
    assert winner.price_micros == 750_000
    assert world.winner(slot="side") is None, "the other slot has the site's floor"
    world.advance(PERIOD_MS)
    winner = world.winner()
    assert winner is not None
    assert winner.price_micros == 750_000, "nor is it learned above"
    world.ask("site", SITE, m.UpdateSite(clear_slot_floors=("top",)))
    world.advance(3_000)
    assert world.winner() is None


def test_an_impression_in_a_slot_with_its_own_floor_teaches_nothing() -> None:
    world = serving_world(cpm=2 * UNIT)
    world.campaign("other", cpm=3 * UNIT)
    world.advance(3_000)
    world.approve("other-1")
    world.ask("site", SITE, m.UpdateSite(slot_floors=(("top", 200_000),)))
    world.advance(2 * PERIOD_MS)
    for slot in ("top", "side"):
        winner = world.winner(slot=slot)
        assert winner is not None
        assert world.beacon(winner.impression_query).verdict == "counted"
    world.advance(PERIOD_MS)
    learned = floors(world)
    assert learned is not None
    assert sum(result.impressions for result in learned.categories[TRAVEL].results) == 1


def test_a_slot_that_there_is_not_has_no_floor() -> None:
    world = serving_world()
    refused = world.ask("site", SITE, m.UpdateSite(slot_floors=(("nowhere", 1),)))
    assert "nowhere" in refused.detail


def test_a_bid_that_was_cut_below_its_own_floor_serves_again_within_seconds() -> None:
    """TR16. A floor at or above the only bid: until the next tick, a quarter of an hour, nothing would be served."""
    world = serving_world(cpm=2 * UNIT)
    world.advance(PERIOD_MS + 3_000)
    learned = floors(world)
    assert learned is not None
    assert learned.category_floors_micros == {TRAVEL: 1_980_000}
    world.ask("campaign", "camp", m.UpdateCampaign(max_cpm_micros=UNIT))
    world.advance(8_000)
    winner = world.winner()
    assert winner is not None
    assert winner.price_micros == 100_000
    world.advance(PERIOD_MS)
    winner = world.winner()
    assert winner is not None
    assert winner.price_micros == 990_000


def placed(world: World, **placements: Placement) -> None:
    assert world.ask("site", SITE, m.ClassifyPage(PAGE, "a text about travel", "", (), placements)).accepted
    world.advance(5_000)


def test_a_slot_is_asked_as_much_of_what_was_learned_as_it_is_worth_and_never_less_than_the_publishers() -> None:
    world = serving_world(cpm=2 * UNIT)
    world.advance(PERIOD_MS + 3_000)
    footer, article = Placement(region="footer"), Placement(1.0, 1.0, "article", 1.0)
    placed(world, side=footer, top=article, unknown=footer)
    prices = {slot: won.price_micros for slot in ("top", "side") if (won := world.winner(slot=slot))}
    assert prices == {"top": 1_980_000, "side": 1_089_000}, "0.05 is worth 55 %, a good slot no more than was learned"
    assert world.explain(slot="side").floor_micros == 1_089_000
    assert world.ask("site", SITE, m.GetSite()).qualities == {"side": 0.05, "top": 1.0}
    world.ask("site", SITE, m.UpdateSite(floor_micros=1_500_000))
    world.advance(PERIOD_MS + 5_000)
    won = world.winner(slot="side")
    assert won is not None
    assert won.price_micros == 1_500_000
    world.ask("site", SITE, m.UpdateSite(slot_floors=(("side", 1_700_000),)))
    world.advance(5_000)
    won = world.winner(slot="side")
    assert won is not None
    assert won.price_micros == 1_700_000, "the publisher's own word for a slot is not discounted"


def test_a_bid_that_only_a_poor_slot_takes_is_asked_for_and_served_there_alone() -> None:
    world = serving_world(cpm=2 * UNIT)
    world.advance(PERIOD_MS + 3_000)
    world.campaign("cheap", cpm=1_200_000)
    world.advance(3_000)
    assert "cheap-1" not in world.ask("site", SITE, m.GetSite()).pending, "below what was learned"
    placed(world, side=Placement(region="footer"))
    assert "cheap-1" in world.ask("site", SITE, m.GetSite()).pending
    world.approve("cheap-1")
    world.advance(3_000)
    assert {won.campaign for _ in range(20) if (won := world.winner(slot="top"))} == {"camp"}
    assert {won.campaign for _ in range(20) if (won := world.winner(slot="side"))} == {"camp", "cheap"}


def test_measuring_nearly_the_same_again_is_no_news() -> None:
    world = serving_world(cpm=2 * UNIT)
    placed(world, side=Placement(region="aside"))
    facts, seen = rounds(world), world.ask("site", SITE, m.GetSite()).qualities
    placed(world, side=Placement(above_fold=0.1, region="aside"))
    assert world.ask("site", SITE, m.GetSite()).qualities == seen == {"side": 0.15}
    assert rounds(world) - facts == 1, "the page itself was judged again"
