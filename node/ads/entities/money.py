"""The money messages, the same to a campaign and to its advertiser: what each answers from its account."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import msgspec

from node.actors.actor import Context
from node.ads import messages as m
from node.ads.account import Account, ReserveOutcome
from node.ads.budget import BudgetState
from node.core.clock import Moment


class BudgetWritten(msgspec.Struct, frozen=True):
    """A budget is durable; comes back to the entity that persisted it."""

    budget: BudgetState


def answer_at_once(ctx: Context, reply: msgspec.Struct) -> None:
    """A reply that needs no write of its own. That an impression is counted already is so only once *that* is durable;
    a page view waits for nothing."""
    if isinstance(reply, m.Confirmed):
        ctx.reply_durable(reply)
    else:
        ctx.reply(reply)


class _Unwritten(NamedTuple):
    """What one message did that is durable once `budget` is: a promise, or (`paid`) an impression's payment."""

    budget: BudgetState
    request_id: str
    amount_micros: int
    paid: bool


class Till:
    """An account, and how much of it is durable: what may be answered at once, and what is taken back when it can't be
    written. `account.budget` is what to persist."""

    def __init__(self, budget: BudgetState, now: Moment) -> None:
        self.account = Account(budget, now)
        self._durable = self._passed = budget
        self._unwritten: deque[_Unwritten] = deque()

    def handle(self, message: m.Reserve | m.Confirm | m.Release, now: Moment) -> tuple[msgspec.Struct, bool]:
        """Reserve, confirm or release, each idempotent by its request id: the reply, and whether it may leave now. If
        not, it may once `account.budget` is durable, which `written` is then told."""
        reply, done = self._do(message, now)
        budget = self.account.budget
        if budget is self._passed and self._may_leave(reply):
            return reply, True
        self._passed = budget
        if done is not None:
            self._unwritten.append(_Unwritten(budget, *done))
        return reply, False

    def _do(
        self, message: m.Reserve | m.Confirm | m.Release, now: Moment
    ) -> tuple[msgspec.Struct, tuple[str, int, bool] | None]:
        """The reply, and what would have to be taken back: whose money, how much, and whether it is paid."""
        account = self.account
        match message:
            case m.Reserve(request_id, amount, requested_at_ms):
                outcome = account.reserve(request_id, amount, requested_at_ms=requested_at_ms, now=now)
                made = outcome is ReserveOutcome.RESERVED
                return m.Reserved(outcome.value), (request_id, amount, False) if made else None
            case m.Confirm(request_id, _, _, amount):
                amount = account.promised_to(request_id) or amount
                counted = account.confirm(request_id, amount, minute=message.minute, now=now)
                return m.Confirmed(counted), (request_id, amount, True) if counted else None
            case m.Release(request_id):
                account.release(request_id, now=now)
                return m.Accepted(), None

    def _may_leave(self, reply: msgspec.Struct) -> bool:
        """Whether a reply that changed nothing durable may leave now. A promise may not while the escrow that covers it
        is still being written: a crash would forget both."""
        if not isinstance(reply, m.Reserved):
            return True
        budget, durable = self.account.budget, self._durable
        covered = durable.spent_micros + durable.escrow_micros
        return durable.day == budget.day and covered >= budget.spent_micros + self.account.promised_micros

    def rebudget(self, daily_budget_micros: int, now: Moment) -> BudgetState:
        """Another daily budget from now on, of which what is spent and promised stays so. To persist; `written` is then
        told."""
        self.account.pass_time(now)
        self._passed = msgspec.structs.replace(self.account.budget, daily_budget_micros=daily_budget_micros)
        self.account.budget = self._passed
        return self._passed

    def charge(self, amount_micros: int, now: Moment) -> BudgetState:
        """So much was spent that nobody told of. To persist; `written` is then told."""
        self.account.pass_time(now)
        budget = self.account.budget
        self._passed = msgspec.structs.replace(budget, spent_micros=budget.spent_micros + amount_micros)
        self.account.budget = self._passed
        return self._passed

    def written(self, budget: BudgetState) -> None:
        """This budget is durable."""
        self._durable = budget
        self._settle_up_to(budget)

    def roll_back(self, budget: BudgetState, now: Moment) -> None:
        """This is the budget that is durable, and nothing after it will be: what it does not hold was never answered,
        so it is as if it had not been asked."""
        self._settle_up_to(budget)
        while self._unwritten:
            lost = self._unwritten.pop()
            if lost.paid:
                self.account.promise_again(lost.request_id, lost.amount_micros, now)
            else:
                self.account.release(lost.request_id, now=now)
        self.account.roll_back(budget)
        self._durable = self._passed = budget

    def _settle_up_to(self, budget: BudgetState) -> None:
        # Budgets are told apart by identity: each is replaced, never changed, and a state keeps the one it was given.
        if any(item.budget is budget for item in self._unwritten):
            while self._unwritten[0].budget is not budget:
                self._unwritten.popleft()
            while self._unwritten and self._unwritten[0].budget is budget:
                self._unwritten.popleft()
