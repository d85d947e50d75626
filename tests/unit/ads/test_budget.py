"""Days and zones: the pure rules of a budget's state."""

import datetime as dt

import msgspec
import pytest

from node.ads import budget as b
from node.core.errors import BadInput

HOUR = 3_600_000


def wall(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)


NOON = wall("2026-07-14T12:00:00+00:00")


def spent_at(state: b.BudgetState, amount: int, at: int) -> b.BudgetState:
    return b.spend(b.roll_over(state, now_ms=at), amount, 0)


def test_v16_a_day_is_the_advertisers_own() -> None:
    midnight = wall("2026-07-14T00:00:00+09:00")
    state = b.open_budget(100, "Asia/Tokyo", now_ms=midnight)
    seen = []
    for hours, minutes, amount in ((1, 0, 10), (23, 0, 5), (24, 10, 7)):
        state = spent_at(state, amount, midnight + hours * HOUR + minutes * 60_000)
        seen.append(state.spent_micros)
    assert seen == [10, 15, 7]
    assert state.day == "2026-07-15"


def test_v17_utc_days() -> None:
    state = b.open_budget(100, "UTC", now_ms=NOON)
    seen = []
    for at, amount in [(NOON, 10), (NOON + HOUR, 5), (NOON + 12 * HOUR, 7), (NOON + 13 * HOUR, 4)]:
        state = spent_at(state, amount, at)
        seen.append(state.spent_micros)
    assert seen == [10, 15, 7, 11]


def test_v18_a_zone_change_keeps_the_day_until_the_new_midnight() -> None:
    state = spent_at(b.open_budget(100, "UTC", now_ms=NOON), 10, NOON)
    state = b.change_timezone(state, "Asia/Tokyo", now_ms=NOON)
    assert state.spent_micros == 10
    tokyo_midnight = b.next_midnight_ms(NOON, "Asia/Tokyo")
    assert tokyo_midnight == wall("2026-07-15T00:00:00+09:00")
    assert b.roll_over(state, now_ms=tokyo_midnight - 1).spent_micros == 10
    state = spent_at(state, 4, tokyo_midnight + 1)
    assert state.spent_micros == 4
    assert spent_at(state, 2, tokyo_midnight + 2).spent_micros == 6
    with pytest.raises(BadInput) as caught:
        b.change_timezone(state, "Mars/Olympus", now_ms=NOON)
    assert caught.value.field == "timezone"


def test_an_exhausted_day_ends_at_midnight_without_any_event() -> None:
    state = spent_at(b.open_budget(100, "UTC", now_ms=NOON), 100, NOON)
    midnight = b.next_midnight_ms(NOON, "UTC")
    rolled = b.roll_over(state, now_ms=midnight)
    assert rolled.spent_micros == 0
    assert b.roll_over(rolled, now_ms=midnight) is rolled
    assert b.roll_over(rolled, now_ms=NOON) is rolled


def test_midnight_across_a_clock_change() -> None:
    before = wall("2026-10-25T00:30:00+02:00")
    assert b.next_midnight_ms(before, "Europe/Berlin") - wall("2026-10-25T00:00:00+02:00") == 25 * HOUR


@pytest.mark.parametrize(
    ("budget", "zone", "field"),
    [(0, "UTC", "daily_budget"), (-1, "UTC", "daily_budget"), (5, "", "timezone"), (5, "../etc", "timezone")],
)
def test_bad_budgets_name_the_field(budget: int, zone: str, field: str) -> None:
    with pytest.raises(BadInput) as caught:
        b.open_budget(budget, zone, now_ms=NOON)
    assert caught.value.field == field


def test_the_escrow_grows_in_blocks_and_never_beyond_the_day() -> None:
    state = b.open_budget(1_000, "UTC", now_ms=NOON)
    raised = b.raise_escrow(state, 5)
    assert raised.escrow_micros == 25
    assert b.raise_escrow(raised, 25) is raised
    assert b.raise_escrow(msgspec.structs.replace(raised, spent_micros=990), 26).escrow_micros == 26
    assert b.spend(raised, 20, 3).escrow_micros == 5
    assert b.spend(raised, 25, 3).escrow_micros == 3
