"""What an auction need not do: write a pool for each page of a round, auction a late page that hears nothing new."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ads_world import AUTO, CARS, PAGE, SITE, TRAVEL, World, serving_world

from node.actors.actor import Failed, Failure
from node.ads import messages as m
from node.ads.edits import drop_campaign
from node.ads.entities.auctioneer import LATE, _Bid
from node.ads.entities.late_pages import RETRIES_MAX, RETRY_MS_MAX
from node.core import limits
from node.core.hashing import stripe_of
from node.core.ids import EntityRef
from node.singleton.campaign_directory import SETTLE_MS

PAGES = 150


def large() -> World:
    world = serving_world()
    for number in range(PAGES):
        world.classify(f"{PAGE}/{number}")
    world.advance(5_000)
    return world


def auctions(world: World) -> Counter[str]:
    """From now on, how often each page is auctioned."""
    found: Counter[str] = Counter()
    auctioneer = world.actor("auctioneer", SITE)
    auction = auctioneer._auction

    def counted(ctx: Any, fan: Any, trigger: str, finished: Any) -> bool:
        found[fan.page.url] += 1
        whole: bool = auction(ctx, fan, trigger, finished)
        return whole

    auctioneer._auction = counted
    return found


def deaf(world: World, *categories: str) -> None:
    """The auctioneer hears no answer of these categories any more, until `_ask_bidder` is its own again."""
    auctioneer = world.actor("auctioneer", SITE)
    ask = type(auctioneer)._ask_bidder

    def asked(ctx: Any, category: str, request: m.CategoryBidRequest) -> None:
        if category in categories:
            lost = _Bid(auctioneer._rounds, category, Failed(Failure.TIMEOUT, "lost on the way"))
            ctx.after(f"lost-{category}", 0, lost)
        else:
            ask(auctioneer, ctx, category, request)

    auctioneer._ask_bidder = asked


def test_a_round_writes_each_pool_once() -> None:
    world = large()
    before, count = len(world.index.puts), auctions(world)
    world.tell("auctioneer", SITE, m.Reevaluate((), "test"))
    world.advance(3_000)
    rounds = -(-(PAGES + 1) // limits.auction_round_pages_max)
    assert set(count.values()) == {1}
    written = Counter(world.index.puts[before:])
    assert written.keys() == {f"{SITE}|top", f"{SITE}|side"}
    assert max(written.values()) <= rounds
    assert world.index.creatives() == {"camp-1"}


def test_an_edit_right_behind_an_auction_is_not_undone_by_it() -> None:
    world = serving_world()
    sent: list[m.CandidatesCollected] = []
    adserver = world.actor("adserver", SITE)
    collect = adserver._collect
    adserver._collect = lambda ctx, message: (sent.append(message), collect(ctx, message))[1]
    world.tell("auctioneer", SITE, m.Reevaluate((), "test"))
    world.advance(2_000)
    assert world.index.creatives() == {"camp-1"}
    ref = EntityRef("adserver", SITE)
    world.system.tell(ref, sent[-1])
    world.system.tell(ref, m.EditSite((drop_campaign("camp"),)))
    world.run()
    assert world.index.creatives() == set()


def test_after_a_restart_pages_are_auctioned_for_news_and_not_for_each_time_they_ask() -> None:
    world = large()
    world.index.views.clear()
    world.restart()
    count = auctions(world)
    world.advance(SETTLE_MS + RETRY_MS_MAX + 3_000)
    assert len(count) == PAGES + 1
    assert max(count.values()) <= 3, "at first, with the campaigns' bids, and when the directory has settled"
    assert world.index.creatives() == {"camp-1"}
    assert not world.actor("auctioneer", SITE)._late


def test_an_answer_that_was_missed_is_taken_when_it_comes_though_it_was_heard_before() -> None:
    """While another page is late, too, so that what was heard is kept."""
    world = serving_world()
    world.campaign("drive", AUTO)
    world.classify(CARS, "a text about cars")
    world.advance(3_000)
    deaf(world, AUTO)
    world.tell("auctioneer", SITE, m.Reevaluate((), "test"))
    world.advance(1_500)
    auctioneer = world.actor("auctioneer", SITE)
    assert set(auctioneer._late) == {CARS}
    deaf(world, AUTO, TRAVEL)
    world.tell("auctioneer", SITE, m.Reevaluate((), "test"))
    world.advance(1_500)
    assert set(auctioneer._late) == {CARS, PAGE}
    deaf(world, AUTO)
    world.advance(2 * RETRY_MS_MAX)
    assert set(auctioneer._late) == {CARS}, "the travel page is whole again"


def test_what_asks_for_an_auction_is_not_lost_on_a_page_that_waits_for_its_bidder() -> None:
    world = serving_world()
    deaf(world, TRAVEL)
    world.tell("auctioneer", SITE, m.Reevaluate((), "test"))
    world.advance(1_100)
    auctioneer = world.actor("auctioneer", SITE)
    assert auctioneer._dirty == {PAGE: LATE}
    count = auctions(world)
    world.tell("auctioneer", SITE, m.Reevaluate((), "approval"))
    world.advance(1_100)
    assert count == {PAGE: 1}, "with what is known, at once and not when the bidder is back"


def test_a_late_page_is_tried_again_ever_more_seldom_and_not_for_ever() -> None:
    world = serving_world()
    auctioneer = world.actor("auctioneer", SITE)
    world.silence(EntityRef("category-bidder", f"{TRAVEL}|{stripe_of(SITE)}"))
    asked: Counter[str] = Counter()
    ask = auctioneer._ask_bidder

    def noted(ctx: Any, category: str, request: m.CategoryBidRequest) -> None:
        asked[category] += 1
        ask(ctx, category, request)

    auctioneer._ask_bidder = noted
    world.tell("auctioneer", SITE, m.Reevaluate((), "test"))
    world.advance(5_000)
    assert auctioneer._late
    assert 2 <= asked[TRAVEL] <= 4
    world.advance(60_000)
    assert not auctioneer._late, "the periodic auction takes it up again"
    assert asked[TRAVEL] <= RETRIES_MAX + 3, "with what the period and the floors ask for by themselves"
