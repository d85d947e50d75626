"""Pacing: the rows P1 to P33 of the vectors, and the laws that they are examples of."""

import datetime as dt
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.ads.pacing import campaigns as c
from node.ads.pacing import controller as k
from node.ads.pacing import rate as r
from node.ads.pacing.window import Window, day_window, elapsed_fraction, second_of_utc_day, traffic_mass

UNIT = 1_000_000
HOUR_S = 3_600
HOUR_MS = 3_600_000


def wall(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)


DAY = wall("2024-01-01T00:00:00+00:00")


def situation(
    hour: float, spend: float, *, rate: float = 0, expected: float | None = None, **more: object
) -> k.Situation:
    """The rows' own: a budget of 100, a real UTC day, 100 requests seen, no shape."""
    base = k.Situation(
        budget_micros=100 * UNIT,
        spent_micros=round(spend * UNIT),
        expected_micros=(100 * hour / 24 if expected is None else expected) * UNIT,
        cpm_micros=5 * UNIT,
        elapsed_s=hour * HOUR_S,
        remaining_s=(24 - hour) * HOUR_S,
        rate_per_s=rate,
        requests=100,
    )
    return msgspec.structs.replace(base, **more)


def throttle(now: k.Situation) -> float:
    return k.step(k.Pacer(), now, DAY)[1].throttle


@pytest.mark.parametrize(
    ("hour", "spend", "rate", "expected"),
    [
        (12, 30, 0, 0.0),  # P1
        (6, 50, 0, 0.99),  # P2
        (12, 50, 100, 0.99),  # P3
        (6, 10, 1000, 0.6817685),  # P4
        (5 / 3600, 0, 1000, 0.99),  # P5
        (12, 70, 0, 0.424),  # P7
        (12, 100, 0, 1.0),  # P9
    ],
)
def test_p1_p9_throttle(hour: float, spend: float, rate: float, expected: float) -> None:
    """P1, P2, P3, P4, P5, P7, P9."""
    assert throttle(situation(hour, spend, rate=rate)) == pytest.approx(expected, abs=1e-7)


def test_p6_the_first_request_of_a_day_is_served() -> None:
    assert throttle(situation(5 / 3600, 0, rate=0.05, requests=1)) == 0


def test_p8_the_second_call_remembers_the_first() -> None:
    pacer, _ = k.step(k.Pacer(), situation(12, 70), DAY)
    _, pace = k.step(pacer, situation(12, 80), DAY)
    assert pace.throttle == pytest.approx(0.484156, abs=1e-6)


def test_p9_no_budget_is_a_hard_stop() -> None:
    pace = k.step(k.Pacer(), situation(12, 0, budget_micros=0), DAY)[1]
    assert (pace.throttle, pace.reason) == (1.0, "no_money")
    assert not any(pace.admits(draw) for draw in (0.0, 0.5, 0.999999))


@pytest.mark.parametrize(
    ("spend", "expected", "ratio"),
    [
        (40, 50, 0.8),  # P11
        (0.04, 8e-8, 0.04),  # P12
        (1.0, 8e-8, 1.0),  # P13
        (0, 8e-8, 0.0),
        (0, 0, 1.0),
        (30, 60, 0.5),  # P14
    ],
)
def test_p11_p14_spend_ratio(spend: float, expected: float, ratio: float) -> None:
    """P11, P12 (OP3), P13, P14."""
    assert c.spend_ratio(100 * UNIT, round(spend * UNIT), expected * UNIT) == pytest.approx(ratio, abs=1e-9)


def test_p10_p15_p16_the_day_may_end_later_than_its_campaigns_day_and_never_goes_on() -> None:
    assert second_of_utc_day(DAY + 6 * HOUR_MS) / HOUR_S == 6
    utc = day_window(DAY, "UTC")
    assert (utc.end_ms - (DAY + 6 * HOUR_MS)) / HOUR_MS == 18
    over = situation(25, 50)
    assert throttle(over) == 1.0
    later = msgspec.structs.replace(over, remaining_s=2 * HOUR_S)
    assert throttle(later) != 1.0
    assert throttle(situation(6, 10, remaining_s=-1 * HOUR_S)) == 1.0


