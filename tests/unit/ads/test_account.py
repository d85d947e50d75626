"""Reservations over a durable escrow: I7 and idempotency, also across crashes."""

import datetime as dt

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from node.ads.account import Account, ReserveOutcome
from node.ads.budget import BudgetState, open_budget
from node.core.clock import Moment
from node.core.limits import reservation_ms_max, reserve_request_age_ms_max

NOON = int(dt.datetime(2026, 7, 14, 12, tzinfo=dt.UTC).timestamp() * 1000)


def at(wall_ms: int) -> Moment:
    """That time by a wall clock that never jumps."""
    return Moment(wall_ms, wall_ms - NOON)


def opened(budget: int = 100) -> Account:
    return Account(open_budget(budget, "UTC", now_ms=NOON), at(NOON))


def reserve(account: Account, request_id: str, amount: int, at_ms: int = NOON) -> ReserveOutcome:
    return account.reserve(request_id, amount, requested_at_ms=at_ms, now=at(at_ms))


def test_money_is_never_promised_twice() -> None:
    account = opened()
    assert reserve(account, "r1", 60) is ReserveOutcome.RESERVED
    assert reserve(account, "r2", 60) is ReserveOutcome.INSUFFICIENT_BUDGET
    account.release("r1", now=at(NOON))
    assert reserve(account, "r3", 100) is ReserveOutcome.RESERVED
    assert account.available_micros == 0


def test_a_repeat_changes_nothing() -> None:
    account = opened()
    reserve(account, "r1", 30)
    assert reserve(account, "r1", 30) is ReserveOutcome.REPEATED
    assert account.promised_micros == 30
    assert account.confirm("r1", 30, now=at(NOON))
    assert not account.confirm("r1", 30, now=at(NOON))
    assert reserve(account, "r1", 30) is ReserveOutcome.REPEATED
    assert (account.budget.spent_micros, account.promised_micros) == (30, 0)


def test_an_old_request_reserves_nothing_and_a_reservation_without_an_impression_comes_back() -> None:
    account = opened()
    late = NOON + reserve_request_age_ms_max + 1
    assert account.reserve("r0", 1, requested_at_ms=NOON, now=at(late)) is ReserveOutcome.STALE_REQUEST
    reserve(account, "r1", 100)
    account.pass_time(at(NOON + reservation_ms_max - 1))
    assert account.available_micros == 0
    account.pass_time(at(NOON + reservation_ms_max))
    assert account.available_micros == 100


def test_a_wall_clock_that_jumps_gives_no_promise_back_and_holds_none_longer() -> None:
    account = opened()
    hour_ms = 3_600_000
    reserve(account, "r1", 60)
    account.pass_time(Moment(NOON + hour_ms, 1_000))
    assert account.available_micros == 40, "its impression is still to come"
    ahead = account.reserve("r2", 40, requested_at_ms=NOON + hour_ms, now=Moment(NOON + hour_ms, 2_000))
    assert ahead is ReserveOutcome.RESERVED
    account.pass_time(at(NOON + reservation_ms_max))
    assert account.available_micros == 60
    account.pass_time(at(NOON + reservation_ms_max + 2_000))
    assert account.available_micros == 100, "the clock is right again, and the promise's time was over"


def test_most_promises_need_no_write() -> None:
    account = opened(100_000)
    writes = 0
    for n in range(1_000):
        before = account.budget
        assert reserve(account, f"r{n}", 10) is ReserveOutcome.RESERVED
        writes += account.budget is not before
    assert writes < 10


def test_a_crash_keeps_promises_and_pays_those_that_were_forgotten() -> None:
    account = opened(1_000)
    reserve(account, "r1", 30)
    recovered = Account(account.budget, at(NOON))
    assert recovered.promised_micros >= 30
    assert recovered.confirm("r1", 30, now=at(NOON + 1))
    assert not Account(recovered.budget, at(NOON)).confirm("r1", 30, now=at(NOON + 2))
    assert recovered.budget.spent_micros == 30
    recovered.pass_time(at(NOON + reservation_ms_max))
    assert recovered.available_micros == 970


class AccountMachine(RuleBasedStateMachine):
    """What is spent and promised never passes the budget, whatever is repeated, given back, late, or lost in a crash.

    The model writes as an entity does: a promise is given out only once a budget that covers it is durable.
    """

    ids = st.integers(0, 5)

    def __init__(self) -> None:
        super().__init__()
        self.now = NOON
        self.account = opened()
        self.durable: BudgetState = self.account.budget
        self.generation = dict.fromkeys(range(6), 0)
        self.made_at: dict[str, int] = {}
        self.promised: dict[str, int] = {}
        self.paid: set[str] = set()

    def name(self, number: int) -> str:
        return f"r{number}.{self.generation[number]}"

    @rule(number=ids, amount=st.integers(0, 60))
    def reserve(self, number: int, amount: int) -> None:
        name = self.name(number)
        made_at = self.made_at.setdefault(name, self.now)
        outcome = self.account.reserve(name, amount, requested_at_ms=made_at, now=at(self.now))
        self.durable = self.account.budget
        if outcome is ReserveOutcome.RESERVED:
            assert name not in self.paid
            self.promised[name] = amount

    @rule(number=ids)
    def confirm(self, number: int) -> None:
        name = self.name(number)
        # A beacon comes only for a serve whose promise was given out and whose token still lives.
        if name not in self.promised or self.now - self.made_at[name] >= reservation_ms_max:
            return
        counted = self.account.confirm(name, self.promised[name], now=at(self.now))
        self.durable = self.account.budget
        assert counted == (name not in self.paid)
        self.paid.add(name)

    @rule(number=ids)
    def release(self, number: int) -> None:
        name = self.name(number)
        if name not in self.paid:
            self.account.release(name, now=at(self.now))
            self.promised.pop(name, None)

    @rule(number=ids)
    def next_request(self, number: int) -> None:
        self.generation[number] += 1

    @rule(ms=st.sampled_from([1, 5_000, reserve_request_age_ms_max + 1, reservation_ms_max]))
    def later(self, ms: int) -> None:
        self.now += ms

    @rule()
    def crash(self) -> None:
        self.account = Account(self.durable, at(self.now))

    @invariant()
    def i7(self) -> None:
        budget = self.account.budget
        assert self.account.promised_micros >= 0
        assert budget.spent_micros + self.account.promised_micros <= budget.daily_budget_micros
        assert self.account.promised_micros <= budget.escrow_micros


TestAccountMachine = AccountMachine.TestCase
TestAccountMachine.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
