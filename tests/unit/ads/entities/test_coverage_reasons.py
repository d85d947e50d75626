"""Why a slot is empty: each reason from what the entities themselves are in, and its words."""

from collections.abc import Callable

import msgspec
import pytest
from ads_world import AUTO, CARS, HOUR_MS, PAGE, SITE, TRAVEL, World, serving_world

from node.ads import messages as m
from node.ads.entities import coverage as c
from node.ads.entities.site_state import SiteState
from node.ads.targeting import Targeting
from node.core.hashing import stripe_of
from node.core.ids import EntityRef
from node.flows.messages import GetCoverage, ReplaySite
from node.singleton.campaign_directory import SETTLE_MS

BIDDER = EntityRef("category-bidder", f"{TRAVEL}|{stripe_of(SITE)}")


def market(floor: int = 1_000_000) -> World:
    """A classified page and no campaign."""
    world = World()
    world.advance(SETTLE_MS + 2_000)
    world.site(floor=floor)
    world.advertiser()
    world.classify()
    world.advance(3_000)
    return world


def nobody_bids() -> World:
    world = market()
    world.campaign("elsewhere", AUTO)
    world.advance(3_000)
    return world


def no_size_fits() -> World:
    world = market()
    world.campaign("wide", size=(728, 90))
    world.advance(3_000)
    return world


def all_below_the_floor() -> World:
    world = market()
    world.campaign("cheap", cpm=400_000)
    world.campaign("cheaper", cpm=300_000)
    world.advance(3_000)
    return world


def winners_wait() -> World:
    world = market()
    world.campaign("camp", cpm=2_000_000)
    world.advance(3_000)
    return world


def winners_were_rejected() -> World:
    world = winners_wait()
    world.ask("site", SITE, m.RevokeCreative("camp-1", reject=True))
    world.advance(3_000)
    return world


def not_auctioned_yet() -> World:
    world = winners_wait()
    world.approve("camp-1")
    world.restart()
    world.index.views.clear()
    return world


def bidders_are_late() -> World:
    world = serving_world()
    world.silence(BIDDER)
    world.index.views.clear()
    world.ask("site", SITE, ReplaySite("r"))
    world.advance(3_000)
    return world


def judged_long_ago() -> World:
    world = serving_world()
    world.advance(49 * HOUR_MS)
    return world


def suspended() -> World:
    world = serving_world()
    world.ask("site", SITE, m.UpdateSite(suspended=True))
    return world


def all_blocked() -> World:
    world = serving_world()
    world.ask("site", SITE, m.UpdateSite(block_domains=("example",)))
    world.advance(3_000)
    return world


def wanted_elsewhere() -> World:
    world = market()
    world.campaign("aimed", targeting=Targeting(places=("JP",)))
    world.advance(3_000)
    return world


def filled() -> World:
    return serving_world()


TABLE: list[tuple[Callable[[], World], str, str, str]] = [
    (nobody_bids, c.NO_DEMAND, "no campaign bids on the categories of its 1 page", "a campaign that targets"),
    (no_size_fits, c.NO_DEMAND, "no creative of 300x250 is offered, 1 of other sizes", "a creative of 300x250"),
    (all_below_the_floor, c.BELOW_FLOOR, "2 campaigns bid below the floor of 1.00; the best bids 0.40", "-cpm 0.40"),
    (winners_wait, c.NOT_APPROVED, "1 winner not yet approved by the publisher: camp-1", "creative approve camp-1"),
    (winners_were_rejected, c.NOT_APPROVED, "what is offered was rejected: camp-1", "another creative"),
    (not_auctioned_yet, c.AUCTION_PENDING, "not auctioned yet: 1 of 1 page", "replay start --site news.example"),
    (bidders_are_late, c.LATE_BIDDERS, "did not answer completely", ""),
    (judged_long_ago, c.EXPIRED, "more than 48 h ago", "to /v1/classify-page: a page view alone is not enough"),
    (suspended, c.SUSPENDED, "the site is suspended", "site resume news.example"),
    (all_blocked, c.BLOCKED, "all that is offered is of blocked domains or products: 1 creative", "--unblock-domain"),
    (wanted_elsewhere, c.TURNED_AWAY, "1 page wants to be there: aimed (place_not_allowed)", "campaign show aimed"),
    (filled, c.FILLED, "1 candidate in its pool; 1 campaign bid for it, 2.00 at most, which by bids alone clears", ""),
]


