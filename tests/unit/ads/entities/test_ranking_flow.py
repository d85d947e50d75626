"""What categories are worth on a site: learned from beacons, kept, and what auctions make of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from ads_world import AUTO, HOUR_MS, PAGE, SITE, TRAVEL, TRAVEL_PARENT, World, serving_world

from node.ads import messages as m
from node.ads.entities.auctioneer import BIDDER_TIMEOUT_MS, DEBOUNCE_MS, PERIOD_MS
from node.ads.entities.category_ranking import IDLE_MS, RENEW_MS, CategoryRanking
from node.ads.entities.ranker import FLUSH_MS, KIND
from node.ads.ranking import CategoryRank, ranker_id
from node.ads.taxonomy import load_taxonomy
from node.core.hashing import stripe_of
from node.core.ids import EntityRef
from node.singleton.campaign_directory import SETTLE_MS
from node.store.port import Absent, ReadState, Record
from node.wire.codec import CODEC

FIVE = (("52", 0.9), ("132", 0.8), ("186", 0.7), ("210", 0.6), ("483", 0.5))
CLICKS, SEEN = 3, 20


def record(world: World, category: str = TRAVEL) -> CategoryRank | None:
    found = world.store.apply([ReadState(KIND, ranker_id(category, SITE))])[0]
    assert isinstance(found, Record | Absent), found
    state = CODEC.decode_record(found.body) if isinstance(found, Record) else None
    assert state is None or isinstance(state, CategoryRank)
    return state


def rank(world: World, category: str = TRAVEL) -> m.Rank:
    told = world.ask(KIND, ranker_id(category, SITE), m.GetRank())
    assert isinstance(told, m.Rank), told
    return told


def visited(world: World, slot: str = "top") -> World:
    """Twenty impressions and three clicks."""
    for number in range(SEEN):
        won = world.winner(slot=slot)
        assert won is not None
        world.beacon(won.impression_query)
        if number < CLICKS:
            world.beacon(won.click_query, "click")
    return world


def scores(world: World) -> dict[str, float]:
    view = world.index.read(f"{SITE}|top")
    return {c.category: c.category_score for c in view.candidates} if view else {}


def again(world: World) -> None:
    world.tell("auctioneer", SITE, m.Reevaluate((), "test"))
    world.advance(DEBOUNCE_MS + BIDDER_TIMEOUT_MS + 200)


def pending(world: World) -> tuple[str, ...]:
    return tuple(world.ask("site", SITE, m.GetSite()).pending)


def test_what_is_seen_and_clicked_is_kept_in_one_write() -> None:
    world = visited(serving_world())
    assert record(world) is None, "not one write for each impression"
    world.advance(FLUSH_MS)
    kept = record(world)
    assert kept is not None
    assert (kept.wins, kept.clicks) == pytest.approx((SEEN, CLICKS), rel=0.001)
    assert kept.revenue_micros > 0
    world.restart()
    assert rank(world).mean == pytest.approx((1 + CLICKS) / (2 + SEEN), rel=0.001)
    assert rank(world, AUTO).mean == 0.5, "of another category nothing was learned"


def test_a_repeated_beacon_and_a_pin_teach_nothing() -> None:
    world = serving_world()
    won = world.winner()
    assert won is not None
    world.beacon(won.impression_query)
    world.beacon(won.impression_query)
    request = m.BatchSelect(PAGE, SITE, (m.SlotRequest("top", 300, 250, won.creative),))
    kept = world.ask("adserver", SITE, request).outcomes[0].winner
    world.beacon(kept.impression_query)
    world.advance(FLUSH_MS)
    found = record(world)
    assert found is not None
    assert found.wins == pytest.approx(1, rel=0.001)


def test_candidates_carry_the_learned_weight_of_their_category_less_for_each_step_up() -> None:
    world = serving_world()
    world.campaign("above", TRAVEL_PARENT)
    world.advance(SETTLE_MS + 3_000)
    world.approve("above-1")
    world.advance(3_000)
    assert scores(world) == pytest.approx({TRAVEL: 0.5, TRAVEL_PARENT: 0.35})
    visited(world)
    before = rank(world)
    world.advance(3 * PERIOD_MS + 10_000)
    learned = {category: rank(world, category).mean for category in (TRAVEL, TRAVEL_PARENT)}
    assert min(learned.values()) < 0.3
    decayed = {TRAVEL: learned[TRAVEL], TRAVEL_PARENT: 0.7 * learned[TRAVEL_PARENT]}
    assert scores(world) == pytest.approx(decayed, rel=0.01)
    assert rank(world).draw != before.draw, "categories are ranked by another guess each time"


def test_a_silent_ranker_holds_up_no_auction() -> None:
    world = serving_world()
    ranker = EntityRef(KIND, ranker_id(TRAVEL, SITE))
    bidder = EntityRef("category-bidder", f"{TRAVEL}|{stripe_of(SITE)}")
    assert ranker.shard not in {EntityRef("site", SITE).shard, EntityRef("campaign", "camp").shard, bidder.shard}
    world.silence(ranker)
    world.advance(PERIOD_MS)
    before = world.index.read(f"{SITE}|top")
    again(world)
    after = world.index.read(f"{SITE}|top")
    assert before is not None
    assert after is not None
    assert after.version_ms > before.version_ms
    assert scores(world) == {TRAVEL: 0.5}, "its last word"


def several(world: World) -> World:
    """A page of five categories."""
    world.classifier.table["several"] = FIVE
    world.advance(SETTLE_MS + 2_000)
    world.site()
    world.advertiser()
    return world


def test_a_category_on_which_nobody_bids_takes_no_place_from_one_on_which_somebody_does() -> None:
    ranking, names = CategoryRanking(SITE), [category for category, _ in FIVE]
    best = tuple(names[:3])
    assert ranking.chosen(FIVE, 0) == best
    reach = load_taxonomy().expand_with_hops(best)
    nothing = {category: m.CategoryBidResponse(category, (), 0, complete=True) for category in reach}
    late = {best[0]: m.CategoryBidResponse(best[0], (), 0, complete=False)}
    below = {best[1]: m.CategoryBidResponse(best[1], (), 1, complete=True)}
    ranking.found(best, nothing | late | below, 0)
    assert ranking.chosen(FIVE, 1) == (names[0], names[1], names[3]), "who is late or below the floor may bid yet"
    ranking.found(best, nothing, 1)
    assert ranking.chosen(FIVE, 2) == (names[3], names[4], names[0])
    ranking.changed((names[2],))
    assert ranking.chosen(FIVE, 3) == (names[3], names[4], names[0], names[2]), "a campaign that changed is heard"
    ranking.settled()
    assert ranking.chosen(FIVE, 1 + IDLE_MS) == best, "for a while only: a change may have been missed"


def test_a_campaign_that_changes_is_auctioned_whatever_its_category_is_worth() -> None:
    """And a campaign of the three best is in the pool of the page whatever comes."""
    world = several(World())
    for name, (category, _) in zip("abc", FIVE, strict=False):
        world.campaign(name, category)
    world.advance(3_000)
    world.classify(text="several things")
    world.advance(3_000)
    assert pending(world) == ("a-1", "b-1", "c-1")
    world.approve("a-1", "b-1", "c-1")
    world.campaign("last", FIVE[-1][0], cpm=9_000_000)
    world.advance(3_000)
    assert pending(world) == ("last-1",)
    world.approve("last-1")
    again(world)
    assert world.index.creatives() >= {"a-1", "b-1", "c-1"}
    world.ask("campaign", "last", m.UpdateCampaign(max_cpm_micros=3_000_000))
    world.advance(3_000)
    view = world.index.read(f"{SITE}|top")
    assert view is not None
    assert [c.cpm_micros for c in view.candidates if c.campaign_id == "last"] == [3_000_000]


def test_a_page_that_is_judged_anew_while_it_is_auctioned_gets_an_auction_of_its_own() -> None:
    world = serving_world()
    world.campaign("auto", AUTO)
    world.advance(3_000)
    world.silence(EntityRef("category-bidder", f"{TRAVEL}|{stripe_of(SITE)}"))
    world.tell("auctioneer", SITE, m.Reevaluate((), "test"))
    world.advance(DEBOUNCE_MS + 200)
    world.classify(text="a text about cars")
    world.advance(3_000)
    assert "auto-1" in pending(world)


def test_ranks_are_forgotten_when_their_site_is() -> None:
    world = serving_world()
    name = ranker_id(TRAVEL, SITE)
    assert world.ask(KIND, name, m.ForgetRank()) == m.Accepted(changed=False)
    visited(world)
    assert world.ask(KIND, name, m.ForgetRank()) == m.Accepted(), "what is not written yet is not written any more"
    world.advance(FLUSH_MS + 1_000)
    assert record(world) is None
    visited(world)
    world.advance(FLUSH_MS + 1_000)
    assert record(world) is not None
    assert world.ask(KIND, name, m.ForgetRank()) == m.Accepted()
    assert record(world) is None
    visited(world)
    world.advance(FLUSH_MS + 1_000)
    kept = record(world)
    assert kept is not None
    assert kept.wins == pytest.approx(SEEN, rel=0.001)


def test_an_operator_sees_what_auctions_go_by() -> None:
    world = visited(serving_world())
    world.advance(2 * PERIOD_MS + 10_000)
    tallies: Any = world.ask("auctioneer", SITE, m.GetTallies())
    (told,) = tallies.ranks
    assert told.category == TRAVEL
    assert told.mean == pytest.approx((1 + CLICKS) / (2 + SEEN), rel=0.01)
    assert msgspec.structs.asdict(told)["told_ms"] <= world.clock.wall_ms()


def test_a_rank_that_was_told_while_the_clock_was_ahead_is_asked_for_again_once_it_is_back() -> None:
    world = serving_world()
    world.clock.step_wall_ms(HOUR_MS)
    world.classify()
    world.advance(RENEW_MS)
    again(world)

    def told_ms() -> int:
        tallies: Any = world.ask("auctioneer", SITE, m.GetTallies())
        return next(heard.told_ms for heard in tallies.ranks if heard.category == TRAVEL)

    ahead_ms = told_ms()
    world.clock.step_wall_ms(-HOUR_MS)
    assert ahead_ms > world.clock.wall_ms()
    world.advance(RENEW_MS)
    again(world)
    assert told_ms() <= world.clock.wall_ms()
