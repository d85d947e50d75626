"""How many requests a second a site gets, and how many slots each asks for."""

from __future__ import annotations

import msgspec

WINDOW_MS = 1_000
RATE_SHARE = 0.3
SLOTS_SHARE = 0.1


class RequestRate(msgspec.Struct, frozen=True):
    """`per_s` is smoothed over windows of a second; `start_ms` None until the first request opens one."""

    start_ms: int | None = None
    count: int = 0
    per_s: float = 0.0
    slots: float = 1.0
    total: int = 0


def request_seen(rate: RequestRate, slots: int, now_ms: int) -> RequestRate:
    """One more request. The window begins with the first one: read as "now" it would never be over."""
    smoothed = (1 - SLOTS_SHARE) * rate.slots + SLOTS_SHARE * max(slots, 0)
    total = rate.total + 1
    if rate.start_ms is None:
        return RequestRate(now_ms, 1, rate.per_s, smoothed, total)
    elapsed_ms = now_ms - rate.start_ms
    if elapsed_ms < WINDOW_MS:
        return RequestRate(rate.start_ms, rate.count + 1, rate.per_s, smoothed, total)
    seen = rate.count * 1_000 / elapsed_ms
    # A window that lasted longer, for want of requests, counts for as many as it could have been.
    kept = (1 - RATE_SHARE) ** (elapsed_ms / WINDOW_MS)
    per_s = seen + (rate.per_s - seen) * kept if rate.per_s > 0 else seen
    return RequestRate(now_ms, 1, per_s, smoothed, total)