def test_p17_spending_far_ahead_is_slowed_and_never_stopped() -> None:
    pacer = k.Pacer()
    for n in range(25):
        pacer, pace = k.step(pacer, situation(1, 99, expected=1), DAY + n * 100)
    assert pace.throttle == 0.99
    assert pace.admits(0.995)


def test_p19_second_of_the_utc_day() -> None:
    assert second_of_utc_day(wall("2024-05-05T12:30:15+00:00")) == 45_015


@pytest.mark.parametrize(
    ("start", "zone", "end"),
    [
        ("2026-07-13T11:00:00+00:00", "", "2026-07-14T00:00:00+00:00"),
        ("2026-07-13T15:00:00+00:00", "Asia/Tokyo", "2026-07-14T15:00:00+00:00"),
        ("2026-07-13T16:30:00+00:00", "Asia/Tokyo", "2026-07-14T15:00:00+00:00"),
    ],
)
def test_p20_a_window_ends_at_its_zones_midnight(start: str, zone: str, end: str) -> None:
    assert day_window(wall(start), zone).end_ms == wall(end)


def test_p22_a_window_ends_at_its_end_and_not_before() -> None:
    window = day_window(wall("2026-08-16T15:00:00+00:00"), "Asia/Tokyo")
    assert [window.ended(wall(f"2026-08-17T{at}+00:00")) for at in ("14:59:59", "15:00:00")] == [False, True]


def test_p23_mass_also_past_midnight() -> None:
    quarters = (1.0, 2.0, 3.0, 4.0)
    assert traffic_mass(quarters, DAY + 21_600_000, DAY + 64_800_000) == pytest.approx(0.5, abs=1e-9)
    assert traffic_mass(quarters, DAY + 64_800_000, DAY + 86_400_000 + 21_600_000) == pytest.approx(0.5, abs=1e-9)


def test_p24_a_window_that_wraps() -> None:
    start = wall("2026-07-13T15:00:00+00:00")
    window = day_window(start, "Asia/Tokyo")
    hours = {12: 0.5, 6: 0.25, 24: 1.0, -1: 0.0}
    for hour, fraction in hours.items():
        assert elapsed_fraction(window, start + hour * HOUR_MS, (1.0,) * 24) == pytest.approx(fraction, abs=1e-9)


def money(
    budget: float, spent: float, *, name: str = "c", cpm: float = 0, window: Window | None = None
) -> c.CampaignMoney:
    return c.CampaignMoney(
        name, "adv", round(budget * UNIT), round(spent * UNIT), window or day_window(DAY, "UTC"), round(cpm * UNIT)
    )


def summed(monies: Iterable[c.CampaignMoney], now_ms: int) -> c.Totals:
    return c.totals(monies, now_ms, lambda each: elapsed_fraction(each.window, now_ms))


@pytest.mark.parametrize(
    ("start", "zone", "now", "expected", "horizon"),
    [
        ("2026-07-13T00:00:00+00:00", "UTC", "2026-07-14T02:00:00+00:00", 40, "2026-07-14T02:00:00+00:00"),  # P26
        ("2026-07-13T15:00:00+00:00", "Asia/Tokyo", "2026-07-13T14:00:00+00:00", 0, "2026-07-14T15:00:00+00:00"),  # P27
    ],
)
def test_p26_p27_what_was_to_be_spent_by_now(start: str, zone: str, now: str, expected: int, horizon: str) -> None:
    found = summed([money(40, 0, window=day_window(wall(start), zone))], wall(now))
    assert (found.expected_micros, found.horizon_ms) == (expected * UNIT, wall(horizon))


