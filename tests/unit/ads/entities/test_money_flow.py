"""Every micro of an account is in a fact of the transaction that moved it: the books are the accounts."""

from __future__ import annotations

import random
from typing import Any

import msgspec
from ads_world import DAY_MS, HOUR_MS, SITE, TRAVEL, World, serving_world

from node.actors.actor import Failed
from node.ads import messages as m
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState
from node.ads.entities.charges import STEP_MS
from node.ads.facts import Click, Impression, MoneyHeld, MoneyReleased
from node.ads.ledger import Ledger, place_of, read_entry
from node.ads.money import impression_cost_micros
from node.ads.postings import ADVERTISER, HELD, MARGIN, PUBLISHER
from node.ads.reconcile import Counted, Counters
from node.ads.settled_ids import MINUTE_MS, SettledIds
from node.core.ids import EntityRef
from node.core.limits import settled_minutes_kept
from node.store.port import FactPage, ReadFacts, ReadState, Record, StoredFact
from node.wire.codec import CODEC


def log(world: World) -> tuple[StoredFact, ...]:
    [page] = world.store.apply([ReadFacts(0, 5_000)])
    assert isinstance(page, FactPage)
    return page.facts


def facts(world: World, *shapes: type) -> list[Any]:
    found = [CODEC.decode_record(stored.body) for stored in log(world)]
    return [fact for fact in found if isinstance(fact, shapes)]


def campaign_of(world: World) -> CampaignState:
    [record] = world.store.apply([ReadState("campaign", "camp")])
    assert isinstance(record, Record)
    state = CODEC.decode_record(record.body)
    assert isinstance(state, CampaignState)
    return state


def differences(world: World) -> list[object]:
    state, counters = campaign_of(world), Counters(world.clock.wall_ms())
    counters.add(log(world))
    return [*counters.campaign("camp", Counted(state.impressions, state.clicks, state.budget))]


def balance(world: World, account: str, owner: str) -> int:
    found = 0
    for key, body in Ledger().fold(log(world), {}).items():
        place, entry = place_of(key), read_entry(body)
        if place is not None and (place.account, place.owner) == (account, owner):
            found += entry.in_micros - entry.out_micros
    return found


def test_a_sale_says_whose_money_place_and_category_it_was() -> None:
    world = serving_world()
    won = world.winner()
    assert won is not None
    world.beacon(won.impression_query)
    world.beacon(won.click_query, "click")
    [seen], [made] = facts(world, Impression), facts(world, Click)
    assert (seen.advertiser, seen.publisher, seen.category) == ("adv", "acme", won.category)
    assert (made.advertiser, made.publisher, made.category, made.request_id) == (
        "adv",
        "acme",
        won.category,
        seen.request_id,
    )
    assert won.category in (TRAVEL, "653")
    assert seen.from_held_micros == seen.price_micros > 0, "it was promised"
    assert (seen.day, seen.at_ms) == (campaign_of(world).budget.day, world.clock.wall_ms())
    [held] = facts(world, MoneyHeld)
    assert held.amount_micros == campaign_of(world).budget.escrow_micros + seen.price_micros
    assert differences(world) == []


def test_the_first_impression_of_a_day_costs_what_it_costs() -> None:
    world = serving_world()
    first = world.winner()
    assert first is not None
    world.beacon(first.impression_query)
    to_midnight = DAY_MS - world.clock.wall_ms() % DAY_MS
    world.advance(to_midnight - 60_000)
    world.classify()
    world.advance(3_000)
    won = world.winner()
    assert won is not None
    world.advance(60_000)
    world.beacon(won.impression_query)
    _, second = facts(world, Impression)
    assert second.price_micros == impression_cost_micros(won.price_micros)
    assert second.day == campaign_of(world).budget.day != facts(world, Impression)[0].day
    assert facts(world, MoneyReleased), "what was set aside for yesterday came back"
    assert differences(world) == []


