"""Beacons through all entities: what is refused is counted by its reason and changes nothing; what looks bought is told
to an operator; a fold proves itself and teaches once."""

from __future__ import annotations

from typing import Any

import pytest
from ads_world import DAY_MS, HOUR_MS, PAGE, SITE, TRAVEL, World, serving_world

from node.actors.actor import Failed
from node.ads import messages as m
from node.ads.entities.site_conduct import Conduct, counted
from node.ads.facts import Folded
from node.ads.fraud import EVENTS_MIN, SiteDay
from node.core.ids import EntityRef
from node.singleton.campaign_directory import SETTLE_MS
from node.store.port import ReadFacts
from node.wire.codec import CODEC

MINUTE_MS = 60_000


def served(world: World) -> m.Winner:
    won = world.winner()
    assert won is not None
    return won


def counts(world: World) -> dict[str, int]:
    return dict(world.actor("adserver", SITE).beacons)


def fold(world: World, won: m.Winner, event: str = "fold", **changed: Any) -> str:
    fields: dict[str, Any] = {"slot": "top", "creative": won.creative, "token": won.fold_token} | changed
    tracked = world.ask("adserver", SITE, m.Fold(event, PAGE, **fields))
    assert isinstance(tracked, m.Tracked), tracked
    return tracked.verdict


def learned(world: World, creative: str = "camp-1") -> tuple[int, int, int]:
    seen = world.actor("adserver", SITE)._stats.of(creative, world.clock.wall_ms())
    return (seen.impressions, seen.clicks, seen.folds)


def money(world: World) -> tuple[int, int, int]:
    info = world.ask("campaign", "camp", m.GetCampaign())
    return (info.impressions, info.clicks, info.spent_micros)


def test_what_is_refused_is_counted_by_reason_and_changes_nothing() -> None:
    world = serving_world()
    won = served(world)
    before, facts = money(world), world.facts()
    assert world.beacon(won.impression_query, tok="forged").verdict == "bad_signature"
    assert world.beacon(won.impression_query, cpm="0.01").verdict == "bad_signature"
    assert world.beacon(won.impression_query, b="x").verdict == "malformed"
    assert (money(world), learned(world), world.facts()) == (before, (0, 0, 0), facts)
    assert counts(world) == {"refused_bad_signature": 2, "refused_malformed": 1}
    assert world.beacon(won.impression_query).verdict == "counted"
    once = (money(world), learned(world), world.facts().count("fact.impression"))
    for _ in range(3):
        assert world.beacon(won.impression_query).verdict == "repeated"
    assert (money(world), learned(world), world.facts().count("fact.impression")) == once
    world.advance(4 * MINUTE_MS)
    assert world.beacon(won.click_query, "click").verdict == "expired"
    assert {name: count for name, count in counts(world).items() if count} == {
        "refused_bad_signature": 2,
        "refused_malformed": 1,
        "counted_imp": 1,
        "refused_repeated": 3,
        "refused_expired": 1,
    }


def test_a_click_before_its_impression_counts_and_is_told_as_odd() -> None:
    world = serving_world()
    first, second, third = served(world), served(world), served(world)
    world.beacon(first.impression_query)
    world.advance(5_000)
    world.beacon(first.click_query, "click")
    assert not any(name.startswith("suspect") for name in counts(world)), "a reader's"
    world.beacon(second.click_query, "click")
    assert counts(world)["suspect_chain"] == 1
    world.beacon(third.impression_query)
    world.beacon(third.click_query, "click")
    assert counts(world)["suspect_timing"] == 1
    assert learned(world)[1] == 3, "beacons are overtaken on their way: none is lost for that"


def test_a_fold_proves_itself_and_teaches_once() -> None:
    world = serving_world()
    won = served(world)
    assert fold(world, won) == "counted"
    assert learned(world) == (0, 0, 1)
    assert fold(world, won) == "repeated"
    assert learned(world) == (0, 0, 1)
    assert fold(world, served(world)) == "counted", "another serve of the same ad has a token of its own"
    assert fold(world, won, "unfold", token="") == "counted"
    assert learned(world) == (0, 0, 2), "smoothing a corner teaches nothing"
    assert counts(world)["counted_unfold"] == 1


def test_a_call_to_action_is_counted_once_and_judged_by_its_click() -> None:
    world = serving_world()
    first, second, third = served(world), served(world), served(world)
    world.beacon(first.impression_query)
    world.advance(5_000)
    world.beacon(first.click_query, "click")
    world.advance(5_000)
    assert world.beacon(first.cta_query, "cta").verdict == "counted"
    assert not any(name.startswith("suspect") for name in counts(world)), "a reader's"
    before = learned(world)
    assert world.beacon(first.cta_query, "cta").verdict == "repeated"
    assert world.beacon(first.click_query, "cta").verdict == "bad_signature", "each url tells of one event"
    assert world.beacon(second.cta_query, "cta").verdict == "counted"
    assert counts(world)["suspect_chain"] == 1, "nobody has clicked"
    world.beacon(third.click_query, "click")
    world.beacon(third.cta_query, "cta")
    assert counts(world)["suspect_timing"] == 1
    assert learned(world) == (before[0], before[1] + 1, before[2]), "what follows a click teaches nothing of the ad"
    assert (world.facts().count("fact.cta"), world.facts().count("fact.click")) == (3, 2)
    assert world.ask("campaign", "camp", m.GetCampaign()).ctas == 3
    world.restart()
    world.advance(SETTLE_MS + 2_000)
    assert world.beacon(first.cta_query, "cta").verdict == "repeated"