def test_p28_p29_who_can_still_pay() -> None:
    four = [money(10, 4), money(5, 5), money(5, 5.5), money(5, 0)]
    assert c.live(four) == (four[0], four[3])
    nearly, well = money(2, 1.9978), money(10, 5)
    assert [c.can_pay(nearly, 6 * UNIT), c.can_pay(well, 8 * UNIT)] == [False, True]
    assert c.live([nearly, well]) == (nearly, well)


def test_p30_p31_a_campaigns_own_pace() -> None:
    ratios = [c.pace_ratio(money(*each), 0.5) for each in ((10, 5), (2, 1.5), (2, 0))]
    assert ratios == pytest.approx([1.0, 1.5, 0.0])
    pending = msgspec.structs.replace(money(10, 0.05), pending_micros=50_000)
    assert c.pace_ratio(pending, 0.0) == pytest.approx(1.0)


def test_p32_an_exhausted_campaign_is_not_in_the_sum() -> None:
    """TR04. Kept in it, its spent budget looked like over-spending until midnight, and the whole site was slowed."""
    found = summed(c.live([money(10, 5), money(2, 2)]), DAY)
    assert (found.budget_micros, found.spent_micros) == (10 * UNIT, 5 * UNIT)


@pytest.mark.parametrize(
    ("pairs", "expected"), [(((10, 8), (100, 4)), 4.190476), (((100, 8), (5, 3)), 7.411765), ((), 5.0)]
)
def test_p33_weighted_cpm(pairs: tuple[tuple[int, int], ...], expected: float) -> None:
    found = c.weighted_cpm_micros(money(budget, 0, cpm=cpm) for budget, cpm in pairs)
    assert found / UNIT == pytest.approx(expected, abs=1e-6)


# ---- the book of what campaigns said


def test_pending_spend_is_subtracted_when_the_campaign_reports() -> None:
    """TR02. Added when reserved and never taken off, it made a site run at twice its pace."""
    book = c.reported(c.SpendBook(), money(10, 1))
    book = c.promised(c.promised(book, "c", 2_000), "c", 2_000)
    assert book.monies["c"].committed_micros == UNIT + 4_000
    assert c.promised(book, "c", -2_000).monies["c"].pending_micros == 2_000
    book = c.reported(book, money(10, 1.004))
    assert book.monies["c"].committed_micros == UNIT + 4_000
    assert c.promised(book, "unknown", 5) is book


@given(st.integers(1, 400), st.floats(0, 1))
def test_what_was_due_by_a_moment_is_off_by_half_an_impression_at_most(impressions: int, passed: float) -> None:
    """Readers in plenty: whoever asks until it is refused has spent what was expected, to the nearest impression."""
    price, committed = 5_000, 0
    while c.due(money(impressions * price / UNIT, committed / UNIT, cpm=5), passed, price):
        committed += price
    assert abs(committed - impressions * price * passed) <= price / 2 + 1e-6


def test_an_impression_whose_price_is_not_known_is_due_at_the_most_that_it_may_cost() -> None:
    dear, unknown = money(10, 4.999, cpm=4), money(10, 4.998)
    assert c.due(dear, 0.5, 2_000)
    assert not c.due(dear, 0.5)
    assert not c.due(unknown, 0.5)
    assert c.due(unknown, 0.50005)


def test_an_unknown_campaign_takes_part() -> None:
    """TR01."""
    book = c.reported(c.SpendBook(), money(10, 9.9, name="other"))
    assert book.of("evicted", DAY) is None
    assert c.passes_pace(None, 0.999)
    assert c.forget(book, campaign="other").of("other", DAY) is None
    assert c.forget(book, advertiser="adv") == c.SpendBook()
    assert c.forget(book, campaign="nobody") is book


