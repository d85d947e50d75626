"""The money messages, the same to a campaign and to its advertiser: what each answers from its account."""

from __future__ import annotations

import msgspec

from node.ads import messages as m
from node.ads.account import Account
from node.ads.budget import BudgetState


class BudgetWritten(msgspec.Struct, frozen=True):
    """A budget is durable; comes back to the entity that persisted it."""

    budget: BudgetState


def may_leave(reply: msgspec.Struct, account: Account, durable: BudgetState) -> bool:
    """Whether a reply that changed nothing durable may leave now. A promise may not while the escrow that covers it is
    still being written: a crash would forget both."""
    if not isinstance(reply, m.Reserved):
        return True
    budget = account.budget
    covered = durable.spent_micros + durable.escrow_micros
    return durable.day == budget.day and covered >= budget.spent_micros + account.promised_micros


def handle(account: Account, message: m.Reserve | m.Confirm | m.Release, now_ms: int) -> msgspec.Struct:
    """Reserve, confirm or release; each is idempotent by its request id. When `account.budget` is another object
    afterwards, the reply may leave only once that is durable."""
    match message:
        case m.Reserve(request_id, amount, requested_at_ms):
            outcome = account.reserve(request_id, amount, requested_at_ms=requested_at_ms, now_ms=now_ms)
            return m.Reserved(outcome.value)
        case m.Confirm(request_id, _, _, amount):
            return m.Confirmed(account.confirm(request_id, amount, now_ms=now_ms))
        case m.Release(request_id):
            account.release(request_id, now_ms=now_ms)
            return m.Accepted()
