"""`site explain` and `campaign explain` over the whole ad core: each question that an operator asks of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from ads_world import CARS, HOUR_MS, PAGE, SITE, TRAVEL, TRAVEL_PARENT, World, serving_world

from node.admin import protocol as p
from node.admin import site_explaining
from node.admin.campaign_explaining import CampaignExplaining
from node.admin.protocol import explaining as x
from node.admin.site_explaining import SiteExplaining
from node.admin.site_findings import check, decided_and_waiting, pages
from node.admin.states import States
from node.ads import messages as m
from node.ads.classifier import CLASSIFIER_VERSION
from node.ads.entities.site_learning import PERIOD_MS
from node.ads.entities.site_state import FRESHNESS_WINDOW_MS
from node.core.hashing import SHARD_COUNT, STRIPE_COUNT, stripe_of
from node.core.ids import EntityRef
from node.store.port import ShardRow, ShardState

BIDDER = EntityRef("category-bidder", f"{TRAVEL}|{stripe_of(SITE)}")
HOMES = tuple(ShardRow(number, "n1", 1, 1, ShardState.RUNNING) for number in range(SHARD_COUNT))


class Console:
    """As much of an admin server as the two requests need, over the world's own entities and store."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.engine = self.world = self
        self.handlers: dict[type, Any] = {}
        self.clock, self.index = world.clock, world.index
        self.sharding = SimpleNamespace(region=SimpleNamespace(homes=lambda: HOMES))
        self.states = States(cast("Any", self))
        self.missing: tuple[p.Missing, ...] = ()  # from the newest answer
        self.gatherer = SimpleNamespace(silent=lambda name: p.Missing(node=name, reason="no answer", since=""))
        SiteExplaining(cast("Any", self))
        CampaignExplaining(cast("Any", self))

    def ask(self, to: EntityRef, message: Any, timeout_ms: int, done: Callable[[Any], None]) -> None:
        outcomes: list[Any] = []
        self._world.system.ask(to, message, timeout_ms, outcomes.append)
        self._world.run()
        if not outcomes:
            self._world.advance(timeout_ms)
        done(outcomes[0])

    def with_missing(self, call: p.Meta, missing: tuple[p.Missing, ...]) -> p.Meta:
        self.missing = missing
        return call

    def submit(self, request: Any, done: Callable[[Any], None]) -> None:
        done(self._world.store.apply([request])[0])

    def site(self) -> x.SiteExplanation:
        found = asyncio.run(self.handlers[x.ExplainSite](x.ExplainSite(site=SITE), cast("p.Meta", None)))[0]
        assert isinstance(found, x.SiteExplanation)
        return found

    def campaign(self, name: str) -> x.CampaignExplanation:
        request = x.ExplainCampaign(campaign=name)
        found = asyncio.run(self.handlers[x.ExplainCampaign](request, cast("p.Meta", None)))[0]
        assert isinstance(found, x.CampaignExplanation)
        return found


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its two looks the server sleeps in real time, of which this world has none."""
    monkeypatch.setattr(site_explaining, "_SECOND_LOOK_S", 0)


def counted(found: x.SiteExplanation, of: str) -> dict[str, int]:
    return {count.label: count.day for count in found.counts if count.of == of}


def failed(found: x.SiteExplanation) -> dict[str, str]:
    return {row.check: row.detail for row in found.checks if row.result == "fail"}


# ---- what a site's day came of


def test_question_53_51_slots_are_counted_by_what_became_of_them_and_by_hops() -> None:
    world = serving_world()
    world.campaign("general", TRAVEL_PARENT, cpm=3_000_000)
    world.advance(3_000)
    world.approve("general-1")
    world.advance(3_000)
    console = Console(world)
    for _ in range(2):
        world.select(PAGE, "top", "side")
    world.select(CARS, "top")
    world.ask("site", SITE, m.UpdateSite(suspended=True))
    world.select(PAGE, "top", "side")
    found = console.site()
    assert counted(found, "slots") == {"filled": 4, "no_eligible_candidate": 1, "suspended": 2}
    ratios = {count.label: count.day_ratio for count in found.counts if count.of == "slots"}
    assert ratios["suspended"] == round(2 / 7, 4)
    assert counted(found, "hops") == {"0": 2, "1": 2}, "two campaigns share each page view's two slots"
    assert (found.today.filled, found.today.without_candidates) == (4, 1)
    assert found.ok, failed(found)


def test_page_views_of_pages_that_were_judged_too_long_ago_are_counted_apart() -> None:
    world = serving_world()
    world.advance(49 * HOUR_MS)
    assert world.winner() is None
    today = Console(world).site().today
    assert (today.too_old, today.without_candidates, today.filled) == (1, 0, 0)


def test_question_15_auctions_are_counted_by_what_made_them_and_a_tick_without_a_change_makes_none() -> None:
    world = serving_world()
    console = Console(world)
    made = counted(console.site(), "auctions")
    assert made["classification"] == made["approval"] == 1
    world.advance(2 * PERIOD_MS)
    before = counted(console.site(), "auctions")
    world.advance(HOUR_MS)
    found = console.site()
    after = counted(found, "auctions")
    assert {cause: after[cause] - before.get(cause, 0) for cause in after if after[cause] != before.get(cause)} == {
        "periodic": 12
    }
    hours = {count.label: (count.this_hour, count.last_hour) for count in found.counts if count.of == "auctions"}
    assert sum(hours["periodic"]) >= 12
    assert counted(found, "floors")["tick without a change"] >= 4


def test_question_11_8_a_bidder_that_is_silent_is_late_and_its_last_answer_is_known() -> None:
    world = serving_world()
    console = Console(world)
    heard = {row.category: row for row in console.site().bidders}
    assert (heard[TRAVEL].stripe, heard[TRAVEL].node, heard[TRAVEL].complete) == (stripe_of(SITE), "n1", True)
    before = heard[TRAVEL].answered_at
    world.silence(BIDDER)
    world.advance(5 * 60_000)
    found = console.site()
    late = counted(found, "late")
    assert late[f"{TRAVEL} (the bidder itself)"] >= 1
    row = next(row for row in found.bidders if row.category == TRAVEL)
    assert (row.complete, row.answered_at) == (False, before), "the last answer that came, and no other"
    assert found.bidders[0].category == TRAVEL, "the longest silent first"


def test_question_24_an_unknown_url_is_named_with_the_one_that_was_meant() -> None:
    world = serving_world()
    console = Console(world)
    world.select(PAGE)
    world.select(f"{PAGE}/")
    world.select(f"{PAGE}/")
    world.advance(60_000)
    found = console.site()
    assert [(page.url, page.views, page.nearest) for page in found.unknown] == [(f"{PAGE}/", 2, PAGE)]
    assert found.pages.unknown_last_minute == 2
    world.classify(f"{PAGE}/")
    world.advance(1_000)
    assert console.site().unknown == (), "it is known now"


# ---- what must agree


def test_question_17_a_fresh_page_that_its_auctioneer_has_lost_is_named_until_it_is_taught_again() -> None:
    world = serving_world()
    console = Console(world)
    assert console.site().ok
    world.actor("auctioneer", SITE)._pages.clear()
    found = console.site()
    assert not found.ok
    assert failed(found) == {site_explaining.NOT_AUCTIONED: PAGE}
    world.advance(6 * 60_000)
    assert console.site().ok, "the site sends its pages every five minutes"
    world.actor("adserver", SITE)._pages.clear()
    assert failed(console.site()) == {site_explaining.NOT_SERVED: PAGE}


def test_question_17_who_does_not_answer_is_unknown_and_not_well() -> None:
    world = serving_world()
    console = Console(world)
    world.silence(EntityRef("auctioneer", SITE))
    found = console.site()
    assert not found.ok
    assert {row.result for row in found.checks} == {"unknown", "ok"}
    assert {row.check for row in found.checks if row.result == "ok"} == {
        site_explaining.QUEUED,
        site_explaining.FORBIDDEN,
    }
    assert [one.node for one in console.missing] == ["n1"], "the node that has the site"
    assert found.today is None, "no figure is made up"
    pages = found.pages
    assert (pages.classifying, pages.classifying_ms, pages.waiting, pages.unknown_last_minute) == (None,) * 4
    assert pages.total > 0, "what is durable is known all the same"


def test_question_18_an_aged_page_that_is_taught_all_the_same_is_counted() -> None:
    world = serving_world()
    console = Console(world)
    world.advance(FRESHNESS_WINDOW_MS)
    world.advance(30 * 60_000)
    assert console.site().ok, "of itself nobody restores what is too old"
    aged = m.PageEntry(PAGE, ((TRAVEL, 0.9),), ("top",), world.clock.wall_ms() - 2 * FRESHNESS_WINDOW_MS)
    order = m.RestoreClassifications((aged,), (), 0, "replay", force=True)
    assert isinstance(world.ask("auctioneer", SITE, order), m.Restored)
    assert failed(console.site()) == {site_explaining.STALE: "1 since the auctioneer's start"}


def test_i4_a_candidate_that_is_not_approved_is_named_with_its_pool() -> None:
    world = serving_world()
    console = Console(world)
    key = f"{SITE}|top"
    view = world.index.views[key]
    stranger = msgspec.structs.replace(view.candidates[0], creative_id="stranger")
    world.index.views[key] = msgspec.structs.replace(view, candidates=(*view.candidates, stranger))
    assert failed(console.site()) == {site_explaining.FORBIDDEN: f"stranger in {key} (not approved)"}


def test_question_21_pages_from_before_what_is_judged_now_are_counted() -> None:
    world = serving_world()
    console = Console(world)
    assert (console.site().pages.fresh, console.site().pages.outdated) == (1, 0)
    now_ms = world.clock.wall_ms()
    old = m.PageEntry(PAGE, (), (), now_ms, fallback=True)
    new = msgspec.structs.replace(old, url=CARS, version=CLASSIFIER_VERSION, fallback=False)
    aged = msgspec.structs.replace(old, url=f"{SITE}/3", classified_at_ms=now_ms - FRESHNESS_WINDOW_MS)
    found = pages((old, new, aged), None, None, None, now_ms)
    assert (found.total, found.fresh, found.outdated, found.fallback) == (3, 2, 1, 1)


# ---- what waits


def test_question_39_what_waits_says_why_its_approval_would_change_nothing() -> None:
    world = serving_world()
    world.campaign("other", creatives=("other-1", "other-2"))
    world.advance(3_000)
    console = Console(world)
    waiting = {row.creative: row for row in console.site().waiting}
    assert {name: row.hidden for name, row in waiting.items()} == {"other-1": "", "other-2": ""}
    assert sorted(waiting["other-1"].slots) == ["side", "top"]
    late = m.QueuePending(tuple(world.actor("site", SITE)._state.pending.values()))
    world.ask("campaign", "other", m.SetCreativeStatus("other-2", "paused"))
    assert {row.creative for row in console.site().waiting} == {"other-1"}, "what is withdrawn waits no more"
    world.tell("site", SITE, late)
    assert {row.creative: row.hidden for row in console.site().waiting} == {"other-1": "", "other-2": "it is paused"}
    world.ask("campaign", "other", m.SetCampaignStatus("paused"))
    assert console.site().waiting == ()
    world.tell("site", SITE, late)
    assert {row.hidden for row in console.site().waiting} == {"campaign other is paused"}
    world.ask("campaign", "other", m.SetCampaignStatus("active"))
    world.advance(3_000)
    world.ask("site", SITE, m.UpdateSite(block_domains=("shop.example",)))
    assert {row.hidden for row in console.site().waiting if row.creative == "other-1"} == {
        "the site blocks shop.example"
    }


def test_question_37_what_is_decided_does_not_wait() -> None:
    world = serving_world()
    world.campaign("other")
    world.advance(3_000)
    state = world.actor("site", SITE)._state
    assert decided_and_waiting(state) == []
    ghost = msgspec.structs.replace(state, approved={**state.approved, "other-1": 1})
    assert decided_and_waiting(ghost) == ["other-1"]
    assert check("queue", ["other-1"]).result == "fail"


def test_question_48_a_text_that_is_not_judged_is_counted_and_its_page_may_be_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = serving_world()
    console = Console(world)
    world.classifier.fail = True
    world.classify(CARS)
    world.advance(1_000)
    found = console.site()
    assert counted(found, "texts") == {"fake": 1, "failed": 1}
    assert (found.pages.classifying, found.pages.total) == (0, 1)
    assert world.classify(CARS) == m.ClassifyAck(True, "accepted")
    monkeypatch.setattr(World, "_execute", lambda *_: True)  # whoever judges takes a text and says nothing
    world.restart()
    world.classify(f"{PAGE}/2")
    world.advance(15 * 60_000)
    found = console.site()
    assert found.pages.classifying == 1
    assert found.pages.classifying_ms >= 15 * 60_000


# ---- campaigns


def test_question_12_8_every_stripe_is_asked_for_the_campaign_s_bid_and_its_age() -> None:
    world = serving_world()
    world.advance(60_000)
    console = Console(world)
    found = console.campaign("camp")
    assert [(row.category, row.stripe, row.quote, row.node) for row in found.stripes] == [
        (TRAVEL, number, "counts", "n1") for number in range(STRIPE_COUNT)
    ]
    assert all(row.quote_age_s is not None and row.quote_age_s <= 60 for row in found.stripes)
    mine = found.stripes[stripe_of(SITE)]
    assert mine.answered_at is not None
    assert {row.answered_at for row in found.stripes if row is not mine} == {None}, "no site of theirs has asked"
    assert found.ok
    assert console.missing == ()
    world.silence(BIDDER)
    found = console.campaign("camp")
    assert [row.stripe for row in found.stripes if not row.ok] == [stripe_of(SITE)]
    assert found.stripes[stripe_of(SITE)].quote == "silent"
    assert not found.ok
    assert [one.node for one in console.missing] == ["n1"], "the node that has the stripe"


def test_question_12_a_bid_that_is_not_renewed_is_stale_and_then_expired() -> None:
    world = serving_world()
    console = Console(world)
    world.silence(EntityRef("campaign", "camp"))
    states = []
    for wait_ms in (7 * 60_000, 10 * 60_000):
        world.advance(wait_ms)
        outcome = world.ask("category-bidder", BIDDER.id, m.GetStripe())
        states.append([(quote.campaign, quote.state) for quote in outcome.quotes])
    assert states == [[("camp", "stale")], [("camp", "expired")]]
    with pytest.raises(p.AdminRefusal):
        console.campaign("camp")


def test_i1_a_paused_campaign_has_no_bid_anywhere() -> None:
    world = serving_world()
    console = Console(world)
    world.ask("campaign", "camp", m.SetCampaignStatus("paused"))
    world.advance(1_000)
    found = console.campaign("camp")
    assert {row.quote for row in found.stripes} == {"withdrawn"}
    assert (found.ok, found.standing) == (True, "paused")


def test_question_4_50_money_is_told_by_where_it_is_and_creatives_without_a_product_by_name() -> None:
    world = serving_world()
    console = Console(world)
    winner = world.winner()
    assert winner is not None
    money = console.campaign("camp").money
    assert (money.spent, money.reserved, money.charged) == ("0.00", "0.0001", "0.00")
    assert world.beacon(winner.impression_query).verdict == "counted"
    world.advance(1_000)
    found = console.campaign("camp")
    assert (found.money.spent, found.money.reserved) == ("0.0001", "0.00")
    assert (found.money.charged, found.money.charged_to_advertiser, found.money.untold) == ("0.0001", "0.0001", "0.00")
    assert found.without_product == ("camp-1",)


def test_a_site_or_campaign_that_is_none_is_refused_with_what_there_is() -> None:
    console = Console(World())
    with pytest.raises(p.AdminRefusal, match="there is no site"):
        console.site()
    with pytest.raises(p.AdminRefusal, match="there is no campaign"):
        console.campaign("nobody")


def test_question_6_34_what_nobody_understands_and_nobody_waits_for_is_a_dead_letter_of_its_receiver() -> None:
    world = serving_world()
    world.tell("adserver", SITE, m.GetSite())
    world.tell("campaign", "nobody", m.GetQuote())
    letters = [(letter.reason, letter.type, str(letter.to)) for letter in world.system.dead_letters]
    assert letters == [
        ("unhandled_by_adserver", "ads.get_site", f"adserver:{SITE}"),
        ("unhandled_by_campaign", "ads.get_quote", "campaign:nobody"),
    ]
    assert world.system.dead_letters.counters[("unhandled_by_adserver", "ads.get_site")] == 1
