"""What went wrong for people who ran such a system, and the traps that it fell into: each a short story, told to all
entities at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from ads_world import HOUR_MS, PAGE, SITE, TRAVEL, TRAVEL_PARENT, World, serving_world

from node.ads import explain
from node.ads import messages as m
from node.ads.budget import next_midnight_ms
from node.ads.edits import drop_campaign
from node.ads.entities.auctioneer import BIDDER_TIMEOUT_MS, DEBOUNCE_MS
from node.ads.entities.site_pacing import SitePacing
from node.ads.freshness import WINDOW_DEFAULT_MS
from node.ads.pacing.campaigns import CampaignMoney, forget, live
from node.ads.pacing.window import day_window
from node.ads.page_winners import PageWinners
from node.core.hashing import stripe_of
from node.core.ids import EntityRef

BIDDER = EntityRef("category-bidder", f"{TRAVEL}|{stripe_of(SITE)}")
ASK = m.CategoryBidRequest(SITE, ((300, 250),), 0)
NOON_MS = 12 * HOUR_MS


def market(*names: str, paced: bool = False, **campaign: Any) -> World:
    """`camp` and these, each of an advertiser of its own, all approved and in the pools."""
    world = serving_world(**campaign)
    for name in names:
        world.advertiser(f"adv-{name}")
        world.campaign(name, advertiser=f"adv-{name}", **campaign)
        world.ask("advertiser", f"adv-{name}", m.AttachCampaign(name))
    world.advance(3_000)
    world.approve(*(f"{name}-1" for name in names))
    if paced:
        world.ask("site", SITE, m.UpdateSite(paced=True))
    world.advance(3_000)
    assert world.index.creatives() == {"camp-1", *(f"{name}-1" for name in names)}
    return world


def pacing(world: World) -> Any:
    return world.actor("adserver", SITE)._pacing


def view(world: World, *, without: tuple[str, ...] = ()) -> m.Winner | None:
    """One page view of a reader who keeps ads of these elsewhere on the site."""
    elsewhere = tuple(m.Pin("side", f"{name}-1") for name in without)
    asked = m.BatchSelect(PAGE, SITE, (m.SlotRequest("top", 300, 250),), elsewhere)
    selected = world.ask("adserver", SITE, asked)
    assert isinstance(selected, m.BatchSelected), selected
    return selected.outcomes[0].winner


def shown(world: World, without: tuple[str, ...]) -> None:
    won = view(world, without=without)
    assert won is not None
    assert world.beacon(won.impression_query) == m.Tracked("counted")


def live_at(world: World) -> set[str]:
    """The campaigns that the site's pacing counts on."""
    return {money.campaign for money in live(pacing(world)._book.known(world.clock.wall_ms()))}


# ---- money


def test_op1_tr01_a_campaign_whose_spend_was_forgotten_is_back_within_one_request() -> None:
    """Filtered by whether it is known, one that was evicted could never return while any other was known."""
    world = market("other", paced=True)
    assert view(world, without=("other",)) is not None
    assert view(world, without=("camp",)) is not None
    found = pacing(world)
    assert set(found._book.monies) == {"camp", "other"}
    found._book = forget(found._book, campaign="other")
    won = view(world, without=("camp",))
    assert won is not None
    assert won.campaign == "other"
    assert set(found._book.monies) == {"camp", "other"}


def spend(world: World, campaign: str, amount: int) -> None:
    request_id = f"{campaign}-{amount}"
    asked = m.Reserve(request_id, amount, world.clock.wall_ms(), f"{campaign}-1")
    assert world.ask("campaign", campaign, asked).outcome == "reserved"
    assert world.ask("campaign", campaign, m.Confirm(request_id, SITE, f"{campaign}-1", amount)).counted


def at_noon(world: World) -> None:
    """Of the next day, with the page judged again."""
    midnight = next_midnight_ms(world.clock.wall_ms(), "UTC")
    world.advance(midnight + NOON_MS - world.clock.wall_ms())
    world.classify()
    world.advance(3_000)


SMALLS = ("s1", "s2", "s3", "s4")


