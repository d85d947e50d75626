import datetime as dt

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from node.ads import budget as b
from node.core.errors import BadInput
from node.core.limits import reservation_ms_max, reserve_request_age_ms_max

HOUR = 3_600_000


def wall(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)


NOON = wall("2026-07-14T12:00:00+00:00")


def opened(budget: int = 100, timezone: str = "UTC", now_ms: int = NOON) -> b.BudgetState:
    return b.open_budget(budget, timezone, now_ms=now_ms)


def spend(state: b.BudgetState, request_id: str, amount: int, at: int) -> b.BudgetState:
    state, outcome = b.reserve(state, request_id, amount, requested_at_ms=at, now_ms=at)
    assert outcome is b.ReserveOutcome.RESERVED
    state, _, _ = b.confirm(state, request_id, now_ms=at)
    return state


def test_a_budget_is_never_promised_twice() -> None:
    state = opened(100)
    state, first = b.reserve(state, "r1", 60, requested_at_ms=NOON, now_ms=NOON)
    state, second = b.reserve(state, "r2", 60, requested_at_ms=NOON, now_ms=NOON)
    assert (first, second) == (b.ReserveOutcome.RESERVED, b.ReserveOutcome.INSUFFICIENT_BUDGET)
    state = b.release(state, "r1", now_ms=NOON)
    state, third = b.reserve(state, "r3", 100, requested_at_ms=NOON, now_ms=NOON)
    assert third is b.ReserveOutcome.RESERVED
    assert b.exhausted(state)


def test_a_repeat_changes_nothing() -> None:
    state = opened()
    state, _ = b.reserve(state, "r1", 30, requested_at_ms=NOON, now_ms=NOON)
    again, outcome = b.reserve(state, "r1", 30, requested_at_ms=NOON, now_ms=NOON)
    assert (again, outcome) == (state, b.ReserveOutcome.REPEATED)
    state, _, spent = b.confirm(state, "r1", now_ms=NOON)
    assert spent == 30
    again, seen, spent = b.confirm(state, "r1", now_ms=NOON)
    assert (again, seen, spent) == (state, b.ConfirmOutcome.NOT_OPEN, 0)
    again, outcome = b.reserve(state, "r1", 30, requested_at_ms=NOON, now_ms=NOON + 1)
    assert (again, outcome) == (state, b.ReserveOutcome.REPEATED)


def test_a_request_that_comes_back_late_reserves_nothing() -> None:
    state = spend(opened(), "r1", 30, NOON)
    late = NOON + reserve_request_age_ms_max + 1
    after, outcome = b.reserve(state, "r1", 30, requested_at_ms=NOON, now_ms=late)
    assert outcome is b.ReserveOutcome.STALE_REQUEST
    assert (after.spent_micros, after.reserved_micros) == (30, 0)


def test_a_reservation_without_an_impression_comes_back() -> None:
    state, _ = b.reserve(opened(), "r1", 100, requested_at_ms=NOON, now_ms=NOON)
    assert b.expire(state, now_ms=NOON + reservation_ms_max - 1).available_micros == 0
    assert b.expire(state, now_ms=NOON + reservation_ms_max).available_micros == 100
    _, outcome, spent = b.confirm(state, "r1", now_ms=NOON + reservation_ms_max)
    assert (outcome, spent) == (b.ConfirmOutcome.NOT_OPEN, 0)


def test_v16_a_day_is_the_advertisers_own() -> None:
    midnight = wall("2026-07-14T00:00:00+09:00")
    state = b.open_budget(100, "Asia/Tokyo", now_ms=midnight)
    seen = []
    for hours, minutes, amount in ((1, 0, 10), (23, 0, 5), (24, 10, 7)):
        at = midnight + hours * HOUR + minutes * 60_000
        state = spend(state, f"r{hours}", amount, at)
        seen.append(state.spent_micros)
    assert seen == [10, 15, 7]
    assert state.day == "2026-07-15"


