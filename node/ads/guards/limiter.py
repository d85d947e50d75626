"""A token bucket that lets callers wait: first come, first served, each until its own deadline.

A grant is an effect of a step: whoever drives this makes the new state durable before it answers, so that a restart can
never hand the same token out twice. A caller whose deadline has passed never costs a token, wherever it stands.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from node.ads.guards.rate_gate import Bucket, refilled
from node.wire.registry import wire_type

Verdict = Literal["granted", "queue_full", "expired"]


class LimiterSettings(msgspec.Struct, frozen=True):
    tokens_max: float = 5.0
    rate_per_s: float = 8 / 60
    waiting_max: int = 10_000


class Waiter(msgspec.Struct, frozen=True):
    caller: int
    expires_ms: int


@wire_type("state.token_limiter")
class LimiterState(msgspec.Struct, frozen=True):
    """What is kept over a restart, and when (wall); who waits is not, and asks again."""

    tokens: float
    at_ms: int


class Limiter(msgspec.Struct, frozen=True):
    bucket: Bucket
    waiting: tuple[Waiter, ...] = ()

    def state(self, wall_ms: int) -> LimiterState:
        """What to keep of it now."""
        return LimiterState(self.bucket.tokens, wall_ms)


Answers = tuple[tuple[int, Verdict], ...]


def opened(settings: LimiterSettings, now_ms: int, kept: LimiterState | None = None, kept_for_ms: int = 0) -> Limiter:
    """A full bucket, or what was kept of one, so long ago: never more than it may hold now, and never of the future,
    which would refill it with nothing until then."""
    if kept is None:
        return Limiter(Bucket(settings.tokens_max, now_ms))
    return Limiter(Bucket(min(kept.tokens, settings.tokens_max), now_ms - max(0, kept_for_ms)))


def acquire(
    limiter: Limiter, caller: int, expires_ms: int, settings: LimiterSettings, now_ms: int
) -> tuple[Limiter, Answers]:
    """One more caller; the answers may be to others that waited before it."""
    limiter, answers = step(limiter, settings, now_ms)
    if expires_ms <= now_ms:
        return limiter, (*answers, (caller, "expired"))
    if not limiter.waiting and limiter.bucket.tokens >= 1:
        return Limiter(_taken(limiter.bucket)), (*answers, (caller, "granted"))
    if len(limiter.waiting) >= settings.waiting_max:
        return limiter, (*answers, (caller, "queue_full"))
    return Limiter(limiter.bucket, (*limiter.waiting, Waiter(caller, expires_ms))), answers


def step(limiter: Limiter, settings: LimiterSettings, now_ms: int) -> tuple[Limiter, Answers]:
    """Time has passed: tell those whose deadline is over, and grant what the bucket holds, in order."""
    bucket = refilled(limiter.bucket, rate_per_s=settings.rate_per_s, burst=settings.tokens_max, now_ms=now_ms)
    answers: list[tuple[int, Verdict]] = [(w.caller, "expired") for w in limiter.waiting if w.expires_ms <= now_ms]
    waiting = [waiter for waiter in limiter.waiting if waiter.expires_ms > now_ms]
    granted = 0
    while granted < len(waiting) and bucket.tokens >= 1:
        bucket = _taken(bucket)
        answers.append((waiting[granted].caller, "granted"))
        granted += 1
    return Limiter(bucket, tuple(waiting[granted:])), tuple(answers)


def next_ms(limiter: Limiter, settings: LimiterSettings) -> int | None:
    """When a step is due: the next token, or the next deadline; None while nobody waits."""
    if not limiter.waiting:
        return None
    token_ms = limiter.bucket.at_ms + missing_ms(limiter, settings)
    return min(token_ms, *(waiter.expires_ms for waiter in limiter.waiting))


def missing_ms(limiter: Limiter, settings: LimiterSettings) -> int:
    """How long after the bucket's time it holds a whole token."""
    lacking = max(1 - limiter.bucket.tokens, 0)
    return int(lacking / settings.rate_per_s * 1_000) + 1


def _taken(bucket: Bucket) -> Bucket:
    return Bucket(bucket.tokens - 1, bucket.at_ms)
