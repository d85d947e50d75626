"""Token buckets by key: how often one client may do something. Idle keys cost nothing for long."""

from __future__ import annotations

import msgspec

from node.core.limits import rate_gate_keys_max


class Bucket(msgspec.Struct, frozen=True):
    """`tokens` as of `at_ms`; they refill with time and are never counted by a timer."""

    tokens: float
    at_ms: int


def refilled(bucket: Bucket, *, rate_per_s: float, burst: float, now_ms: int) -> Bucket:
    """The bucket now, at most full; time that goes backwards refills nothing."""
    gained = max(now_ms - bucket.at_ms, 0) / 1_000 * rate_per_s
    return Bucket(min(burst, bucket.tokens + gained), max(now_ms, bucket.at_ms))


class RateGate:
    """`burst` at once, then `rate_per_s`."""

    def __init__(self, *, rate_per_s: float, burst: int, idle_ms: int = 60_000) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._idle_ms = idle_ms
        self._buckets: dict[str, Bucket] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def allows(self, key: str, now_ms: int) -> bool:
        full = Bucket(self._burst, now_ms)
        bucket = refilled(self._buckets.pop(key, full), rate_per_s=self._rate_per_s, burst=self._burst, now_ms=now_ms)
        allowed = bucket.tokens >= 1
        self._buckets[key] = Bucket(bucket.tokens - 1 if allowed else bucket.tokens, bucket.at_ms)
        if len(self._buckets) > rate_gate_keys_max:
            del self._buckets[next(iter(self._buckets))]  # asked for the longest ago
        return allowed

    def sweep(self, now_ms: int) -> None:
        """Forget keys that were not asked for lately."""
        self._buckets = {key: b for key, b in self._buckets.items() if now_ms - b.at_ms < self._idle_ms}
