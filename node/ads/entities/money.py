"""The money messages, the same to a campaign and to its advertiser: what each answers from its account."""

from __future__ import annotations

import msgspec

from node.ads import messages as m
from node.ads.account import Account


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
