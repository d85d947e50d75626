"""Whether a click can have happened: after its impression, and not faster than a hand is.

By request id; it judges beacons, never readers. What arrives out of order is told from what arrives too soon.
"""

from __future__ import annotations

import enum
from collections import OrderedDict

import msgspec

from node.core.limits import engagements_max

TTL_MS = 30 * 60_000
FLOOR_MS = 100


class Judgement(enum.Enum):
    OK = "ok"
    CHAIN = "chain"  # the event that must come before did not
    TIMING = "timing"  # it came so short a time before that nobody can have acted


class Seen(msgspec.Struct):
    """When each step of one serve was seen first, in ms of the monotonic clock; None: not yet."""

    at_ms: int
    impression_ms: int | None = None
    click_ms: int | None = None


class EngagementGuard:
    """The serves of the last half hour, the oldest first."""

    def __init__(self, *, floor_ms: int = FLOOR_MS) -> None:
        self._floor_ms = floor_ms
        self._serves: OrderedDict[str, Seen] = OrderedDict()

    def impression(self, request_id: str, now_ms: int) -> Judgement:
        seen = self._of(request_id, now_ms)
        if seen.impression_ms is None:
            seen.impression_ms = now_ms
        return Judgement.OK

    def click(self, request_id: str, now_ms: int) -> Judgement:
        """A click; also one that came first is remembered, so that its call to action has a chain of its own."""
        seen = self._of(request_id, now_ms)
        if seen.click_ms is None:
            seen.click_ms = now_ms
        return self._after(seen.impression_ms, now_ms)

    def call_to_action(self, request_id: str, now_ms: int) -> Judgement:
        return self._after(self._of(request_id, now_ms).click_ms, now_ms)

    def knows(self, request_id: str) -> bool:
        return request_id in self._serves

    def _after(self, before_ms: int | None, now_ms: int) -> Judgement:
        if before_ms is None:
            return Judgement.CHAIN
        return Judgement.OK if now_ms - before_ms >= self._floor_ms else Judgement.TIMING

    def _of(self, request_id: str, now_ms: int) -> Seen:
        while self._serves:
            oldest = next(iter(self._serves.values()))
            if now_ms - oldest.at_ms < TTL_MS and len(self._serves) < engagements_max:
                break
            self._serves.popitem(last=False)
        return self._serves.setdefault(request_id, Seen(now_ms))
