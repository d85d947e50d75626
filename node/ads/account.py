"""An account as its entity holds it: the open reservations of one budget, over the part of it that is durable.

Reserving answers whether the durable escrow has to be raised first; a reply that promises money leaves only then.
Everything is idempotent by request id: a reservation is open until its impression confirms it or its time is over,
by the monotonic clock: one that jumps would give back money whose impression is still to come;
and what was settled is known by its id for longer than any beacon's token lives (`node.ads.settled_ids`).
"""

from __future__ import annotations

import enum
import sys

import msgspec

from node.ads.budget import BudgetState, raise_escrow, roll_over, spend
from node.ads.settled_ids import SettledIds
from node.core.clock import Moment
from node.core.limits import reservation_ms_max, reservations_open_max, reserve_request_age_ms_max

# What was promised before a crash, as one reservation: its parts are unknown.
_BEFORE = ""
_NEVER = sys.maxsize


class ReserveOutcome(enum.Enum):
    RESERVED = "reserved"
    REPEATED = "repeated"
    INSUFFICIENT_BUDGET = "insufficient_budget"
    TOO_MANY_OPEN = "too_many_open"
    STALE_REQUEST = "stale_request"


class Account:
    """One budget's side of reservations. `budget` is what to make durable; it is replaced, never changed in place."""

    def __init__(self, budget: BudgetState, now: Moment) -> None:
        self.budget = budget
        self._open: dict[str, tuple[int, int]] = {}  # amount, end; in the order of their ends
        self._promised = 0
        self._due_ms = _NEVER  # no promise's time is over before: a dictionary's front is not looked for at each call
        self._settled = SettledIds(budget.settled)
        if budget.escrow_micros:
            self._promise(_BEFORE, budget.escrow_micros, now)

    @property
    def promised_micros(self) -> int:
        return self._promised

    def promised_to(self, request_id: str) -> int:
        """What a request is promised, 0 when nothing is."""
        return self._open.get(request_id, (0, 0))[0]

    @property
    def available_micros(self) -> int:
        """What may still be promised today."""
        return max(self.budget.daily_budget_micros - self.budget.spent_micros - self._promised, 0)

    def can_pay(self, amount_micros: int, now: Moment) -> bool:
        """Whether a promise of this much would be given now."""
        self.pass_time(now)
        return amount_micros <= self.available_micros

    def pass_time(self, now: Moment) -> None:
        """Give back promises whose time is over, and start the day if a new one has begun."""
        if now.mono_ms >= self._due_ms:
            self._give_back(now.mono_ms)
        self.budget = roll_over(self.budget, self._promised, now_ms=now.wall_ms)

    def _give_back(self, mono_ms: int) -> None:
        self._due_ms = _NEVER
        over: list[str] = []
        for request_id, (_, end_ms) in self._open.items():  # once: each way in goes by all that has left the front
            if end_ms > mono_ms:
                self._due_ms = end_ms
                break
            over.append(request_id)
        for request_id in over:
            self._promised -= self._open.pop(request_id)[0]

    def reserve(self, request_id: str, amount_micros: int, *, requested_at_ms: int, now: Moment) -> ReserveOutcome:
        """Promise money to a serve. When `budget` changed by it, the promise holds once that is durable."""
        self.pass_time(now)
        if request_id in self._open or request_id in self._settled:
            return ReserveOutcome.REPEATED
        if now.wall_ms - requested_at_ms > reserve_request_age_ms_max:
            return ReserveOutcome.STALE_REQUEST
        if len(self._open) >= reservations_open_max:
            return ReserveOutcome.TOO_MANY_OPEN
        if not 0 <= amount_micros <= self.available_micros:
            return ReserveOutcome.INSUFFICIENT_BUDGET
        self._promise(request_id, amount_micros, now)
        self.budget = raise_escrow(self.budget, self._promised)
        return ReserveOutcome.RESERVED

    def release(self, request_id: str, *, now: Moment) -> None:
        """Give a promise back: the serve did not happen. Unknown ids change nothing."""
        self.pass_time(now)
        amount, _ = self._open.pop(request_id, (0, 0))
        self._promised -= amount

    def confirm(self, request_id: str, amount_micros: int, *, minute: int = 0, now: Moment) -> bool:
        """Turn a promise into spend when its impression arrives; False for a repeat, and for what may be one. `minute`:
        in which its url was signed.

        `amount_micros` comes from the signed beacon: a promise that was forgotten in a crash is paid all the same,
        out of what was set aside for such.
        """
        self.pass_time(now)
        if not self._settled.add(request_id, minute, now.wall_ms):
            return False
        amount, _ = self._open.pop(request_id, (0, 0))
        self._promised -= amount
        if not amount:
            amount = amount_micros
            self._take_from_before(amount)
        paid = spend(self.budget, amount, self._promised)
        self.budget = msgspec.structs.replace(paid, settled=self._settled.minutes())
        return True

    def promise_again(self, request_id: str, amount_micros: int, now: Moment) -> None:
        """Its payment was not written: its impression may come again, so its money is promised again."""
        self._promise(request_id, amount_micros, now)

    def roll_back(self, budget: BudgetState) -> None:
        """This budget is durable, and no later one is: what only those knew was not settled."""
        if budget.settled is not self.budget.settled:
            self._settled = SettledIds(budget.settled)
        self.budget = budget

    def _promise(self, request_id: str, amount: int, now: Moment) -> None:
        end_ms = now.mono_ms + reservation_ms_max
        self._open[request_id] = (amount, end_ms)
        self._promised += amount
        self._due_ms = min(self._due_ms, end_ms)

    def _take_from_before(self, amount: int) -> None:
        before, end_ms = self._open.get(_BEFORE, (0, 0))
        taken = min(before, amount)
        if taken:
            self._open[_BEFORE] = (before - taken, end_ms)
            self._promised -= taken