@pytest.mark.parametrize(
    ("elsewhere", "whale", "least", "most"),
    [
        # Their last impressions are shown here. Kept in the sum they would make the whale's, which is on course, half
        # as much again as was to be spent by now, and hold it back.
        (False, 0.49, 57, 60),
        # They are spent on other sites' pages. What was heard of them before would hide that the whale is far ahead.
        (True, 0.9, 0, 0),
    ],
)
def test_op4_tr04_one_whale_and_four_small_campaigns_that_are_exhausted_at_noon(
    elsewhere: bool, whale: float, least: int, most: int
) -> None:
    budget, own_micros = 10**9, 2_000  # an impression at its own price
    world = market(*SMALLS, paced=True, budget=budget)
    at_noon(world)
    spend(world, "camp", round(budget * whale))
    for name in SMALLS:
        others = tuple({"camp", *SMALLS} - {name})
        shown(world, others)
        spent = world.ask("campaign", name, m.GetCampaign()).spent_micros
        spend(world, name, budget - spent - (0 if elsewhere else own_micros))
        if not elsewhere:
            shown(world, others)
    world.advance(1_000)
    assert all(world.index.exhausted.get(name) is not None for name in SMALLS)
    seen = []
    for _ in range(60):
        seen.append(world.select().outcomes[0])
        world.advance(1_000)
    assert {outcome.winner.campaign for outcome in seen if outcome.winner} <= {"camp"}
    assert {outcome.reason for outcome in seen} <= {"", explain.PACED, "all_refused"}
    assert least <= [outcome.reason for outcome in seen].count("") <= most


def test_op5_an_advertiser_whose_budget_is_cut_below_its_spend_leaves_the_sums_until_it_can_pay() -> None:
    world = market("other", paced=True)
    at_noon(world)
    for name in ("camp", "other"):
        assert view(world, without=tuple({"camp", "other"} - {name})) is not None
    assert live_at(world) == {"camp", "other"}
    world.ask("advertiser", "adv-other", m.UpdateAdvertiser(daily_budget_micros=1))
    assert view(world, without=("camp",)) is None
    assert live_at(world) == {"camp"}, "its campaign has money, and nobody may spend it"
    assert world.ask("campaign", "other", m.GetCampaign()).reserved_micros <= 2_000, "and the promise was taken back"
    world.ask("advertiser", "adv-other", m.UpdateAdvertiser(daily_budget_micros=10**9))
    assert view(world, without=("camp",)) is not None
    assert live_at(world) == {"camp", "other"}


def test_v18_a_day_that_ends_by_the_clock_is_told_without_any_event() -> None:
    world = serving_world(budget=2_050)  # its own price is 2,000 micros an impression, the floor 100
    won = world.winner()
    assert won is not None
    assert world.beacon(won.impression_query) == m.Tracked("counted")
    bids = world.actor("category-bidder", BIDDER.id)
    midnight = next_midnight_ms(world.clock.wall_ms(), "UTC")
    world.advance(midnight - 1 - world.clock.wall_ms())
    assert not bids._book.bids["camp"].quote.solvent
    world.advance(60_001)
    quote = bids._book.bids["camp"].quote
    assert quote.solvent
    assert 0 <= quote.as_of_ms - midnight <= 60_000
    assert world.index.exhausted.get("camp") is None
    world.advance(60_000)
    assert world.ask("campaign", "camp", m.GetCampaign()).spent_micros == 0


def test_tr05_what_a_page_offers_does_not_touch_the_integral() -> None:
    """Two pages with a campaign each, asked for in turn, were two sites to the controller, and it never learned."""
    now_ms = 1_700_049_600_000  # noon, UTC
    window = day_window(now_ms - NOON_MS, "UTC")
    monies = [CampaignMoney(name, "adv", 10**8, 55 * 10**6, window, 2_000_000) for name in ("a", "b")]
    site, draws = SitePacing(), np.random.default_rng(1)
    integrals = []
    for second in range(30):
        site.request(1, now_ms + second * 1_000)
        site.heard(monies[second % 2], now_ms + second * 1_000)
        site.gate(draws, now_ms + second * 1_000)
        integrals.append(site._pacer.integral)
    steady = integrals[15:]
    assert steady == sorted(steady, reverse=True), "it goes on where it was"
    assert steady[-1] < -0.5
    site.heard(msgspec.structs.replace(monies[0], campaign="c"), now_ms + 30_000)
    assert site._pacer.integral == 0, "another campaign of the site makes another sum"


# ---- pages and their text


def test_op20_tr11_tr13_a_reply_with_winners_says_when_text_is_wanted_and_is_right() -> None:
    world = serving_world()
    (page,) = world.actor("adserver", SITE)._pages.values()
    for age_ms in (HOUR_MS, 24 * HOUR_MS, 47 * HOUR_MS, WINDOW_DEFAULT_MS - 1):
        world.advance(page.classified_at_ms + age_ms - world.clock.wall_ms())
        selected = world.select()
        assert selected.outcomes[0].winner is not None
        assert selected.reclassify_in_ms == WINDOW_DEFAULT_MS - age_ms
        assert PAGE in world.actor("auctioneer", SITE)._pages, "what is called fresh can be auctioned"
    world.advance(1)
    assert world.select().reclassify_in_ms == 0
    world.classify()
    world.advance(3_000)
    selected = world.select()
    assert selected.outcomes[0].winner is not None
    assert selected.reclassify_in_ms > WINDOW_DEFAULT_MS - 60_000