def test_duplicated_and_reordered_beacons_restarts_and_days_leave_the_books_true() -> None:
    rng = random.Random(7)
    world = serving_world()
    sent: list[tuple[str, str]] = []
    for _ in range(4):
        for _ in range(25):
            won = world.winner()
            if won is not None:
                sent += [(won.impression_query, "imp")] * rng.randrange(3)
                sent += [(won.click_query, "click")] * rng.randrange(2)
            rng.shuffle(sent)
            for query, event in sent[: rng.randrange(4)]:
                world.beacon(query, event)
        if rng.random() < 0.5:
            world.restart()
        world.advance(rng.choice([2_000, HOUR_MS, DAY_MS]))
        world.classify()
        world.advance(3_000)
    for query, event in sent:
        world.beacon(query, event)
    assert len(facts(world, Impression)) > 10
    assert len(facts(world, Click)) > 10
    assert len({fact.request_id for fact in facts(world, Impression)}) == len(facts(world, Impression))
    assert differences(world) == []
    spent = sum(fact.price_micros for fact in facts(world, Impression))
    assert balance(world, PUBLISHER, "acme") == spent
    held = campaign_of(world).budget.escrow_micros
    assert balance(world, HELD, "camp") == held
    assert balance(world, ADVERTISER, "adv") == -spent - held


def test_a_new_budget_that_ends_a_day_gives_back_what_was_set_aside() -> None:
    world = serving_world()
    assert world.winner() is not None
    world.advance(DAY_MS)
    world.ask("campaign", "camp", m.UpdateCampaign(daily_budget_micros=7_000_000))
    assert campaign_of(world).budget.escrow_micros == 0
    assert differences(world) == []
    assert balance(world, HELD, "camp") == 0


def test_a_site_has_its_own_days_and_leaves_the_platform_its_share() -> None:
    world = serving_world()
    info = world.ask("site", SITE, m.UpdateSite(timezone="Asia/Tokyo", margin_ppm=250_000))
    assert (info.changed, info.timezone, info.margin_ppm) == (True, "Asia/Tokyo", 250_000)
    world.advance(2_000)
    won = world.winner()
    assert won is not None
    world.beacon(won.impression_query)
    world.beacon(won.click_query, "click")
    [seen], [made] = facts(world, Impression), facts(world, Click)
    assert seen.margin_micros == seen.price_micros // 4 > 0
    assert (seen.timezone, seen.site_timezone, made.site_timezone) == ("UTC", "Asia/Tokyo", "Asia/Tokyo")
    assert balance(world, PUBLISHER, "acme") + balance(world, MARGIN, MARGIN) == seen.price_micros
    refused = world.ask("site", SITE, m.UpdateSite(timezone="Mars/Olympus"))
    assert isinstance(refused, Failed)
    assert "timezone" in refused.detail


def advertiser_of(world: World) -> AdvertiserState:
    [record] = world.store.apply([ReadState("advertiser", "adv")])
    assert isinstance(record, Record)
    state = CODEC.decode_record(record.body)
    assert isinstance(state, AdvertiserState)
    return state


def test_an_advertiser_catches_up_with_what_an_ad_server_that_died_did_not_tell() -> None:
    world = serving_world()
    told, untold = world.winner(), world.winner()
    assert told is not None
    assert untold is not None
    world.beacon(told.impression_query)
    advertiser = EntityRef("advertiser", "adv")
    world.silence(advertiser)
    world.beacon(untold.impression_query)
    world.restart()  # with it goes what the ad server still had to tell
    world.unsilence(advertiser)
    world.advance(2_000)
    [first, second] = [fact.price_micros for fact in facts(world, Impression)]
    assert advertiser_of(world).charged == {"camp": first}, "nobody has told of the second"
    counters = Counters(world.clock.wall_ms())
    counters.add(log(world))
    assert [one.kind for one in counters.advertiser("adv", first)] == ["charged"]
    for _ in range(5):
        world.advance(60_000)
    assert advertiser_of(world).charged == {"camp": first + second}
    assert advertiser_of(world).budget.spent_micros == first + second == campaign_of(world).charged_micros
    revision = len(world.facts())
    for _ in range(3):
        world.advance(60_000)
    assert advertiser_of(world).budget.spent_micros == first + second, "told again it changes nothing"
    assert len(world.facts()) == revision
    assert counters.advertiser("adv", first + second) == []
    assert [one.kind for one in counters.advertiser("adv", first + second + 1)] == ["charged"]