def test_a_campaign_of_yesterday_is_unknown_and_not_spent_out() -> None:
    book = c.spent_out(c.reported(c.SpendBook(), money(10, 3)), "c")
    assert c.live(book.known(DAY + HOUR_MS)) == ()
    assert book.of("c", DAY + 24 * HOUR_MS) is None
    assert book.known(DAY + 24 * HOUR_MS) == ()


@pytest.mark.parametrize(
    ("permille", "heard", "hours", "spent"),
    [
        (550, True, 12, 5.5),  # spent on other sites meanwhile
        (300, True, 12, 4),  # what was heard here is newer
        (300, False, 12, 3),  # what was heard here is old
        (None, True, 12, 4),
        (None, False, 12, None),
        (20, True, 25, 0.2),  # its next day
        (None, True, 25, None),
        (20, True, 49, None),  # and the one after that
    ],
)
def test_how_a_day_stands_is_what_was_heard_or_what_is_told(
    permille: int | None, heard: bool, hours: int, spent: float | None
) -> None:
    found = c.as_told(money(10, 4), permille, DAY + hours * HOUR_MS, heard=heard)
    assert (found.committed_micros if found else None) == (None if spent is None else spent * UNIT)
    assert found is None or not found.window.ended(DAY + hours * HOUR_MS)


def test_a_share_is_told_rounded_down_and_holds_for_another_budget() -> None:
    assert [c.told_permille(each) for each in (money(10, 0.009), money(10, 9.999), money(20, 5), money(0, 0))] == [
        0, 999, 250, 1_000,
    ]  # fmt: skip
    pending = msgspec.structs.replace(money(10, 1), pending_micros=UNIT)
    assert c.told_permille(pending) == 200


def test_a_reset_puts_a_spent_out_campaign_back() -> None:
    book = c.spent_out(c.reported(c.SpendBook(), money(10, 3)), "c")
    raised = c.reported(book, money(20, 10))
    assert c.live(raised.known(DAY)) == (money(20, 10),)


@given(st.floats(0, 100), st.floats(0, 1, exclude_max=True))
def test_a_campaign_ahead_takes_part_the_less_the_further(ratio: float, draw: float) -> None:
    assert c.passes_pace(ratio, draw) or ratio > 1
    assert not c.passes_pace(ratio, draw) or ratio < 1 + c.AHEAD_MAX
    assert c.passes_pace(1 + c.AHEAD_MAX / 4, draw) == (draw < 0.75 + 1e-9) or abs(draw - 0.75) < 1e-6


# ---- the rate observer


def test_the_rate_observer_starts_with_the_first_request() -> None:
    """TR19. Its window began only once one had ended, so the rate stayed 0 for ever."""
    rate = r.RequestRate()
    for n in range(301):
        rate = r.request_seen(rate, 1, DAY + n * 10)
    assert rate.per_s == pytest.approx(100, rel=0.02)
    assert rate.total == 301


def test_a_night_without_requests_leaves_nothing_of_yesterdays_rate() -> None:
    rate = r.RequestRate()
    for n in range(301):
        rate = r.request_seen(rate, 1, DAY + n * 10)
    assert r.request_seen(rate, 1, DAY + 8 * HOUR_MS).per_s < 0.02


def test_slots_per_request_are_smoothed() -> None:
    rate = r.request_seen(r.RequestRate(), 3, DAY)
    assert rate.slots == pytest.approx(1.2)


# ---- the controller over a day


def test_the_mix_of_a_page_does_not_touch_the_integral() -> None:
    pacer, _ = k.step(k.Pacer(), situation(12, 70), DAY)
    assert k.campaigns_changed(pacer).integral == 0
    again, _ = k.step(pacer, situation(12, 70), DAY + 100)
    assert again.integral < pacer.integral < 0


def test_an_idle_site_starts_afresh() -> None:
    pacer, _ = k.step(k.Pacer(), situation(12, 70), DAY)
    _, fresh = k.step(k.Pacer(), situation(12, 50), DAY)
    idle, pace = k.step(pacer, situation(12, 50), DAY + 30_001)
    assert idle.ratio == 1.0
    assert pace.throttle == pytest.approx(fresh.throttle)


