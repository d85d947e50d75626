"""The account that a campaign and its advertiser each keep: money messages in, a new budget and a reply out."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from node.ads import messages as m
from node.ads.budget import BudgetState, ConfirmOutcome, confirm, expire, release, reserve


@dataclass(frozen=True, slots=True)
class Change:
    """The budget after a message (the same object when nothing changed), what to answer, what was newly spent."""

    budget: BudgetState
    reply: msgspec.Struct
    spent_micros: int = 0
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Account:
    """One budget's side of a reservation."""

    budget: BudgetState

    def today(self, now_ms: int) -> BudgetState:
        """The budget as it stands at this moment: the day rolled over, overdue reservations given back."""
        return expire(self.budget, now_ms=now_ms)

    def apply(self, message: m.Reserve | m.Confirm | m.Release, now_ms: int) -> Change:
        """Reserve, confirm or release; each is idempotent by its request id."""
        match message:
            case m.Reserve(request_id, amount, requested_at_ms):
                budget, outcome = reserve(
                    self.budget, request_id, amount, requested_at_ms=requested_at_ms, now_ms=now_ms
                )
                return Change(budget, m.Reserved(outcome.value))
            case m.Confirm(request_id):
                budget, confirmed, spent = confirm(self.budget, request_id, now_ms=now_ms)
                counted = confirmed is ConfirmOutcome.CONFIRMED
                return Change(budget, m.Confirmed(counted), spent, counted)
            case m.Release(request_id):
                return Change(release(self.budget, request_id, now_ms=now_ms), m.Accepted())