def test_op24_tr15_a_page_whose_address_ends_with_a_slash_is_known_by_it_alone() -> None:
    world = serving_world()
    food = f"https://{SITE}/food/"
    world.classify(food)
    world.advance(3_000)
    assert world.winner(food) is not None
    assert world.select(food).reclassify_in_ms > 0
    other = world.select(food.rstrip("/"))
    assert (other.outcomes[0].winner, other.reclassify_in_ms) == (None, 0)


# ---- bidders


def test_op34_a_bidder_answers_although_whoever_it_learns_from_hangs() -> None:
    """Asked for its campaigns the directory said nothing, and all questions to the bidder waited for that for ever."""
    world = serving_world()
    directory = world.actor("campaign-directory", "@")
    directory.receive = lambda ctx, message: None
    world.silence(BIDDER)
    world.unsilence(BIDDER)
    begun_ms = world.clock.wall_ms()
    answer = world.ask("category-bidder", BIDDER.id, ASK)
    assert world.clock.wall_ms() - begun_ms < 10_000
    assert (answer.offers, answer.complete) == ((), False), "it knows nobody, and says so"
    world.advance(60_000)
    answer = world.ask("category-bidder", BIDDER.id, ASK)
    assert ([offer.campaign_id for offer in answer.offers], answer.complete) == (["camp"], False)
    assert world.index.creatives() == {"camp-1"}, "nothing was taken for absent meanwhile"
    del directory.receive
    world.advance(3_000)
    assert world.ask("category-bidder", BIDDER.id, ASK).complete


def test_tr32_what_could_not_be_asked_makes_no_quote() -> None:
    """A quote was made of the creatives that an advertiser did not answer with: none."""
    world = serving_world()
    before = world.ask("campaign", "camp", m.GetQuote())
    world.silence(EntityRef("advertiser", "adv"))
    after = world.ask("campaign", "camp", m.GetQuote())
    assert msgspec.structs.replace(after, as_of_ms=before.as_of_ms) == before
    assert [creative.creative for creative in after.creatives] == ["camp-1"]
    world.silence(EntityRef("campaign", "camp"))
    world.silence(BIDDER)
    world.unsilence(BIDDER)
    assert world.ask("category-bidder", BIDDER.id, ASK).offers == ()
    world.advance(30_000)
    assert world.actor("category-bidder", BIDDER.id)._book.bids == {}, "no answer is no bid of nothing"
    assert world.index.creatives() == {"camp-1"}


# ---- repairs


class Lost(NamedTuple):
    """`order`: said again although it holds; `forget`: what did not hear of it the first time."""

    what: str
    kind: str
    name: str
    order: msgspec.Struct
    forget: Callable[[World], None]


def missed_the_resumption(world: World) -> None:
    server = world.actor("adserver", SITE)
    server._settings = msgspec.structs.replace(server._settings, suspended=True)
    world.actor("auctioneer", SITE)._suspended = True
    world.index.views.clear()


def missed_the_approval(world: World) -> None:
    server = world.actor("adserver", SITE)
    server._decider.learned(msgspec.structs.replace(server._settings, approved=()))


def missed_the_bid(world: World) -> None:
    quote = world.ask("campaign", "camp", m.GetQuote())
    world.tell("category-bidder", BIDDER.id, msgspec.structs.replace(quote, active=False))
    world.index.views.clear()


def missed_its_advertiser(world: World) -> None:
    campaign = world.actor("campaign", "camp")
    campaign._state = msgspec.structs.replace(campaign._state, advertiser_suspended=True)
    missed_the_bid(world)


LOST = [
    Lost("resumed site", "site", SITE, m.UpdateSite(suspended=False), missed_the_resumption),
    Lost("approval", "site", SITE, m.ApproveCreative("camp-1"), missed_the_approval),
    Lost("resumed campaign", "campaign", "camp", m.SetCampaignStatus("active"), missed_the_bid),
    Lost("resumed creative", "campaign", "camp", m.SetCreativeStatus("camp-1", "active"), missed_the_bid),
    Lost("resumed advertiser", "advertiser", "adv", m.SetAdvertiserStatus("active"), missed_its_advertiser),
]