@pytest.mark.parametrize(("made", "reason", "why", "fill"), TABLE, ids=[made.__name__ for made, *_ in TABLE])
def test_each_reason_follows_from_what_is_so_and_says_what_would_fill_the_slot(
    made: Callable[[], World], reason: str, why: str, fill: str
) -> None:
    world = made()
    site = world.actor("site", SITE)
    found = c.explain_site(site._state, site._pages.all, site._reports, world.index, world.clock.wall_ms())
    for slot in found.slots:
        assert slot.reason == reason, slot
        assert why in slot.why
        assert fill in slot.fill
    covered = site.coverage(world.clock.wall_ms())
    empty = () if reason == c.FILLED else (("side", reason), ("top", reason))
    assert covered.missing == empty
    assert (covered.expected, covered.present) == {
        c.EXPIRED: (0, 0),
        c.FILLED: (2, 2),
    }.get(reason, (2, 0))
    assert covered.slots == (() if reason == c.EXPIRED else ("side", "top"))


def test_every_reason_is_in_the_table() -> None:
    known = {name for key, name in vars(c).items() if key.isupper() and isinstance(name, str)}
    assert known - {row[1] for row in TABLE} == {c.NO_PAGE}, "that one is below"


def test_a_slot_that_no_page_shows_is_not_expected() -> None:
    world = World()
    world.site()
    assert world.ask("site", SITE, GetCoverage()).missing == ()
    explained = world.ask("site", SITE, m.ExplainCoverage())
    assert {slot.reason for slot in explained.slots} == {c.NO_PAGE}
    assert {"/v1/classify-page" in slot.fill for slot in explained.slots} == {True}


def test_where_nobody_bids_the_categories_are_told_that_somebody_could_bid_on() -> None:
    world = nobody_bids()
    explained = world.ask("site", SITE, m.ExplainCoverage())
    assert [bool(slot.reach) for slot in explained.slots] == [True, True]
    assert not any(slot.reach for slot in filled().ask("site", SITE, m.ExplainCoverage()).slots)


def test_of_several_pages_the_reason_nearest_to_a_filled_slot_is_said() -> None:
    world = all_below_the_floor()
    world.campaign("auto", AUTO, cpm=5_000_000)
    world.classify(CARS, "a text about cars")
    world.advance(3_000)
    assert dict(world.ask("site", SITE, GetCoverage()).missing) == {"top": c.NOT_APPROVED, "side": c.NOT_APPROVED}
    world.approve("auto-1")
    world.advance(3_000)
    assert world.ask("site", SITE, GetCoverage()).missing == (), "one page is enough for a slot"


def test_a_page_without_an_auction_leaves_the_others_reason_open() -> None:
    state = SiteState(SITE, SITE, "acme", (m.SlotSpec("top", 300, 250),), 0, b"")
    report = m.AuctionReport(PAGE, 1, (m.SlotReport("top"),))
    wanted = c.Wanted([PAGE, CARS], set())
    assert c.slot_reason(state, "top", wanted, {PAGE: report}) == c.AUCTION_PENDING
    wanted = c.Wanted([PAGE], set())
    assert c.slot_reason(state, "top", wanted, {PAGE: report}) == c.NO_DEMAND
    late = msgspec.structs.replace(report, slots=(m.SlotReport("top", late=1, rejected=3),))
    assert c.slot_reason(state, "top", wanted, {PAGE: late}) == c.LATE_BIDDERS
