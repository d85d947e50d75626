"""Auctions: who is asked, what absence means, what a resend, a stream of changes and a growing site do."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from ads_world import AUTO, CARS, HOUR_MS, PAGE, SITE, TRAVEL, TRAVEL_PARENT, World, serving_world

from node.actors.actor import Failed
from node.ads import messages as m
from node.ads.bidbook import QUOTE_AGE_MS_MAX
from node.ads.entities.auctioneer import DEBOUNCE_MS, PERIOD_MS
from node.ads.entities.page_shelf import PageShelfState
from node.ads.entities.site import RESEND_PERIOD_MS
from node.ads.entities.site_learning import PERIOD_MS as FLOOR_PERIOD_MS
from node.ads.entities.site_state import SiteState
from node.core import limits
from node.core.hashing import stripe_of
from node.core.ids import EntityRef
from node.flows.messages import GetCoverage, ReplayReport, ReplaySite
from node.singleton.campaign_directory import SETTLE_MS
from node.wire.codec import CODEC

BIDDER = f"{TRAVEL}|{stripe_of(SITE)}"
ASK = m.CategoryBidRequest(SITE, ((300, 250),), 0)


def rounds(world: World) -> int:
    return int(world.actor("auctioneer", SITE)._rounds)


def test_a_bidder_is_incomplete_until_it_has_all_quotes() -> None:
    world = serving_world()
    ref = EntityRef("campaign", "camp")
    assert world.ask("category-bidder", BIDDER, ASK).complete
    world.silence(ref)
    bidder = EntityRef("category-bidder", BIDDER)
    assert bidder.shard != ref.shard
    world.silence(bidder)
    world.unsilence(bidder)
    answer = world.ask("category-bidder", BIDDER, ASK)
    assert (answer.complete, answer.offers) == (False, ())
    world.advance(SETTLE_MS + 2_000)
    answer = world.ask("category-bidder", BIDDER, ASK)
    assert (answer.complete, answer.missing) == (False, ("camp",))
    world.unsilence(ref)
    world.advance(3_000)
    answer = world.ask("category-bidder", BIDDER, ASK)
    assert answer.complete
    assert [o.creative_id for o in answer.offers] == ["camp-1"]


def test_a_late_bidder_takes_nothing_away_and_is_asked_again() -> None:
    """TR06."""
    world = serving_world()
    bidder = EntityRef("category-bidder", BIDDER)
    world.silence(bidder)
    world.tell("auctioneer", SITE, m.Reevaluate((), "test"))
    world.advance(10_000)
    assert world.index.creatives() == {"camp-1"}
    won = world.winner()
    assert won is not None
    before = world.index.read(f"{SITE}|top")
    world.unsilence(bidder)
    world.advance(6_000)
    after = world.index.read(f"{SITE}|top")
    assert before is not None
    assert after is not None
    assert after.candidates[0].auction_id != before.candidates[0].auction_id, "auctioned again with its answer"


def test_a_campaign_that_is_not_offered_any_more_goes() -> None:
    world = serving_world()
    quote = world.ask("campaign", "camp", m.GetQuote())
    gone = msgspec.structs.replace(quote, active=False, as_of_ms=quote.as_of_ms + 1)
    world.tell("category-bidder", BIDDER, gone)
    world.tell("auctioneer", SITE, m.Reevaluate((PAGE,), "test"))
    world.advance(DEBOUNCE_MS + 1_000)
    assert world.index.creatives() == set()


def test_absence_is_known_also_after_the_auctioneer_has_restarted() -> None:
    """What was offered before need not be remembered: the view itself says what was put there."""
    world = serving_world()
    view = world.index.views[f"{SITE}|top"]
    ghost = msgspec.structs.replace(view.candidates[0], creative_id="ghost", campaign_id="ghost")
    world.index.views[f"{SITE}|top"] = msgspec.structs.replace(view, candidates=(*view.candidates, ghost))
    world.restart()
    world.advance(SETTLE_MS + 5_000)
    assert world.index.creatives() == {"camp-1"}


def test_a_campaign_that_loses_one_category_keeps_its_place_on_pages_of_another() -> None:
    """It is crowded out where bids are five times higher; the other page's pool is none of that auction's business."""
    world = World()
    world.advance(SETTLE_MS + 2_000)
    world.site()
    world.advertiser()
    world.campaign("both", TRAVEL, AUTO, cpm=1_000_000)
    world.classify()
    world.classify(CARS, "a text about cars")
    world.advance(3_000)
    world.approve("both-1")
    world.advance(3_000)
    assert world.winner(CARS) is not None
    world.campaign("whale", TRAVEL, cpm=90_000_000)
    world.advance(2_500)
    assert world.winner(CARS) is not None
    world.approve("whale-1")
    world.advance(3_000)
    won, cars = world.winner(PAGE), world.winner(CARS)
    assert won is not None
    assert cars is not None
    assert (won.creative, cars.creative) == ("whale-1", "both-1")


def test_a_new_campaign_and_a_higher_bid_show_within_seconds() -> None:
    world = serving_world()
    world.campaign("second", TRAVEL_PARENT)
    world.advance(3_000)
    assert world.ask("site", SITE, m.GetSite()).pending == ("second-1",)
    world.ask(
        "campaign",
        "second",
        m.AddCreative(m.CreativeSpec("second-2", "https://a/", "https://b/", 300, 250, "image/png")),
    )
    world.advance(3_000)
    assert world.ask("site", SITE, m.GetSite()).pending == ("second-1", "second-2")


def test_a_resend_causes_no_auction() -> None:
    world = serving_world()
    world.tell("site", SITE, m.GetSite())
    world.advance(FLOOR_PERIOD_MS + 10_000)  # its first floors are auctioned with
    count = rounds(world)
    site = world.actor("site", SITE)
    restore = m.RestoreClassifications(
        tuple(site._pages.all.values()), site._state.slots, site._state.floor_micros, "resend", False, True
    )
    assert world.ask("auctioneer", SITE, restore) == m.Restored(0, 1)
    world.advance(SETTLE_MS + 2_000)
    assert rounds(world) == count
    world.advance(RESEND_PERIOD_MS)
    assert rounds(world) - count <= 1, "the periodic auction and nothing else"


def test_a_stream_of_changes_does_not_put_the_auction_off() -> None:
    world = serving_world()
    count = rounds(world)
    for _ in range(40):
        world.tell("auctioneer", SITE, m.Reevaluate((), "flood"))
        world.advance(100)
    auctions = rounds(world) - count
    assert 3 <= auctions <= 5, "one a second, neither none nor one for each change"


def test_pages_behind_a_late_bidder_are_not_forgotten() -> None:
    """More pages than one round takes, all late, then the bidder is back: every page is auctioned, without a timer's
    help from elsewhere."""
    world = World()
    world.advance(SETTLE_MS + 2_000)
    world.site()
    world.advertiser()
    world.campaign("camp")
    for n in range(2 * limits.auction_round_pages_max + 10):
        world.classify(f"{PAGE}/{n}")
    world.advance(3_000)
    world.approve("camp-1")
    world.advance(4_000)
    bidder = EntityRef("category-bidder", BIDDER)
    auctioneer = world.actor("auctioneer", SITE)
    world.silence(bidder)
    world.tell("auctioneer", SITE, m.Reevaluate((), "test"))
    world.advance(6_000)
    assert len(auctioneer._dirty) + len(auctioneer._round.urls if auctioneer._round else ()) > 64
    world.unsilence(bidder)
    world.advance(8_000)
    assert not auctioneer._dirty
    assert not auctioneer._late
    assert auctioneer._round is None


def test_the_auctioneer_forgets_pages_that_the_site_has_no_more() -> None:
    world = serving_world()
    world.classify(CARS, "a text about cars")
    world.advance(2_000)
    assert set(world.actor("auctioneer", SITE)._pages) == {PAGE, CARS}
    world.advance(24 * HOUR_MS)
    world.classify(CARS, "a text about cars")
    world.advance(25 * HOUR_MS)
    assert set(world.actor("auctioneer", SITE)._pages) == {CARS}, "too old to be served, too old to be auctioned"
    assert world.ask("site", SITE, m.GetSite()).pages_fresh == 1


def test_old_classifications_ask_for_text_and_serve_nothing() -> None:
    """OP19."""
    world = serving_world()
    world.advance(49 * HOUR_MS)
    selected = world.select()
    assert selected.reclassify_in_ms == 0
    assert selected.outcomes[0].winner is None
    world.classify()
    world.advance(3_000)
    assert world.winner() is not None


def test_a_slot_that_nobody_knew_is_auctioned_after_its_first_request() -> None:
    """TR14, OP23."""
    world = serving_world()
    assert world.winner(slot="renamed") is None
    world.advance(3_000)
    won = world.winner(slot="renamed")
    assert won is not None
    assert won.creative == "camp-1"
    assert "renamed" in [slot.slot for slot in world.ask("site", SITE, m.AdServerStarted()).slots]


def test_slots_that_anybody_named_change_nothing_that_the_publisher_said() -> None:
    """A stranger's request must not spoil a site's coverage, nor what it was made with."""
    world = serving_world()
    before = world.ask("site", SITE, GetCoverage())
    assert world.winner(slot="evil") is None
    world.classify(slots=(m.SlotSpec("evil-too", 1, 1),))
    world.advance(3_000)
    assert world.ask("site", SITE, GetCoverage()) == before
    assert [slot.slot for slot in world.ask("site", SITE, m.GetSite()).slots] == ["top", "side"]
    assert not world.site().changed
    assert world.winner() is not None, "declared slots are auctioned whatever a tag reports"


def test_a_site_takes_only_so_many_slots_from_strangers() -> None:
    world = serving_world()
    for n in range(0, 600, 60):
        world.classify(slots=tuple(m.SlotSpec(f"s{n + k}", 300, 250) for k in range(60)))
        world.advance(100)
    assert len(world.ask("site", SITE, m.AdServerStarted()).slots) == limits.site_slots_max
    assert world.winner() is not None


def test_the_record_of_a_site_and_its_shelves_fit() -> None:
    """The worst that can be stored: the longest urls with the most categories and slots on each."""
    slots = tuple("s" * 120 + f"{n:08}" for n in range(limits.site_slots_max))
    pages = tuple(
        m.PageEntry(f"{PAGE}/{n}{'x' * 1_900}", tuple((str(c), 0.123456789) for c in range(100, 105)), slots, n)
        for n in range(limits.shelf_pages_max)
    )
    approved = {f"creative-{n:050}": 1_700_000_000_000 for n in range(limits.approved_creatives_max)}
    pending = {
        f"pending-{n:050}": m.PendingCreative(
            f"pending-{n:050}", "c" * 64, "a" * 64, slots[: limits.pending_slots_max], 1
        )
        for n in range(limits.pending_creatives_max)
    }
    specs = tuple(m.SlotSpec(slot, 300, 250) for slot in slots)
    blocked = tuple(f"{n:0250}.ex" for n in range(limits.site_blocks_max))
    state = SiteState(SITE, SITE, "acme", specs, 0, bytes(32), {}, approved, pending, False, specs, approved, blocked)
    for record in (state, PageShelfState(SITE, 1, pages)):
        body = CODEC.encode_record(record)
        assert len(body) < limits.record_bytes_max
        assert CODEC.decode_record(body) == record


def test_a_failed_classification_leaves_the_page_as_it_was() -> None:
    world = serving_world()
    world.classifier.fail = True
    assert world.classify(text="a text about cars").accepted
    world.advance(3_000)
    won = world.winner()
    assert won is not None
    assert won.category == TRAVEL
    assert world.classify(text="a text about cars").accepted, "and it is not taken for being under way for ever"
    world.advance(3_000)
    assert world.winner() is None


def test_a_replay_auctions_again_although_nothing_changed() -> None:
    """TR29, OP41."""
    world = serving_world()
    world.index.views.clear()
    coverage = world.ask("site", SITE, GetCoverage())
    assert (coverage.expected, coverage.present) == (2, 0)
    assert world.ask("site", SITE, ReplaySite("r-1")) == ReplayReport(1, 1, 0, 0)
    world.advance(3_000)
    assert world.ask("site", SITE, GetCoverage()).present == 2
    assert world.ask("site", SITE, ReplaySite("r-2")).replayed == 1, "a repair can be repeated"


@pytest.mark.parametrize("times", [1, 2])
def test_a_restart_restores_everything_without_traffic(times: int) -> None:
    world = serving_world()
    won = world.winner()
    assert won is not None
    world.beacon(won.impression_query)
    for _ in range(times):
        world.index.views.clear()
        world.restart()
        world.advance(12_000)
    assert world.index.creatives() == {"camp-1"}
    coverage = world.ask("site", SITE, GetCoverage())
    assert (coverage.expected, coverage.present, coverage.missing) == (2, 2, ())
    assert world.ask("campaign", "camp", m.GetCampaign()).impressions == 1
    assert world.winner() is not None


def test_an_adserver_that_missed_an_auction_gets_it_again() -> None:
    world = serving_world()
    world.actor("adserver", SITE)._settings = None
    world.index.views.clear()
    world.tell("auctioneer", SITE, m.Reevaluate((), "test"))
    world.advance(3_000)
    assert world.index.creatives() == set(), "without the approvals nothing is put"
    world.tell("adserver", SITE, world.ask("site", SITE, m.AdServerStarted()))
    world.advance(3_000)
    assert world.index.creatives() == {"camp-1"}


def test_campaigns_register_again_when_the_directory_restarts() -> None:
    world = serving_world()
    world.restart_directory()
    directory: Any = world.ask("campaign-directory", "@", m.GetCampaignsFor(TRAVEL))
    assert (directory.campaigns, directory.settled) == (("camp",), False)
    world.advance(SETTLE_MS + 1_000)
    assert world.ask("campaign-directory", "@", m.GetCampaignsFor(TRAVEL)).settled


def test_quotes_of_a_silent_campaign_age_out_and_are_called_missing() -> None:
    world = serving_world()
    world.silence(EntityRef("campaign", "camp"))
    world.advance(QUOTE_AGE_MS_MAX + 61_000)
    answer = world.ask("category-bidder", BIDDER, ASK)
    assert (answer.offers, answer.complete, answer.missing) == ((), False, ("camp",))
    assert world.index.creatives() == {"camp-1"}, "unknown is not absent"


def test_coverage_says_why_a_slot_is_empty() -> None:
    world = World()
    world.advance(SETTLE_MS + 2_000)
    world.site(floor=1_000_000)
    world.advertiser()
    world.classify()
    world.advance(PERIOD_MS)
    assert dict(world.ask("site", SITE, GetCoverage()).missing) == {"top": "no_demand", "side": "no_demand"}
    world.campaign("cheap", cpm=999_999)
    world.advance(SETTLE_MS + 2_000)
    assert dict(world.ask("site", SITE, GetCoverage()).missing)["top"] == "below_floor"
    world.campaign("camp", cpm=1_000_000)
    world.advance(SETTLE_MS + 2_000)
    assert dict(world.ask("site", SITE, GetCoverage()).missing)["top"] == "not_approved"


def test_strange_messages_are_refused_and_break_nothing() -> None:
    world = serving_world()
    for kind, name in (
        ("site", SITE),
        ("adserver", SITE),
        ("auctioneer", SITE),
        ("campaign", "camp"),
        ("advertiser", "adv"),
        ("publisher", "acme"),
        ("category-bidder", BIDDER),
        ("campaign-directory", "@"),
    ):
        assert isinstance(world.ask(kind, name, m.PublisherSecret(b"")), Failed)
    assert not world.system.quarantined()
    assert world.winner() is not None


def test_a_high_bid_that_nobody_approved_takes_nobody_s_place() -> None:
    world = serving_world()
    world.campaign("rich", cpm=90_000_000)
    world.advance(SETTLE_MS + 5_000)
    assert "rich-1" in world.ask("site", SITE, m.GetSite()).pending
    won = world.winner()
    assert won is not None
    assert won.creative == "camp-1"
