"""From a page's text to a served ad and its beacons, through all entities."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest
from ads_world import AUTO, CARS, DAY_MS, PAGE, SITE, TRAVEL, TRAVEL_PARENT, World, serving_world

from node.actors.actor import Failed, Failure
from node.ads import explain
from node.ads import messages as m
from node.core import limits
from node.core.ids import EntityRef


def test_a_site_is_made_once_and_its_publisher_knows_it() -> None:
    world = World()
    made = world.site()
    assert (made.changed, made.site, made.publisher) == (True, SITE, "acme")
    assert world.site().changed is False
    assert world.ask("publisher", "acme", m.ResolveSite(f"www.{SITE}")).site == SITE
    assert world.ask("publisher", "acme", m.ResolveSite("other.example")).site == ""
    refused = world.site(floor=7)
    assert isinstance(refused, Failed)
    assert refused.failure is Failure.REJECTED
    assert refused.detail.startswith("conflict")
    assert world.ask("site", SITE, m.GetSite()).floor_micros == 100_000


def test_of_two_creations_at_once_with_different_values_one_is_told_of_the_conflict() -> None:
    world = World()
    slots = (m.SlotSpec("top", 300, 250),)
    first = world.system
    outcomes: list[object] = []
    for floor in (1, 2):
        first.ask(EntityRef("site", SITE), m.CreateSite(SITE, SITE, "acme", slots, floor), 5_000, outcomes.append)
    world.run()
    assert len(outcomes) == 2
    made = [o for o in outcomes if isinstance(o, m.SiteInfo)]
    refused = [o for o in outcomes if isinstance(o, Failed)]
    assert [site.floor_micros for site in made] == [1]
    assert [r.detail.partition(":")[0] for r in refused] == ["conflict"]


def test_classified_auctioned_pending_approved_served() -> None:
    """From a text to an ad; the sole candidate pays the floor, under an id of its own (T35)."""
    world = World()
    world.advance(5_000)
    world.site()
    world.advertiser()
    world.campaign("camp", TRAVEL_PARENT, cpm=3_000_000)
    assert world.select().reclassify_in_ms == 0, "an unknown page asks for its text"
    assert world.classify() == m.ClassifyAck(True, "accepted")
    world.advance(3_000)
    assert world.ask("site", SITE, m.GetSite()).pending == ("camp-1",)
    assert world.index.creatives() == set(), "nothing that is not approved is put"
    assert world.winner() is None
    world.approve("camp-1")
    world.advance(3_000)
    info = world.ask("site", SITE, m.GetSite())
    assert (info.approved, info.pending, info.pages_fresh) == (("camp-1",), (), 1)
    selected = world.select()
    won = selected.outcomes[0].winner
    assert won is not None
    assert (won.creative, won.campaign, won.category) == ("camp-1", "camp", TRAVEL_PARENT)
    assert won.price_micros == 100_000, "without a rival the price is the floor"
    assert len(won.request_id) == 32
    assert selected.reclassify_in_ms > 0
    assert world.facts().count("fact.page_classified") == 1
    assert world.facts().count("fact.creative_approved") == 1
    again = world.ask("site", SITE, m.ApproveCreative("camp-1"))
    assert again == m.Accepted(changed=False), "approving what is approved succeeds"


def test_a_view_in_the_index_does_not_replace_the_approval() -> None:
    """I8: the gate stands at serve time too, whoever put the candidate there."""
    world = serving_world()
    view = world.index.read(f"{SITE}|top")
    assert view is not None
    intruder = msgspec.structs.replace(view.candidates[0], creative_id="never-approved", cpm_micros=900_000_000)
    world.index.views[f"{SITE}|top"] = msgspec.structs.replace(view, candidates=(intruder,))
    assert world.winner() is None
    decision = world.explain(slot="top")
    assert [(c.creative_id, c.outcome, c.reason) for c in decision.candidates] == [
        ("never-approved", explain.FILTERED, explain.NOT_APPROVED)
    ]
    world.index.views[f"{SITE}|top"] = msgspec.structs.replace(view, candidates=(intruder, *view.candidates))
    assert {won.creative for _ in range(30) if (won := world.winner())} == {"camp-1"}


def test_a_page_gets_only_what_was_auctioned_for_it() -> None:
    world = serving_world()
    world.campaign("auto", AUTO, cpm=50_000_000)
    world.classify(CARS, "a text about cars")
    world.advance(3_000)
    world.approve("auto-1")
    world.advance(3_000)
    assert world.index.creatives() == {"camp-1", "auto-1"}, "one view holds both pages' pools"
    for _ in range(20):
        travel, cars = world.winner(PAGE), world.winner(CARS)
        assert travel is not None
        assert cars is not None
        assert (travel.creative, travel.category) == ("camp-1", TRAVEL)
        assert (cars.creative, cars.category) == ("auto-1", AUTO)
    reasons = {c.creative_id: c.reason for c in world.explain(page=PAGE).candidates}
    assert reasons == {"camp-1": "", "auto-1": explain.WRONG_CATEGORY}
    assert world.winner(f"https://{SITE}/unknown") is None


def test_prices_follow_from_the_rival_and_stay_between_floor_and_bid() -> None:
    """TR30."""
    world = serving_world(cpm=9_000_000)
    world.campaign("rival", cpm=4_000_000)
    world.advance(3_000)
    world.approve("rival-1")
    world.advance(3_000)
    bids = {"camp-1": 9_000_000, "rival-1": 4_000_000}
    seen = set()
    for _ in range(60):
        won = world.winner()
        assert won is not None
        seen.add(won.creative)
        decision = world.explain(request_id=won.request_id)
        assert decision.price_micros == won.price_micros
        assert 100_000 <= won.price_micros <= bids[won.creative]
        if decision.runner_up:
            other = bids[decision.runner_up]
            # Both are cold and judged alike, so that the tying bid is the rival's own.
            assert won.price_micros == min(other, bids[won.creative])
    assert seen == {"camp-1", "rival-1"}


def test_a_batch_uses_no_campaign_twice() -> None:
    world = serving_world(creatives=("camp-1", "camp-2", "camp-3"))
    for _ in range(20):
        outcomes = world.select(PAGE, "top", "side").outcomes
        won = [o.winner.campaign for o in outcomes if o.winner is not None]
        assert won == ["camp"]
        assert [o.reason for o in outcomes if o.winner is None] == ["candidates_in_other_slots"]
    world.campaign("other")
    world.advance(3_000)
    world.approve("other-1")
    world.advance(3_000)
    for _ in range(20):
        outcomes = world.select(PAGE, "top", "side").outcomes
        assert {o.winner.campaign for o in outcomes if o.winner} == {"camp", "other"}


def test_two_slots_may_want_the_same_next_candidate() -> None:
    """Of three campaigns two are out of money: the batch still serves the third exactly once."""
    world = serving_world()
    for name in ("dry1", "dry2"):
        world.campaign(name, cpm=9_000_000, budget=1)
    world.advance(3_000)
    world.approve("dry1-1", "dry2-1")
    world.advance(3_000)
    for _ in range(10):
        outcomes = world.select(PAGE, "top", "side").outcomes
        assert [o.winner.creative for o in outcomes if o.winner] == ["camp-1"]
    assert world.ask("campaign", "dry1", m.GetCampaign()).reserved_micros == 0


@pytest.mark.parametrize("poor", ["campaign", "advertiser"])
def test_a_refused_reservation_gives_the_next_candidate_and_frees_the_other_payer(poor: str) -> None:
    world = serving_world()
    world.advertiser("second", budget=1_000_000_000 if poor == "campaign" else 1)
    world.campaign("rich", cpm=9_000_000, budget=1 if poor == "campaign" else 10**9, advertiser="second")
    world.advance(3_000)
    world.approve("rich-1")
    world.advance(3_000)
    seen = set()
    for _ in range(30):
        won = world.winner()
        assert won is not None
        assert won.creative == "camp-1"
        seen |= {(c.outcome, c.reason) for c in world.explain(request_id=won.request_id).candidates[:1]}
    assert ("refused", explain.BUDGET) in seen
    assert world.ask("campaign", "rich", m.GetCampaign()).reserved_micros == 0
    assert world.actor("advertiser", "second")._till.account.promised_micros == 0


@pytest.mark.parametrize("silent", ["campaign", "advertiser"])
def test_a_payer_that_does_not_answer_is_passed_over_and_called_so(silent: str) -> None:
    world = serving_world()
    world.advertiser("mute-adv")
    world.campaign("mute", cpm=9_000_000, advertiser="mute-adv")
    world.advance(3_000)
    world.approve("mute-1")
    world.advance(3_000)
    world.silence(EntityRef(silent, {"campaign": "mute", "advertiser": "mute-adv"}[silent]))
    seen = set()
    for _ in range(20):
        won = world.winner()
        assert won is not None
        assert won.creative == "camp-1"
        seen |= {(c.outcome, c.reason) for c in world.explain(request_id=won.request_id).candidates[:1]}
    assert ("refused", explain.NO_ANSWER) in seen
    assert ("refused", explain.BUDGET) not in seen


def test_a_dead_payer_holds_up_one_page_view_a_second_and_not_all() -> None:
    world = serving_world()
    world.advertiser("mute-adv")
    world.campaign("mute", cpm=9_000_000, advertiser="mute-adv")
    world.advance(3_000)
    world.approve("mute-1")
    world.advance(3_000)
    world.silence(EntityRef("campaign", "mute"))
    begun_ms = world.clock.wall_ms()
    while True:
        won = world.winner()
        assert won is not None
        if world.clock.wall_ms() > begun_ms:
            break
    at_ms = world.clock.wall_ms()
    assert at_ms - begun_ms <= 500
    for _ in range(50):
        assert world.winner() is not None
    assert world.clock.wall_ms() == at_ms
    world.unsilence(EntityRef("campaign", "mute"))
    world.advance(1_100)
    assert "mute-1" in {won.creative for _ in range(30) if (won := world.winner())}


def test_an_advertiser_that_was_away_still_learns_of_its_spend() -> None:
    world = serving_world()
    won = world.winner()
    assert won is not None
    world.silence(EntityRef("advertiser", "adv"))
    assert world.beacon(won.impression_query) == m.Tracked("counted")
    world.advance(9_000)
    world.unsilence(EntityRef("advertiser", "adv"))
    world.advance(20_000)
    spent = world.ask("campaign", "camp", m.GetCampaign()).spent_micros
    assert spent > 0
    assert world.ask("advertiser", "adv", m.GetAdvertiser()).spent_micros == spent


def test_a_beacon_whose_campaign_is_away_may_be_sent_again() -> None:
    world = serving_world()
    won = world.winner()
    assert won is not None
    world.silence(EntityRef("campaign", "camp"))
    refused = world.beacon(won.impression_query)
    assert isinstance(refused, Failed)
    assert refused.detail.startswith("try again")
    world.unsilence(EntityRef("campaign", "camp"))
    assert world.beacon(won.impression_query) == m.Tracked("counted")
    world.advance(30_000)
    campaign, advertiser = (
        world.ask("campaign", "camp", m.GetCampaign()),
        world.ask("advertiser", "adv", m.GetAdvertiser()),
    )
    assert campaign.spent_micros == advertiser.spent_micros > 0


def test_a_campaign_without_money_does_not_crowd_out_the_others() -> None:
    """Bids far below the best are not offered; one that can't pay is no measure for that."""
    world = serving_world()
    world.campaign("whale", cpm=900_000_000, budget=1)
    world.advance(3_000)
    world.approve("whale-1")
    world.advance(120_000)
    assert world.index.creatives() == {"camp-1", "whale-1"}
    won = world.winner()
    assert won is not None
    assert won.creative == "camp-1"


