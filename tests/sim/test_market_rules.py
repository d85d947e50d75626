"""Each rule of a market against a record that it must accept and records that it must refuse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from node.ads.budget import day_bounds_ms
from node.sim.market import rules
from node.sim.market.plan import TRAFFIC
from node.sim.market.record import NEVER_MS, Fault, Judged, Look, Paid, RanOut, Sold

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
ZONES = {"a": "UTC", "b": "Asia/Tokyo", "c": "America/New_York"}
DAY = "2027-01-18"
MIDNIGHT_MS, _ = day_bounds_ms(DAY, "UTC")


# ---- pacing


def paid(campaign: str, shares: tuple[float, ...], days: int = 3) -> list[Paid]:
    """So much in each UTC hour of so many days."""
    return [
        Paid(MIDNIGHT_MS + day * DAY_MS + hour * HOUR_MS, campaign, "", round(1_000 * share))
        for day in range(days)
        for hour, share in enumerate(shares)
    ]


def errors(shares: tuple[float, ...]) -> list[rules.Pacing]:
    record = [each for campaign in ZONES for each in paid(campaign, shares)]
    return rules.pacing(record, ZONES, TRAFFIC, MIDNIGHT_MS, MIDNIGHT_MS + 3 * DAY_MS)


def test_spend_that_follows_the_traffic_is_on_course() -> None:
    found = errors(tuple(map(float, TRAFFIC)))
    assert [(each.zone, each.days) for each in found] == [("UTC", 3), ("Asia/Tokyo", 2), ("America/New_York", 2)]
    assert all(each.worst < 1e-9 for each in found)
    assert rules.off_course(found) == []


@pytest.mark.parametrize(
    "shares",
    [
        (1.0,) * 24,  # by the clock
        (*(float(each) for each in TRAFFIC[:20]), 0, 0, 0, 0),  # gone early
        (*(1.3 * each for each in TRAFFIC[:12]), *(0.7 * each for each in TRAFFIC[12:])),  # a third ahead by noon
        (0.0,) * 24,
    ],
)
def test_spend_that_does_not_is_told(shares: tuple[float, ...]) -> None:
    told = rules.off_course(errors(shares))
    assert [line.partition(":")[0] for line in told][:1] == ["UTC"], told


def test_a_day_that_was_not_seen_whole_says_nothing() -> None:
    record = paid("a", (1.0,) * 24)
    assert rules.pacing(record, {"a": "UTC"}, TRAFFIC, MIDNIGHT_MS + 1, MIDNIGHT_MS + DAY_MS + HOUR_MS) == []


# ---- darkness

FAULT = Fault(1_000_000, 1_010_000, 1_100_000, "crash", "n1")


def looked(*dark: tuple[int, int], site: str = "s") -> list[Look]:
    """Every second, with an ad but for some seconds after the fault."""
    return [
        Look(FAULT.at_ms + second * 1_000, site, not any(first <= second < last for first, last in dark), "no_pool")
        for second in range(101)
    ]


def dark_for_s(looks: list[Look]) -> float:
    (found,) = rules.darkness([FAULT], looks, ["s"], NEVER_MS)
    return found.longest_ms / 1_000


def test_a_site_is_dark_from_one_ad_to_the_next() -> None:
    assert dark_for_s(looked()) == 1
    assert dark_for_s(looked((10, 69))) == 60
    assert rules.too_dark(rules.darkness([FAULT], looked((10, 69)), ["s"], NEVER_MS)) == []


@pytest.mark.parametrize(
    "looks",
    [
        looked((10, 70)),
        looked((0, 61)),  # from the fault on
        looked((39, 101)),  # and to the end
        [look for look in looked() if not 20 <= (look.at_ms - FAULT.at_ms) // 1_000 < 90],  # nobody looked for long
        [],
    ],
)
def test_a_site_that_is_dark_for_longer_than_a_minute_is_told(looks: list[Look]) -> None:
    told = rules.too_dark(rules.darkness([FAULT], looks, ["s"], NEVER_MS))
    assert [line.startswith("s was dark for") for line in told] == [True]


def test_each_site_is_looked_at_for_itself_and_only_after_a_fault() -> None:
    before = [Look(FAULT.at_ms - 500_000, "s", False, "no_pool")]
    found = rules.darkness([FAULT], [*before, *looked(), *looked((5, 95), site="t")], ["s", "t"], NEVER_MS)
    assert [(each.site, each.longest_ms > rules.DARK_MS_MAX) for each in found] == [("s", False), ("t", True)]
    assert rules.too_dark(found)[0].endswith("no_pool")


# ---- the return of those that ran out


def sold(at_ms: int, campaign: str = "a", site: str = "s", creative: str = "cr") -> Sold:
    return Sold(at_ms - 10, at_ms, site, campaign, creative, 2_000_000)


OUT = RanOut(MIDNIGHT_MS + 15 * HOUR_MS, "a", DAY)
NEXT_MS = MIDNIGHT_MS + DAY_MS


def returned(*served_ms: int) -> list[rules.Return]:
    return rules.returns([OUT, OUT], [sold(at) for at in served_ms], ZONES, 6 * HOUR_MS, NEXT_MS + 12 * HOUR_MS)


def test_who_ran_out_returns_after_its_own_midnight() -> None:
    found = returned(OUT.at_ms - 5, NEXT_MS + 90_000, NEXT_MS + HOUR_MS)
    assert [each.after_ms for each in found] == [90_000]
    assert rules.stayed_away(found) == []
    tokyo = RanOut(MIDNIGHT_MS, "b", DAY)
    found = rules.returns([tokyo], [sold(NEXT_MS - 9 * HOUR_MS, "b")], ZONES, 6 * HOUR_MS, NEXT_MS)
    assert [each.after_ms for each in found] == [0]


@pytest.mark.parametrize("served_ms", [(), (OUT.at_ms - 5, NEXT_MS - 1), (NEXT_MS + 7 * HOUR_MS,)])
def test_who_does_not_return_is_told(served_ms: tuple[int, ...]) -> None:
    assert rules.stayed_away(returned(*served_ms)) == [f"a ran out on {DAY} and did not serve again"]


def test_a_run_that_ends_soon_after_a_midnight_says_nothing_of_it() -> None:
    assert rules.returns([OUT], [], ZONES, 6 * HOUR_MS, NEXT_MS + HOUR_MS) == []


# ---- budgets and approvals


def test_i7_a_days_impressions_stay_within_its_budget() -> None:
    record = [Paid(1, "a", DAY, 600), Paid(2, "a", DAY, 400), Paid(3, "a", "2027-01-19", 1_000), Paid(4, "b", DAY, 5)]
    budgets = {"a": 1_000, "b": 5}
    assert rules.over_budget(record, budgets) == []
    told = rules.over_budget([*record, Paid(5, "a", DAY, 1)], budgets)
    assert told == [f"a has spent 1001 of 1000 micros on {DAY}"]


APPROVED = Judged(100, 110, "s", "cr", True)
REVOKED = Judged(200, 210, "s", "cr", False)
AGAIN = Judged(300, 310, "s", "cr", True)


@pytest.mark.parametrize("at_ms", [105, 150, 205, 215, 305, 400])
def test_i8_what_is_approved_may_be_shown(at_ms: int) -> None:
    """Also by a page that had asked before a revocation was acknowledged."""
    assert rules.unapproved([sold(at_ms)], [APPROVED, REVOKED, AGAIN]) == []


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (sold(99), [APPROVED]),  # too early
        (sold(250), [APPROVED, REVOKED, AGAIN]),  # between
        (sold(230), [APPROVED, REVOKED]),
        (sold(150), [replace(APPROVED, site="other")]),
        (sold(150), [replace(APPROVED, creative="other")]),
        (sold(150), [replace(APPROVED, approved=False)]),
        (sold(150), []),
    ],
)
def test_i8_what_is_not_is_told(shown: Sold, words: list[Judged]) -> None:
    assert rules.unapproved([shown], words) == [f"cr was shown on s at {shown.at_ms}, and not approved"]


def test_i8_a_revocation_that_nobody_acknowledged_holds_nothing_back() -> None:
    assert rules.unapproved([sold(900)], [APPROVED, replace(REVOKED, done_ms=NEVER_MS)]) == []