def test_an_impression_that_is_told_again_when_its_id_is_forgotten_is_charged_once() -> None:
    """Seed 140 with three projections: a node's clock jumped by an hour between two attempts to tell an advertiser."""
    world = serving_world()
    minute = world.clock.wall_ms() // MINUTE_MS
    won = world.winner()
    assert won is not None
    world.beacon(won.impression_query)
    amount = impression_cost_micros(won.price_micros)
    again = m.Confirm(won.request_id, SITE, won.creative, amount, None, "camp", minute)
    assert world.ask("advertiser", "adv", again) == m.Confirmed(False)
    assert advertiser_of(world).charged == {"camp": amount}
    world.advance(HOUR_MS)
    for ago in range(settled_minutes_kept):  # with them those of an hour ago are forgotten
        other = m.Confirm(f"other-{ago}", SITE, won.creative, 1, None, "camp", minute + HOUR_MS // MINUTE_MS - ago)
        assert world.ask("advertiser", "adv", other) == m.Confirmed(True)
    assert again.request_id not in SettledIds(advertiser_of(world).budget.settled)
    assert world.ask("advertiser", "adv", again) == m.Confirmed(False)
    assert advertiser_of(world).charged == {"camp": amount + settled_minutes_kept}


def test_a_campaign_whose_clock_jumps_does_not_take_for_lost_what_is_on_its_way_to_the_advertiser() -> None:
    world = serving_world()
    won = world.winner()
    assert won is not None
    advertiser = EntityRef("advertiser", "adv")
    world.silence(advertiser)
    world.beacon(won.impression_query)
    world.advance(STEP_MS)  # so that the campaign looks at its total with this in it
    world.unsilence(advertiser)  # the ad server tries again in some seconds
    for jump_ms in (0, HOUR_MS, -HOUR_MS):
        world.clock.step_wall_ms(jump_ms)
        assert isinstance(world.ask("campaign", "camp", m.SetCampaignStatus("active")), m.CampaignInfo)
        assert advertiser_of(world).charged == {}, "each time the campaign looks at its total, and tells an old one"
    world.advance(20_000)
    [seen] = facts(world, Impression)
    assert advertiser_of(world).charged == {"camp": seen.price_micros}
    assert advertiser_of(world).budget.spent_micros == seen.price_micros


def test_an_impression_that_comes_after_the_total_that_brought_it_is_not_charged_again() -> None:
    """Its ad server's node was paused for longer than a campaign waits before it takes it for lost."""
    world = serving_world()
    paused, told = world.winner(), world.winner()
    assert paused is not None
    assert told is not None
    advertiser = EntityRef("advertiser", "adv")
    world.silence(advertiser)
    world.beacon(paused.impression_query)
    world.restart()  # it says no more in its life
    world.unsilence(advertiser)
    for _ in range(5):
        world.advance(60_000)
    [seen] = facts(world, Impression)
    assert advertiser_of(world).charged == {"camp": seen.price_micros}
    minute = seen.at_ms // MINUTE_MS
    late = m.Confirm(paused.request_id, SITE, paused.creative, seen.price_micros, None, "camp", minute, number=1)
    assert world.ask("advertiser", "adv", late) == m.Confirmed(False)
    assert advertiser_of(world).budget.spent_micros == seen.price_micros
    following = msgspec.structs.replace(late, request_id=told.request_id, number=2)
    assert world.ask("advertiser", "adv", following) == m.Confirmed(True)
    assert advertiser_of(world).charged == {"camp": 2 * seen.price_micros}


def test_what_was_counted_before_every_clock_jumped_and_came_back_is_a_repeat() -> None:
    """Seed 1158, where an ad server and a campaign are on one node, whose clock is ahead for a while."""
    world = serving_world()
    before = world.winner()
    assert before is not None
    events = {"imp": before.impression_query, "click": before.click_query, "cta": before.cta_query}
    assert {world.beacon(query, event) for event, query in events.items()} == {m.Tracked("counted")}
    world.clock.step_wall_ms(HOUR_MS)
    world.classify()
    world.advance(3_000)
    for _ in range(2):
        during = world.winner()
        assert during is not None
        assert world.beacon(during.impression_query) == m.Tracked("counted")
        assert world.beacon(during.click_query, "click") == m.Tracked("counted")
        world.advance(60_000)
    world.clock.step_wall_ms(-HOUR_MS)
    assert {world.beacon(query, event) for event, query in events.items()} == {m.Tracked("repeated")}
    after = world.winner()
    assert after is not None
    assert world.beacon(after.impression_query) == m.Tracked("counted")
    assert len(facts(world, Impression)) == 4