def test_an_impression_is_counted_once() -> None:
    world = serving_world()
    won = world.winner()
    assert won is not None
    assert world.beacon(won.impression_query) == m.Tracked("counted")
    assert world.beacon(won.impression_query) == m.Tracked("repeated")
    cost = round(won.price_micros / 1_000)
    campaign = world.ask("campaign", "camp", m.GetCampaign())
    assert (campaign.impressions, campaign.spent_micros, campaign.reserved_micros) == (1, cost, 0)
    assert world.ask("advertiser", "adv", m.GetAdvertiser()).spent_micros == cost
    assert world.facts().count("fact.impression") == 1
    world.restart()
    world.advance(3_000)
    assert world.beacon(won.impression_query) == m.Tracked("repeated"), "also after a restart"
    assert world.ask("campaign", "camp", m.GetCampaign()).impressions == 1


def test_clicks_are_counted_once_and_apart_from_impressions() -> None:
    world = serving_world()
    won = world.winner()
    assert won is not None
    assert world.beacon(won.click_query, "click") == m.Tracked("counted")
    assert world.beacon(won.click_query, "click") == m.Tracked("repeated")
    assert world.beacon(won.impression_query) == m.Tracked("counted")
    campaign = world.ask("campaign", "camp", m.GetCampaign())
    assert (campaign.clicks, campaign.impressions) == (1, 1)
    assert world.beacon(won.impression_query, "click") == m.Tracked("bad_signature")