def test_learning_of_early_exhaustion_uses_the_moment_it_came() -> None:
    """TR20. Looked at when the day was over, no day had anything left of it, and nothing was ever learned."""
    spent, pace = k.step(k.Pacer(), situation(12, 100), DAY)
    assert pace.throttle == 1.0
    later, _ = k.step(spent, situation(20, 100), DAY + 8 * HOUR_MS)
    assert later.exhausted_left == 0.5
    assert k.rollover(later).over_gain == pytest.approx(3.0)
    assert k.rollover(k.rollover(later)).over_gain == pytest.approx(2.85)
    assert k.rollover(k.Pacer()).over_gain == 2.0


def test_the_gain_and_the_smoothing_tune_themselves() -> None:
    pacer = k.Pacer()
    for n in range(20):
        pacer, _ = k.step(pacer, situation(12, 60), DAY + n * 100)
    assert pacer.over_gain > 2.0
    assert pacer.smoothing > 0.3, "a steady ratio needs little smoothing"
    restless = k.Pacer()
    for n in range(20):
        restless, _ = k.step(restless, situation(12, 40 if n % 2 else 60), DAY + n * 100)
    assert restless.smoothing < 0.3


def test_near_a_busier_hour_it_acts_harder() -> None:
    calm = situation(12, 60, shape_multiplier=1.0, next_hour=3.0, hour_left=0.5)
    soon = msgspec.structs.replace(calm, hour_left=0.1)
    same = msgspec.structs.replace(soon, next_hour=1.1)
    assert throttle(soon) > throttle(calm) == throttle(same)


@given(
    st.floats(0, 24),
    st.floats(0, 200),
    st.floats(0, 10_000),
    st.lists(st.integers(0, 60_000), min_size=1, max_size=30),
)
def test_a_throttle_stays_in_its_range_and_the_same_calls_decide_the_same(
    hour: float, spend: float, rate: float, gaps: list[int]
) -> None:
    now = situation(hour, spend, rate=rate)
    runs = []
    for _ in range(2):
        pacer, at, paces = k.Pacer(), DAY, []
        for gap in gaps:
            at += gap
            pacer, pace = k.step(pacer, now, at)
            paces.append(pace)
        runs.append((pacer, paces))
        assert k.OVER_GAIN[0] <= pacer.over_gain <= k.OVER_GAIN[2]
        assert k.SMOOTHING[0] <= pacer.smoothing <= k.SMOOTHING[2]
        assert all(0 <= pace.throttle <= 0.99 or pace.throttle == 1.0 for pace in paces)
    assert runs[0] == runs[1]
    stopped = spend >= 100 or hour >= 24
    assert all((pace.throttle == 1.0) == stopped for pace in runs[0][1])


def test_a_day_is_spent_evenly_and_never_beyond_its_budget() -> None:
    """A whole day in closed loop: one request a second, each served one pays; the share spent follows the clock."""
    budget, price, every_s = 100 * UNIT, 5_000, 2
    pacer, rate, spent, misses = k.Pacer(), r.RequestRate(), 0, []
    draws = (n * 0.6180339887 % 1 for n in range(10**6))
    for second in range(0, 86_400, every_s):
        now_ms = DAY + second * 1_000
        rate = r.request_seen(rate, 1, now_ms)
        now = k.Situation(
            budget, spent, budget * second / 86_400, 5 * UNIT, second, 86_400 - second, rate.per_s, rate.total
        )
        pacer, pace = k.step(pacer, now, now_ms)
        if pace.admits(next(draws)):
            spent += price
        if second % HOUR_S == 0 and second >= HOUR_S:
            misses.append(abs(spent - now.expected_micros) / budget)
    assert spent <= budget
    assert max(misses) < 0.02
    assert spent > 0.97 * budget
