"""When a site's visitors come: the rows S1 to S11 of the vectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.ads.pacing import shape as s
from node.ads.pacing.campaigns import spend_ratio
from node.ads.pacing.window import Window, elapsed_fraction, scaled_fraction
from node.wire.codec import CODEC

HOUR_S = 3_600


def test_s1_a_new_tracker_is_even() -> None:
    assert [s.cumulative(s.UNIFORM, bucket) for bucket in (0, 11, 23)] == pytest.approx([1 / 24, 0.5, 1.0])


def test_s2_buckets() -> None:
    seconds = (0, 3599, 3600, 43_200, 86_399, -100, 86_500)
    assert [s.bucket_of(second) for second in seconds] == [0, 0, 1, 12, 23, 0, 23]


def test_s3_a_new_tracker_learns_by_the_hour() -> None:
    shape = s.observe(s.TrafficShape(), 0, 100, 0.5)
    shape = s.observe(shape, HOUR_S, 1, 0.5)
    assert shape.ema == pytest.approx(50.5)
    shape = s.close_bucket(shape, 0.5)
    assert shape.volumes[:2] == pytest.approx((1.490099, 0.519417), abs=1e-6)
    assert shape.ema == pytest.approx(25.75)
    assert shape.volumes[0] > 1 > shape.volumes[1]
    assert shape.volumes[0] > 2 * shape.volumes[1]


def test_s4_cumulative_of_four() -> None:
    assert [s.cumulative((1, 2, 3, 4), n) for n in range(4)] == pytest.approx([0.1, 0.3, 0.6, 1.0])


@pytest.mark.parametrize(
    ("volumes", "points"),
    [
        ((1, 1, 1, 1), {0: 0, 21_600: 0.25, 43_200: 0.5, 10_800: 0.125, 27_000: 0.3125}),  # S5
        ((1, 2, 3, 4), {0: 0, 10_800: 0.05, 21_600: 0.1, 32_400: 0.2}),  # S6
    ],
)
def test_s5_s6_between_buckets(volumes: s.Volumes, points: dict[int, float]) -> None:
    assert [s.cdf(volumes, second) for second in points] == pytest.approx(list(points.values()))


def test_s7_reset_round_trip_and_flush() -> None:
    shape = s.close_bucket(s.observe(s.TrafficShape(), 0, 50, 1.0), 1.0)
    assert shape.volumes[0] > 0
    again = CODEC.decode_record(CODEC.encode_record(shape))
    assert isinstance(again, s.TrafficShape)
    assert (again.volumes, again.ema) == (shape.volumes, shape.ema)
    assert s.TrafficShape().volumes == (1.0,) * 24


def test_s8_a_busy_noon() -> None:
    noon = tuple(5.0 if hour == 12 else 0.5 for hour in range(24))
    fraction = elapsed_fraction(Window(0, 86_400_000), 13 * HOUR_S * 1_000, noon)
    assert fraction == pytest.approx(2 / 3, abs=1e-9)
    assert spend_ratio(100_000_000, 60_000_000, 100_000_000 * fraction) < 1


def test_s9_without_a_shape_the_clock_decides() -> None:
    assert elapsed_fraction(Window(0, 86_400_000), 43_200_000) == 0.5
    assert spend_ratio(100_000_000, 50_000_000, 50_000_000) == 1.0


def test_s10_a_day_of_an_hour() -> None:
    assert scaled_fraction(1_800_000, 3_600_000, s.UNIFORM) == pytest.approx(0.5)
    assert scaled_fraction(1_800_000, 3_600_000) == 0.5
    assert scaled_fraction(7_200_000, 3_600_000, s.UNIFORM) == 1.0


def live_through(days: int, noon: int, *, by_day: bool = False) -> s.TrafficShape:
    shape = s.TrafficShape(by_day=by_day)
    for _ in range(days):
        for hour in range(24):
            shape = s.observe(shape, hour * HOUR_S, noon if hour == 12 else 10)
        if by_day:
            shape = s.end_day(shape, was_weekend=False, next_weekend=False)
    return s.close_bucket(shape)


@pytest.mark.parametrize(("days", "noon", "ratio"), [(30, 100, 5.0), (20, 100, 4.5), (20, 50, 3.0)])
@pytest.mark.parametrize("by_day", [False, True])
def test_s11_a_busy_hour_is_learned(days: int, noon: int, ratio: float, by_day: bool) -> None:
    shape = live_through(days, noon, by_day=by_day)
    assert shape.warm
    assert shape.volumes[12] > ratio * shape.volumes[0]


def test_after_a_whole_day_only_the_daily_blend_touches_the_volumes() -> None:
    shape = s.end_day(live_through(1, 100), was_weekend=False, next_weekend=False)
    busy = s.close_bucket(s.observe(shape, 0, 10_000))
    assert busy.volumes == shape.volumes
    assert s.close_bucket(s.observe(s.restored(shape.volumes), 0, 10_000)).volumes == shape.volumes


def test_the_first_whole_day_is_believed() -> None:
    """By a fifth a day it took two weeks until a site's nights were known for what they are."""
    shape = s.end_day(live_through(1, 100), was_weekend=False, next_weekend=False)
    assert shape.volumes[12] == pytest.approx(10 * shape.volumes[11])
    assert sum(shape.volumes) == pytest.approx(sum(live_through(1, 100).volumes))


def test_of_a_day_that_began_at_noon_only_the_rest_is_believed() -> None:
    shape = s.TrafficShape()
    for hour in range(12, 24):
        shape = s.observe(shape, hour * HOUR_S, 300 if hour == 20 else 10)
    ended = s.end_day(shape, was_weekend=False, next_weekend=False)
    assert ended.volumes[:12] == s.UNIFORM[:12]
    assert ended.volumes[20] == pytest.approx(30 * ended.volumes[19])


def test_a_day_without_traffic_teaches_nothing() -> None:
    shape = s.TrafficShape()
    assert s.end_day(shape, was_weekend=False, next_weekend=True) is shape


def test_weekends_are_kept_apart() -> None:
    friday = s.end_day(live_through(1, 100), was_weekend=False, next_weekend=True)
    quiet = friday
    for hour in range(24):
        quiet = s.observe(quiet, hour * HOUR_S, 10)
    sunday = s.end_day(quiet, was_weekend=True, next_weekend=False)
    assert sunday.volumes == friday.weekday
    assert sunday.weekend is not None
    assert friday.weekday is not None
    assert sunday.weekend[12] < friday.weekday[12]


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=48), st.floats(-10, 90_000), st.floats(-10, 90_000))
def test_a_share_of_a_day_only_grows(volumes: list[float], one: float, two: float) -> None:
    earlier, later = sorted((one, two))
    shares = [s.cdf(tuple(volumes), at) for at in (-1, earlier, later, 86_400)]
    assert shares[0] == 0
    assert shares[3] == pytest.approx(1)
    assert shares[1] <= shares[2] + 1e-12


@given(st.integers(0, 10**10), st.sampled_from([23, 24, 25]), st.lists(st.floats(0.01, 9), min_size=24, max_size=24))
def test_windows_of_any_length_pass_once(start: int, hours: int, volumes: list[float]) -> None:
    window = Window(start, start + hours * HOUR_S * 1_000)
    steps = [start + part * (window.end_ms - start) // 20 for part in range(21)]
    shares = [elapsed_fraction(window, at, tuple(volumes)) for at in steps]
    assert shares[0] == 0
    assert shares[-1] == 1
    assert shares == sorted(shares)