@pytest.mark.parametrize("lost", LOST, ids=[lost.what for lost in LOST])
def test_op41_tr29_what_is_said_again_reaches_whoever_did_not_hear_of_it(lost: Lost) -> None:
    """The second click was no transition, so a message that was lost could not be repeated."""
    world = serving_world()
    world.ask("advertiser", "adv", m.AttachCampaign("camp"))
    lost.forget(world)
    assert not any(outcome.winner for outcome in world.select().outcomes)
    assert world.ask(lost.kind, lost.name, lost.order).changed is False
    world.advance(3_000)
    assert world.winner() is not None
    facts = world.facts()
    assert world.ask(lost.kind, lost.name, lost.order).changed is False
    assert world.facts() == facts, "and nothing is on record twice"


# ---- prices


def test_op43_tr30_the_same_state_gives_the_same_price_whatever_is_drawn() -> None:
    world = serving_world()
    world.campaign("other", cpm=3_000_000)
    world.advance(3_000)
    world.approve("other-1")
    world.advance(3_000)
    server, now_ms = world.actor("adserver", SITE), world.clock.wall_ms()
    server._stats.record("camp-1", now_ms, impressions=400, clicks=20, folds=40)
    server._stats.record("other-1", now_ms, impressions=300, clicks=10, folds=20)
    prices = defaultdict(set)
    for seed in range(40):
        server._decider.start(seed)
        server._winners = PageWinners()
        won = world.winner()
        assert won is not None
        prices[won.campaign].add(won.price_micros)
    assert world.clock.wall_ms() == now_ms
    assert {campaign: len(seen) for campaign, seen in prices.items()} == {"camp": 1, "other": 1}


# ---- edits and deletions


@pytest.mark.parametrize("edit_first", [True, False])
def test_tr23_an_edit_and_an_auction_of_one_instant_both_hold(edit_first: bool) -> None:
    """Read first and written later, a site-wide edit undid what was put meanwhile, or was undone by it."""
    world = market("other")
    world.approve("third-1")
    before = world.index.read(f"{SITE}|top")
    assert before is not None
    third = msgspec.structs.replace(before.candidates[0], creative_id="third-1", campaign_id="third")
    pools = (m.SlotPool("top", (third,)),)
    collected = m.CandidatesCollected(PAGE, third.classified_at_ms, before.auctions[0], pools, (), ())
    messages: list[msgspec.Struct] = [m.EditSite((drop_campaign("other"),)), collected]
    for message in messages if edit_first else reversed(messages):
        world.system.tell(EntityRef("adserver", SITE), message)
    world.run()
    assert world.index.creatives() == {"camp-1", "third-1"}
    assert world.index.creatives("side") == {"camp-1"}


def delete_campaign(world: World) -> None:
    world.ask("campaign", "other", m.SetCampaignStatus("deleted"))


def delete_creatives(world: World) -> None:
    for creative in ("other-1", "other-2"):
        world.ask("campaign", "other", m.SetCreativeStatus(creative, "deleted"))


def delete_advertiser(world: World) -> None:
    world.ask("advertiser", "adv-other", m.SetAdvertiserStatus("deleted"))


@pytest.mark.parametrize("delete", [delete_campaign, delete_creatives, delete_advertiser])
def test_tr24_tr28_what_is_deleted_leaves_nothing_behind_and_is_not_published_again(
    delete: Callable[[World], None],
) -> None:
    """One of its creatives is in the pools, one waits for approval, and an auction is under way that has its bid."""
    world = market("other")
    spec = m.CreativeSpec("other-2", "https://cdn.example/2", "https://shop.example/", 300, 250, "image/png")
    world.ask("campaign", "other", m.AddCreative(spec))
    world.advance(3_000)
    assert world.ask("site", SITE, m.GetSite()).pending == ("other-2",)
    world.silence(EntityRef("category-bidder", f"{TRAVEL_PARENT}|{stripe_of(SITE)}"))
    world.tell("auctioneer", SITE, m.Reevaluate((), "test"))
    world.advance(DEBOUNCE_MS + BIDDER_TIMEOUT_MS // 2)
    under_way = world.actor("auctioneer", SITE)._round
    assert under_way is not None
    assert "other" in {offer.campaign_id for answer in under_way.answers.values() for offer in answer.offers}
    delete(world)
    for _ in range(30):
        world.advance(200)
        assert world.index.creatives() == {"camp-1"}
        assert world.ask("site", SITE, m.GetSite()).pending == ()
    assert {offer.campaign_id for offer in world.ask("category-bidder", BIDDER.id, ASK).offers} == {"camp"}
    world.restart()
    world.advance(30_000)
    assert world.index.creatives() == {"camp-1"}
    assert {won.campaign for _ in range(10) if (won := world.winner())} == {"camp"}