def test_a_fold_is_a_fact_of_its_serve_and_is_counted_once_over_a_restart() -> None:
    world = serving_world()
    won = served(world)
    assert fold(world, won) == "counted"
    page: Any = world.store.apply([ReadFacts(0, 10_000)])[0]
    (found,) = [CODEC.decode_record(fact.body) for fact in page.facts if fact.type == "fact.fold"]
    assert isinstance(found, Folded)
    assert (found.request_id, found.campaign, found.creative) == (won.request_id, "camp", "camp-1")
    assert (found.category, found.publisher) == (TRAVEL, "acme")
    for minutes in (0, 20):
        world.advance(minutes * MINUTE_MS)
        world.restart()
        world.advance(SETTLE_MS + 2_000)
        assert fold(world, won) == "repeated", "its campaign remembers for as long as the token lives"
    assert world.ask("campaign", "camp", m.GetCampaign()).folds == 1


def test_a_fold_whose_campaign_does_not_answer_may_be_said_again() -> None:
    world = serving_world()
    won = served(world)
    world.silence(EntityRef("campaign", "camp"))
    message = m.Fold("fold", PAGE, "top", won.creative, won.fold_token)
    refused = world.ask("adserver", SITE, message)
    assert isinstance(refused, Failed)
    assert "try again" in refused.detail
    world.unsilence(EntityRef("campaign", "camp"))
    assert fold(world, won) == "counted"
    assert learned(world) == (0, 0, 1)


@pytest.mark.parametrize(
    ("event", "changed", "verdict"),
    [
        ("fold", {"slot": "side"}, "slot_mismatch"),
        ("fold", {"creative": "camp-2"}, "creative_mismatch"),
        ("fold", {"token": "no token"}, "bad_format"),
        ("fold", {"token": "AAAA.BBBB"}, "bad_payload"),
        ("fold", {"token": ""}, "bad_format"),
        ("crease", {}, "unknown_event"),
    ],
)
def test_a_fold_that_proves_nothing_is_refused_by_its_reason(event: str, changed: Any, verdict: str) -> None:
    world = serving_world()
    assert fold(world, served(world), event, **changed) == verdict
    assert learned(world) == (0, 0, 0)
    assert counts(world) == {f"refused_{verdict}": 1}


def test_a_fold_with_a_changed_signature_or_too_late_is_refused() -> None:
    world = serving_world()
    won = served(world)
    payload, _, mac = won.fold_token.partition(".")
    assert fold(world, won, token=f"{payload}.{mac[::-1]}") == "bad_signature"
    world.advance(31 * MINUTE_MS)
    assert fold(world, won) == "stale"
    assert learned(world) == (0, 0, 0)


def test_a_fold_of_another_site_is_no_proof_here() -> None:
    world = serving_world()
    won = served(world)
    world.site("other.example")
    other = m.Fold("fold", PAGE, "top", won.creative, won.fold_token)
    assert world.ask("adserver", "other.example", other).verdict == "bad_signature"


def test_days_that_look_bought_are_on_record_and_shown() -> None:
    """Through the ad server: most of a day's beacons are forged; the flag stands once the day is over."""
    world = serving_world()
    for _ in range(EVENTS_MIN):
        world.beacon(served(world).impression_query)
    won = served(world)
    for _ in range(EVENTS_MIN):
        world.beacon(won.impression_query, tok="forged")
    world.advance(HOUR_MS)
    world.winner()
    assert world.ask("site", SITE, m.GetSite()).suspicions == (), "a day is judged when it has ended"
    world.advance(DAY_MS)
    world.winner()
    world.advance(1_000)
    (found,) = world.ask("site", SITE, m.GetSite()).suspicions
    assert (found.flag.signal, found.flag.severity) == ("suspect_share", pytest.approx(0.5))
    assert world.facts().count("fact.site_suspected") == 1
    world.restart()
    world.advance(12_000)
    assert world.ask("site", SITE, m.GetSite()).suspicions == (found,)


def test_a_day_is_compared_with_the_sites_own_and_old_suspicions_go() -> None:
    usual = [SiteDay(1_000 + 10 * (n % 3), 20, 800, 0, 1_020) for n in range(10)]
    conduct = Conduct()
    for day, seen in enumerate(usual, 100):
        conduct = counted(conduct, seen, day * DAY_MS)
    assert conduct.suspicions == ()
    assert len(conduct.history) == 9, "today is not history yet"
    conduct = counted(conduct, SiteDay(9_000, 180, 800, 0, 9_180), 110 * DAY_MS)
    conduct = counted(conduct, SiteDay(0, 0, 0), 111 * DAY_MS)
    assert [(each.day, each.flag.signal) for each in conduct.suspicions] == [(110, "impressions_per_view")]
    assert counted(conduct, SiteDay(0, 0, 0), 111 * DAY_MS - 1) == conduct, "a clock that went back ends no day"
    assert counted(conduct, SiteDay(0, 0, 0), 150 * DAY_MS).suspicions == ()
