"""A bid is a lease: what its bidders are told of it, and when, and how they come to know whose bids they lack."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from ads_world import SITE, TRAVEL, World, serving_world

from node.ads import messages as m
from node.ads.bidbook import QUOTE_RENEWAL_MS
from node.ads.entities.campaign import ATTEMPTS_COUNTED, LOOK_MS, register_again_ms
from node.ads.entities.category_bidder import REFRESH_PERIOD_MS
from node.core.clock import MS
from node.core.hashing import stripe_of
from node.core.ids import EntityRef
from node.singleton.campaign_directory import SETTLE_MS

BIDDER = EntityRef("category-bidder", f"{TRAVEL}|{stripe_of(SITE)}")
ASK = m.CategoryBidRequest(SITE, ((300, 250),), 0)


class Heard:
    """What comes to an actor from now on, with the time; `lose`: how many of these it never sees."""

    def __init__(self, world: World, kind: str, name: str, *shapes: type) -> None:
        self._world = world
        self._actor = world.actor(kind, name)
        self._receive = self._actor.receive
        self._shapes = shapes
        self.messages: list[Any] = []
        self.at_ms: list[int] = []
        self.lose = 0
        self._actor.receive = self._hear

    def _hear(self, ctx: Any, message: Any) -> None:
        if isinstance(message, self._shapes):
            if self.lose:
                self.lose -= 1
                return
            self.messages.append(message)
            self.at_ms.append(self._world.clock.mono_ns() // MS)
        self._receive(ctx, message)


def quotes(world: World) -> Heard:
    return Heard(world, "category-bidder", BIDDER.id, m.Quote)


def settled_world() -> World:
    """Nothing has changed for so long that it was all told twice."""
    world = serving_world()
    world.advance(2 * LOOK_MS)
    return world


def test_an_unchanged_bid_is_renewed_and_not_told_otherwise() -> None:
    world = settled_world()
    heard, registered = quotes(world), Heard(world, "campaign-directory", "@", m.CampaignReady)
    world.advance(10 * QUOTE_RENEWAL_MS)
    assert [later - earlier for earlier, later in zip(heard.at_ms, heard.at_ms[1:], strict=False)] == [
        QUOTE_RENEWAL_MS
    ] * 9
    assert len(registered.messages) == len(heard.messages) == 10
    assert world.ask("category-bidder", BIDDER.id, ASK).complete


def test_a_change_is_told_at_once_and_once_more() -> None:
    world = settled_world()
    heard = quotes(world)
    world.ask("campaign", "camp", m.UpdateCampaign(max_cpm_micros=3_000_000))
    assert [quote.max_cpm_micros for quote in heard.messages] == [3_000_000]
    world.advance(LOOK_MS)
    assert [quote.max_cpm_micros for quote in heard.messages[:2]] == [3_000_000] * 2
    world.advance(QUOTE_RENEWAL_MS - 1)
    assert len(heard.messages) in (2, 3), "and then it is only renewed"


def test_a_change_that_was_lost_is_known_a_minute_later() -> None:
    world = settled_world()
    heard = quotes(world)
    heard.lose = 1
    world.ask("campaign", "camp", m.SetCampaignStatus("paused"))
    assert world.ask("category-bidder", BIDDER.id, ASK).offers
    world.advance(LOOK_MS)
    assert heard.messages[0].active is False
    assert not world.ask("category-bidder", BIDDER.id, ASK).offers


def test_two_lost_renewals_do_a_bid_no_harm() -> None:
    world = settled_world()
    heard = quotes(world)
    heard.lose = 2
    until_ms = world.clock.mono_ns() // MS + 3 * QUOTE_RENEWAL_MS
    while world.clock.mono_ns() // MS < until_ms:
        world.advance(REFRESH_PERIOD_MS)
        answer = world.ask("category-bidder", BIDDER.id, ASK)
        assert (bool(answer.offers), answer.complete) == (True, True)
    assert not heard.lose
    assert len(heard.messages) >= 1, "and nobody had to ask for it"


def test_a_look_tells_what_time_has_changed() -> None:
    """The end of its schedule; and that it registers no more."""
    world = settled_world()
    end_ms = world.clock.wall_ms() + QUOTE_RENEWAL_MS + LOOK_MS
    world.ask("campaign", "camp", m.UpdateCampaign(end_ms=end_ms))
    world.advance(2 * LOOK_MS)
    heard, registered = quotes(world), Heard(world, "campaign-directory", "@", m.CampaignReady)
    world.advance(end_ms - world.clock.wall_ms())
    assert heard.messages[-1].active is False
    assert registered.messages[-1].categories == ()


@pytest.mark.parametrize("names_max", [1, 2, 5])
def test_a_bidder_that_starts_reads_the_register_in_parts_and_asks_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch, names_max: int
) -> None:
    monkeypatch.setattr("node.ads.register.register_names_max", names_max)
    monkeypatch.setattr("node.ads.entities.category_bidder.bidder_quotes_asked_max", 2)
    world = settled_world()
    for number in range(4):
        world.campaign(f"other-{number}")
    world.silence(BIDDER)
    world.unsilence(BIDDER)
    assert not world.ask("category-bidder", BIDDER.id, ASK).complete, "it begins with the question"
    answer = world.ask("category-bidder", BIDDER.id, ASK)
    assert answer.complete
    assert len(answer.offers) == 5


def test_a_bidder_that_knows_the_register_is_not_told_it_again() -> None:
    world = settled_world()
    world.ask("category-bidder", BIDDER.id, ASK)
    asked = Heard(world, "campaign-directory", "@", m.GetCampaignsFor)
    world.advance(REFRESH_PERIOD_MS)
    directory = world.actor("campaign-directory", "@")
    [request] = {request for request in asked.messages if request.category == TRAVEL}
    assert directory._registers[TRAVEL].told("", request.known, settled=True).unchanged


def test_a_directory_that_starts_anew_has_told_nobody_anything_until_campaigns_are_back() -> None:
    world = settled_world()
    world.restart_directory()
    world.advance(SETTLE_MS + 2_000)
    answer = world.ask("category-bidder", BIDDER.id, ASK)
    assert (len(answer.offers), answer.complete) == (1, True)


def test_strangers_that_keep_coming_do_not_put_the_question_off() -> None:
    world = settled_world()
    asked = Heard(world, "campaign-directory", "@", m.GetCampaignsFor)
    stranger = world.ask("campaign", "camp", m.GetQuote())
    for number in range(30):
        world.tell("category-bidder", BIDDER.id, msgspec.structs.replace(stranger, campaign=f"stranger-{number}"))
        world.advance(100)
    assert len([request for request in asked.messages if request.category == TRAVEL]) >= 2


def test_what_was_charged_is_told_until_it_was_heard_and_then_no_more() -> None:
    """Its advertiser has heard of it long ago, from the ad server; the first total is lost."""
    world = settled_world()
    won = world.winner()
    assert won is not None
    world.beacon(won.impression_query)
    told = Heard(world, "advertiser", "adv", m.ChargedTotal)
    told.lose = 1
    world.advance(6 * LOOK_MS)
    assert not told.lose
    [total] = told.messages
    assert (total.campaign, total.impressions) == ("camp", 1)
    assert total.charged_micros > 0
    world.advance(10 * LOOK_MS)
    assert told.messages == [total]


@pytest.mark.parametrize("attempt", range(1, ATTEMPTS_COUNTED + 1))
def test_campaigns_that_were_refused_together_do_not_come_again_together(attempt: int) -> None:
    most_ms = 1_000 * 2**attempt
    waits = [register_again_ms(f"c{number}", attempt) for number in range(1_000)]
    assert most_ms // 2 <= min(waits) <= max(waits) < most_ms
    in_tenths = Counter((wait - most_ms // 2) * 20 // most_ms for wait in waits)
    assert (len(in_tenths), max(in_tenths.values()) < 150) == (10, True)