@pytest.mark.parametrize(
    ("field", "value", "verdict"),
    [
        ("cpm", "0.000001", "bad_signature"),
        ("camp", "other", "bad_signature"),
        ("rid", "another", "bad_signature"),
        ("tok", "x", "bad_signature"),
        ("tok", "\u00e9", "malformed"),
        ("b", "now", "malformed"),
        ("slot", "a|b", "malformed"),
    ],
)
def test_a_changed_beacon_is_refused_and_changes_nothing(field: str, value: str, verdict: str) -> None:
    world = serving_world()
    won = world.winner()
    assert won is not None
    assert world.beacon(won.impression_query, **{field: value}) == m.Tracked(verdict)
    campaign = world.ask("campaign", "camp", m.GetCampaign())
    assert (campaign.impressions, campaign.spent_micros) == (0, 0)


def test_a_beacon_expires() -> None:
    world = serving_world()
    won = world.winner()
    assert won is not None
    world.advance(4 * 60_000 + 1)
    assert world.beacon(won.impression_query) == m.Tracked("expired")
    assert world.ask("campaign", "camp", m.GetCampaign()).reserved_micros == 0, "its promise is over"


def test_an_exhausted_campaign_serves_again_the_next_day_without_any_event() -> None:
    world = serving_world(budget=250, cpm=150_000)  # two impressions at the floor of 100 micros
    for _ in range(2):
        won = world.winner()
        assert won is not None
        assert world.beacon(won.impression_query) == m.Tracked("counted")
    assert world.winner() is None
    assert world.select().outcomes[0].reason == "all_refused"
    assert "camp-1" in world.index.creatives(), "exhaustion removes nothing from the index"
    world.advance(DAY_MS)
    assert world.winner() is not None
    assert world.ask("campaign", "camp", m.GetCampaign()).spent_micros == 0