def test_v17_utc_days() -> None:
    state = opened()
    seen = []
    for n, (at, amount) in enumerate([(NOON, 10), (NOON + HOUR, 5), (NOON + 12 * HOUR, 7), (NOON + 13 * HOUR, 4)]):
        state = spend(state, f"r{n}", amount, at)
        seen.append(state.spent_micros)
    assert seen == [10, 15, 7, 11]


def test_v18_a_zone_change_keeps_the_day_until_the_new_midnight() -> None:
    state = spend(opened(), "r1", 10, NOON)
    state = b.change_timezone(state, "Asia/Tokyo", now_ms=NOON)
    assert state.spent_micros == 10
    tokyo_midnight = b.next_midnight_ms(NOON, "Asia/Tokyo")
    assert tokyo_midnight == wall("2026-07-15T00:00:00+09:00")
    assert b.roll_over(state, now_ms=tokyo_midnight - 1).spent_micros == 10
    state = spend(state, "r2", 4, tokyo_midnight + 1)
    assert state.spent_micros == 4
    assert spend(state, "r3", 2, tokyo_midnight + 2).spent_micros == 6
    with pytest.raises(BadInput) as caught:
        b.change_timezone(state, "Mars/Olympus", now_ms=NOON)
    assert caught.value.field == "timezone"


def test_an_exhausted_day_ends_at_midnight_without_any_event() -> None:
    state = spend(opened(100), "r1", 100, NOON)
    assert b.exhausted(state)
    midnight = b.next_midnight_ms(NOON, "UTC")
    rolled = b.roll_over(state, now_ms=midnight)
    assert not b.exhausted(rolled)
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


class BudgetMachine(RuleBasedStateMachine):
    """I7 and idempotency under any order of requests, repeats, releases, edits and days."""

    ids = st.sampled_from([f"r{n}" for n in range(6)])

    def __init__(self) -> None:
        super().__init__()
        self.now = NOON
        self.state = opened(100)
        self.made_at: dict[str, int] = {}
        self.charged: dict[str, int] = {}
        self.generation = dict.fromkeys((f"r{n}" for n in range(6)), 0)

    def name(self, request_id: str) -> str:
        return f"{request_id}.{self.generation[request_id]}"

    @rule(request_id=ids, amount=st.integers(0, 60))
    def reserve(self, request_id: str, amount: int) -> None:
        name = self.name(request_id)
        made_at = self.made_at.setdefault(name, self.now)
        before = b.expire(self.state, now_ms=self.now)
        self.state, outcome = b.reserve(self.state, name, amount, requested_at_ms=made_at, now_ms=self.now)
        if outcome is b.ReserveOutcome.RESERVED:
            assert name not in self.charged
            assert self.state.spent_micros + self.state.reserved_micros <= self.state.daily_budget_micros
        else:
            assert self.state == before

    @rule(request_id=ids)
    def confirm(self, request_id: str) -> None:
        name = self.name(request_id)
        self.state, _, spent = b.confirm(self.state, name, now_ms=self.now)
        if spent:
            assert name not in self.charged
            self.charged[name] = spent

    @rule(request_id=ids)
    def release(self, request_id: str) -> None:
        self.state = b.release(self.state, self.name(request_id), now_ms=self.now)

    @rule(request_id=ids)
    def next_request(self, request_id: str) -> None:
        self.generation[request_id] += 1

    @rule(ms=st.sampled_from([1, 5_000, reserve_request_age_ms_max + 1, reservation_ms_max, 13 * HOUR]))
    def later(self, ms: int) -> None:
        self.now += ms

    @rule(budget=st.integers(1, 200))
    def edit(self, budget: int) -> None:
        self.state = b.change_budget(self.state, max(budget, self.state.spent_micros + self.state.reserved_micros))

    @invariant()
    def i7(self) -> None:
        assert self.state.spent_micros >= 0
        assert self.state.spent_micros + self.state.reserved_micros <= self.state.daily_budget_micros
        assert self.state.reserved_micros == sum(r.amount_micros for r in self.state.reservations.values())


TestBudgetMachine = BudgetMachine.TestCase
TestBudgetMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
