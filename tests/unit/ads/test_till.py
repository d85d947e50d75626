"""The till: what is answered is durable or covered by what is, whichever writes fail (I2, I7)."""

import datetime as dt
from collections import deque

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from node.ads import messages as m
from node.ads.budget import BudgetState, open_budget
from node.ads.entities.money import Till
from node.ads.settled_ids import SettledIds
from node.core.clock import Moment
from node.core.limits import reservation_ms_max

NOON = int(dt.datetime(2026, 7, 14, 12, tzinfo=dt.UTC).timestamp() * 1000)
DAILY = 1_000


def at(wall_ms: int) -> Moment:
    return Moment(wall_ms, wall_ms - NOON)


def confirm(request_id: str, amount: int) -> m.Confirm:
    return m.Confirm(request_id, "site", "creative", amount)


def test_a_lost_payment_is_promised_again_and_paid_once_when_its_beacon_comes_again() -> None:
    till = Till(open_budget(DAILY, "UTC", now_ms=NOON), at(NOON))
    assert till.handle(m.Reserve("r1", 30, NOON), at(NOON)) == (m.Reserved("reserved"), False)
    durable = till.account.budget
    till.written(durable)
    assert till.handle(confirm("r1", 30), at(NOON)) == (m.Confirmed(True), False)
    till.roll_back(durable, at(NOON))
    assert (till.account.budget, till.account.promised_micros) == (durable, 30)
    assert till.handle(confirm("r1", 30), at(NOON)) == (m.Confirmed(True), False)
    assert (till.account.budget.spent_micros, till.account.promised_micros) == (30, 0)


def test_a_promise_within_the_durable_escrow_needs_no_write_also_after_one_failed() -> None:
    till = Till(open_budget(DAILY, "UTC", now_ms=NOON), at(NOON))
    till.handle(m.Reserve("r1", 1, NOON), at(NOON))
    durable = till.account.budget
    till.written(durable)
    assert till.handle(m.Reserve("big", 100, NOON), at(NOON))[1] is False
    till.roll_back(durable, at(NOON))
    assert till.account.promised_micros == 1, "the promise that was refused is not held against the next"
    assert till.handle(m.Reserve("r2", 1, NOON), at(NOON)) == (m.Reserved("reserved"), True)


class TillMachine(RuleBasedStateMachine):
    """An entity as the runtime treats it: one write under way, later ones folded into the next; writes succeed or
    definitely fail; word of a write comes late. Amounts are small beside the day's money, and times short beside a
    promise's, but for `later`."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOON
        self.durable: BudgetState = open_budget(DAILY, "UTC", now_ms=NOON)
        self.till = Till(self.durable, at(NOON))
        self.count = 0
        # A persist: its budget (None: it only waits), what its reply says, of whom, how much, and when that was asked.
        self.writes: deque[list[tuple[BudgetState | None, msgspec.Struct, str, int, int]]] = deque()
        self.words: deque[BudgetState] = deque()
        self.given: dict[str, tuple[int, int]] = {}
        self.paid: dict[str, tuple[int, int]] = {}  # how much, and when

    def _answer(self, reply: msgspec.Struct, name: str, amount: int, at_ms: int) -> None:
        if reply == m.Reserved("reserved"):
            self.given[name] = (amount, at_ms)
        elif reply == m.Confirmed(True):
            assert name not in self.paid, "counted twice"
            self.paid[name] = (amount, at_ms)
            self.given.pop(name, None)
        elif reply == m.Confirmed(False):
            assert name in self.paid, "said to be counted already"

    def _take(self, message: m.Reserve | m.Confirm | m.Release, name: str, amount: int) -> msgspec.Struct:
        reply, at_once = self.till.handle(message, at(self.now))
        if at_once and reply == m.Confirmed(False) and self.writes:
            self.writes[-1].append((None, reply, name, amount, self.now))
        elif at_once:
            self._answer(reply, name, amount, self.now)
        else:
            item = (self.till.account.budget, reply, name, amount, self.now)
            if len(self.writes) < 2:
                self.writes.append([item])
            else:
                self.writes[1].append(item)
        return reply

    @rule(amount=st.integers(1, 90))
    def reserve(self, amount: int) -> None:
        self.count += 1
        name = f"r{self.count}"
        self._take(m.Reserve(name, amount, self.now), name, amount)

    @precondition(lambda self: self.given)
    @rule(data=st.data())
    def confirm(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.given)))
        amount, at_ms = self.given[name]  # while its confirmation is being written it may come again
        if self.now - at_ms < reservation_ms_max:
            self._take(confirm(name, amount), name, amount)

    @precondition(lambda self: self.given)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.given)))
        if all(name != item[2] for batch in self.writes for item in batch):
            del self.given[name]
            self._take(m.Release(name), name, 0)

    @precondition(lambda self: self.writes)
    @rule()
    def write(self) -> None:
        batch = self.writes.popleft()
        self.words.extend(written := [item[0] for item in batch if item[0] is not None])
        self.durable = written[-1]
        for _, *answer in batch:
            self._answer(*answer)

    @precondition(lambda self: self.writes)
    @rule()
    def fail(self) -> None:
        self.writes.clear()
        self.till.roll_back(self.durable, at(self.now))

    @precondition(lambda self: self.words)
    @rule()
    def hear(self) -> None:
        self.till.written(self.words.popleft())

    @rule()
    def crash(self) -> None:
        self.writes.clear()
        self.words.clear()
        self.till = Till(self.durable, at(self.now))

    @rule(ms=st.sampled_from([1, 60_000, reservation_ms_max]))
    def later(self, ms: int) -> None:
        self.now += ms

    @invariant()
    def promises_are_covered(self) -> None:
        """I7: what was given out and can still be paid, and what is paid, never pass the day's money, in the store."""
        open_micros = sum(amount for amount, at_ms in self.given.values() if self.now - at_ms < reservation_ms_max)
        assert open_micros <= self.durable.escrow_micros
        assert self.durable.spent_micros + open_micros <= DAILY

    @invariant()
    def what_was_acknowledged_is_durable(self) -> None:
        """I2: each payment once, and known for longer than its beacon can come again."""
        settled = SettledIds(self.durable.settled)
        assert all(name in settled for name, (_, at_ms) in self.paid.items() if self.now - at_ms <= reservation_ms_max)
        assert self.durable.spent_micros == sum(amount for amount, _ in self.paid.values())

    @invariant()
    def memory_agrees_with_itself(self) -> None:
        account = self.till.account
        assert account.promised_micros >= 0
        assert account.budget.spent_micros + account.promised_micros <= DAILY


TestTillMachine = TillMachine.TestCase
TestTillMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