def test_a_campaign_that_has_too_little_left_is_not_asked() -> None:
    """What its node's replica says is enough; what is said of it ends with its day, and with a larger budget."""
    world = serving_world(budget=2_050)  # its own price is 2,000 micros an impression, the floor 100
    assert world.index.exhausted.get("camp") is None
    won = world.winner()
    assert won is not None
    assert world.beacon(won.impression_query) == m.Tracked("counted")
    world.advance(1_000)
    spent = world.ask("campaign", "camp", m.GetCampaign()).spent_micros
    assert world.index.exhausted.get("camp") == 2_050 - spent, "less is left than its own price"
    assert world.winner() is not None, "it is enough for an impression at the floor"
    until_ms = world.clock.wall_ms() + 60_000
    world.index.exhausted.set("camp", 99, until_ms)
    before = world.ask("campaign", "camp", m.GetCampaign()).reserved_micros
    assert world.select().outcomes[0].reason == "all_refused"
    assert world.explain(slot="top").candidates[0].reason == explain.BUDGET
    assert world.ask("campaign", "camp", m.GetCampaign()).reserved_micros == before
    world.advance(DAY_MS)
    assert world.index.exhausted.get("camp") is None
    assert world.winner() is not None


def test_budgets_hold_under_steady_requests_without_beacons() -> None:
    """I7: what is promised and spent never passes the budget, also when no impression ever comes."""
    world = serving_world(budget=1_000, cpm=200_000)
    served = sum(world.winner() is not None for _ in range(40))
    assert served == 10
    world.advance(241_000)
    assert world.winner() is not None, "promises whose time is over are given back"


@pytest.mark.parametrize("payer", ["campaign", "advertiser"])
def test_a_promise_waits_for_the_escrow_that_covers_it(payer: str) -> None:
    """Also the second one, which needs no more escrow than the first is having written."""
    world = serving_world()
    name = {"campaign": "camp", "advertiser": "adv"}[payer]
    now_ms = world.clock.wall_ms()
    world.hold_store = True
    first = world.asked(payer, name, m.Reserve("r1", 1_000, now_ms))
    second = world.asked(payer, name, m.Reserve("r2", 1_000, now_ms))
    assert first == second == []
    assert len(world.requests) == 1
    world.hold_store = False
    world.run()
    assert [reply.outcome for reply in (*first, *second)] == ["reserved"] * 2
    world.hold_store = True
    third = world.asked(payer, name, m.Reserve("r3", 1_000, now_ms))
    assert [reply.outcome for reply in third] == ["reserved"], "what is covered by a durable escrow costs no write"
    world.restart()
    left = world.actor(payer, name)
    if left is None:
        world.ask(payer, name, m.GetAdvertiser())
        left = world.actor(payer, name)
    assert left._till.account.promised_micros >= 3_000


def test_the_host_must_be_the_verified_one() -> None:
    world = serving_world()
    assert world.select(host="evil.example").state == "host_refused"
    assert world.select(host=f"www.{SITE.upper()}").state == "served"


def test_an_unknown_site_is_said_and_leaves_nothing_behind() -> None:
    world = World()
    request = m.BatchSelect(PAGE, SITE, (m.SlotRequest("top", 300, 250),))
    assert world.ask("adserver", "nowhere.example", request) == m.BatchSelected("unknown_site")
    world.advance(2_000)
    kinds = world.system.cells_by_kind()
    assert "adserver" not in kinds
    assert "site" not in kinds, "a name that anybody may send must not cost memory for ever"


def test_a_beacon_waits_for_a_site_that_starts_and_is_refused_by_one_that_is_none() -> None:
    world = serving_world()
    won = world.winner()
    assert won is not None
    fields = dict(parse_qsl(won.impression_query))
    names = ("url", "slot", "cid", "v", "b", "tok", "camp", "adv", "cpm", "rid")
    track = m.Track("imp", *(fields[name] for name in names))
    assert world.ask("adserver", "nowhere.example", track) == m.Tracked("unknown_site")
    world.restart(settle=False)
    assert world.ask("adserver", SITE, track) == m.Tracked("counted")


def test_decisions_are_kept_in_a_ring() -> None:
    world = serving_world()
    first = world.winner()
    assert first is not None
    assert world.explain(request_id=first.request_id).winner == "camp-1"
    decision = world.explain(slot="top", page=PAGE)
    assert decision.auction is not None
    assert decision.auction.page_url == PAGE
    assert decision.auction.trigger == "approval"
    ring = world.actor("adserver", SITE)._decisions
    for _ in range(limits.decisions_kept_per_site):
        ring.keep(ring._decisions[-1])
    missing = world.explain(request_id=first.request_id)
    if decision.request_id != first.request_id:
        assert isinstance(missing, Failed)
    assert isinstance(world.explain(request_id="none"), Failed)


def probe(world: World, slot: str = "top", **more: Any) -> m.Probed:
    request = m.Probe(PAGE, more.pop("host", SITE), m.SlotRequest(slot, 300, 250), **more)
    probed = world.ask("adserver", SITE, request)
    assert isinstance(probed, m.Probed), probed
    return probed


def test_a_probe_says_what_the_next_request_gets_and_leaves_no_trace() -> None:
    world = serving_world()
    world.campaign("other", cpm=3_000_000)
    world.advance(3_000)
    world.approve("other-1")
    world.advance(3_000)
    for _ in range(10):
        counts = (world.actor("adserver", SITE).requests_count, len(world.facts()))
        reserved = [world.ask("campaign", name, m.GetCampaign()).reserved_micros for name in ("camp", "other")]
        first, again = probe(world), probe(world)
        assert first.decision is not None
        assert first == again, "it draws from a copy"
        assert (world.actor("adserver", SITE).requests_count, len(world.facts())) == counts
        asked = [world.ask("campaign", name, m.GetCampaign()).reserved_micros for name in ("camp", "other")]
        assert asked == reserved
        won = world.winner()
        assert won is not None
        assert (won.creative, won.price_micros) == (first.decision.winner, first.decision.price_micros)
    assert world.explain(slot="top").request_id == won.request_id, "a probe is not remembered"


def test_a_probe_passes_over_what_would_not_be_paid_and_says_why_nothing_is_served() -> None:
    world = serving_world()
    refused = probe(world, refused={"camp-1": explain.BUDGET}).decision
    assert refused is not None
    assert (refused.winner, refused.reason) == ("", "all_refused")
    assert [(c.outcome, c.reason) for c in refused.candidates] == [(explain.REFUSED, explain.BUDGET)]
    assert probe(world, host="elsewhere.example") == m.Probed("host_refused")
    world.ask("site", SITE, m.UpdateSite(suspended=True))
    assert probe(world) == m.Probed("suspended")
