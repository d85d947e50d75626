"""The throttle: a PI controller that holds spending to what was expected by now, over a guess from the request rate.

`throttle = clamp(base - (Kp e + Ki I), 0, 0.99)`, e = 1 - smoothed spend ratio; a page view is served with probability
1 - throttle. 1.0 is a hard stop: no money, or no day left. Time and money come in, so the same calls give the same.
"""

from __future__ import annotations

import math
import statistics
from typing import Final

import msgspec

from node.ads.pacing.campaigns import spend_ratio

DAY_S = 86_400.0
KP = 0.5
KI = 0.3
LEAK = 0.995
THROTTLE_MAX = 0.99
STOP = 1.0
FIRST_DT_S = 0.1
DT_MIN_S = 0.001
DT_MAX_S = 1.0
GRACE_S = 10.0
GRACE_REQUESTS_MIN = 10
GRACE_REQUESTS_MAX = 50
GRACE_REQUESTS_LEAST = 5
STALE_MS = 30_000
STALE_MS_MIN = 1_000
SMOOTHING: Final = (0.1, 0.3, 0.5)  # least, first, most
OVER_GAIN: Final = (1.5, 2.0, 5.0)
TUNE_CALLS = 10
TUNE_MS = 500
SAMPLES_MIN = 10
SAMPLES_MAX = 20
TRANSITION_SHARE = 0.2
TRANSITION_MIN = 0.5
EARLY_EXHAUSTION_MIN = 0.05


class Pacer(msgspec.Struct, frozen=True):
    """What the controller remembers. `ratio` None: nothing smoothed yet; `over_gain` is how much harder it acts on
    spending ahead than behind; `exhausted_left`: the share of the day that was left when the money was gone."""

    integral: float = 0.0
    ratio: float | None = None
    smoothing: float = SMOOTHING[1]
    over_gain: float = OVER_GAIN[1]
    last_ms: int | None = None
    samples: tuple[float, ...] = ()
    calls: int = 0
    tuned_ms: int | None = None
    exhausted_left: float | None = None


class Situation(msgspec.Struct, frozen=True):
    """One page view's inputs. `day_s` is how long the day is; `shape_multiplier` how busy this hour is; `next_hour`
    how much busier the next (a ratio) and `hour_left` the share of this one that is left: both matter near its end."""

    budget_micros: int
    spent_micros: int
    expected_micros: float
    cpm_micros: float
    elapsed_s: float
    remaining_s: float
    rate_per_s: float
    requests: int
    day_s: float = DAY_S
    shape_multiplier: float | None = None
    next_hour: float = 1.0
    hour_left: float = 1.0


class Pace(msgspec.Struct, frozen=True):
    """The decision and what it came from: `base` is the guess by rate, `ratio` spent over expected, not smoothed."""

    throttle: float
    base: float
    ratio: float
    reason: str

    def admits(self, draw: float) -> bool:
        """Whether a page view is served; `draw` is uniform in [0, 1)."""
        return draw >= self.throttle


def step(pacer: Pacer, now: Situation, now_ms: int) -> tuple[Pacer, Pace]:
    """One page view."""
    raw = spend_ratio(now.budget_micros, now.spent_micros, now.expected_micros)
    base = _base(now)
    left_micros = now.budget_micros - now.spent_micros
    if now.budget_micros <= 0 or left_micros <= 0 or now.remaining_s <= 0:
        if left_micros <= 0 < now.remaining_s and pacer.exhausted_left is None:
            pacer = msgspec.structs.replace(pacer, exhausted_left=min(now.remaining_s / now.day_s, 1.0))
        return pacer, Pace(STOP, base, raw, "no_money" if left_micros <= 0 else "day_over")
    if _in_grace(now):
        return msgspec.structs.replace(pacer, last_ms=now_ms), Pace(min(base, THROTTLE_MAX), base, raw, "grace")
    return _control(_unless_stale(pacer, now, now_ms), now, raw, base, now_ms)


def rollover(pacer: Pacer) -> Pacer:
    """The next day. What was learned stays: a day that ran out early makes it act harder on the next, any other lets
    it act a little less so. The moment of running out was noted when it came, for the day that has ended has no rest.
    """
    left = pacer.exhausted_left
    least, first, most = OVER_GAIN
    if left is not None and left > EARLY_EXHAUSTION_MIN:
        gain = min(pacer.over_gain * (1 + left), most)
    else:
        gain = max(pacer.over_gain * 0.95, first)
    return Pacer(smoothing=pacer.smoothing, over_gain=max(gain, least))


def campaigns_changed(pacer: Pacer) -> Pacer:
    """Other campaigns are known on the whole site: what was integrated was another sum's error."""
    return msgspec.structs.replace(pacer, integral=0.0)


def _base(now: Situation) -> float:
    """The share of requests above what the budget pays for evenly."""
    per_impression = now.cpm_micros / 1_000
    if per_impression <= 0:
        return 0.0
    target = now.budget_micros / now.day_s / per_impression * (now.shape_multiplier or 1.0)
    return 1 - target / now.rate_per_s if now.rate_per_s > target > 0 else 0.0


def _in_grace(now: Situation) -> bool:
    """Too early in the day, or too few requests, for any ratio to mean something."""
    scale = now.day_s / DAY_S
    grace_s = max(1.0, GRACE_S * scale)
    if now.shape_multiplier is not None and now.rate_per_s > 0:
        requests = min(max(math.floor(now.rate_per_s * grace_s), GRACE_REQUESTS_MIN), GRACE_REQUESTS_MAX)
    else:
        requests = max(GRACE_REQUESTS_LEAST, math.floor(GRACE_S * scale))
    return now.elapsed_s < grace_s or now.requests < requests


def _unless_stale(pacer: Pacer, now: Situation, now_ms: int) -> Pacer:
    idle_max_ms = max(STALE_MS_MIN, STALE_MS * now.day_s / DAY_S)
    if pacer.last_ms is None or now_ms - pacer.last_ms <= idle_max_ms:
        return pacer
    return msgspec.structs.replace(pacer, integral=0.0, ratio=None)


def _control(pacer: Pacer, now: Situation, raw: float, base: float, now_ms: int) -> tuple[Pacer, Pace]:
    ratio = raw if pacer.ratio is None else pacer.smoothing * raw + (1 - pacer.smoothing) * pacer.ratio
    error = 1 - ratio
    boost = _transition_boost(now) * (pacer.over_gain if error < 0 else 1.0)
    elapsed_s = FIRST_DT_S if pacer.last_ms is None else (now_ms - pacer.last_ms) / 1_000
    dt = min(max(elapsed_s, DT_MIN_S), DT_MAX_S)
    integral = min(max(pacer.integral * LEAK + error * dt, -1.0), 1.0)
    throttle = min(max(base - boost * (KP * error + KI * integral), 0.0), THROTTLE_MAX)
    after = msgspec.structs.replace(
        pacer,
        integral=integral,
        ratio=ratio,
        last_ms=now_ms,
        samples=(*pacer.samples, raw)[-SAMPLES_MAX:],
        calls=pacer.calls + 1,
    )
    return _tuned(after, now_ms), Pace(throttle, base, raw, "paced")


def _transition_boost(now: Situation) -> float:
    """Near the end of an hour that the next one differs much from, act sooner."""
    if now.shape_multiplier is None or now.hour_left > TRANSITION_SHARE:
        return 1.0
    steepness = abs(math.log(min(max(now.next_hour, 0.1), 10.0)))
    return 1 + min(1.0, steepness / 2) if steepness > TRANSITION_MIN else 1.0


def _tuned(pacer: Pacer, now_ms: int) -> Pacer:
    """Adjust gain and smoothing by how the last ratios lay, at most every 10 calls and half a second."""
    recent = pacer.tuned_ms is not None and now_ms - pacer.tuned_ms < TUNE_MS
    if pacer.calls < TUNE_CALLS or recent or len(pacer.samples) < SAMPLES_MIN:
        return pacer
    mean, deviation = statistics.fmean(pacer.samples), statistics.pstdev(pacer.samples)
    gain, smoothing = pacer.over_gain, pacer.smoothing
    if mean > 1.05:
        gain *= 1.15
    elif 0.98 < mean < 1.02:
        gain *= 0.95
    if deviation > 0.08:
        smoothing /= 1.3
    elif deviation < 0.04:
        smoothing *= 1.05
    return msgspec.structs.replace(
        pacer,
        over_gain=min(max(gain, OVER_GAIN[0]), OVER_GAIN[2]),
        smoothing=min(max(smoothing, SMOOTHING[0]), SMOOTHING[2]),
        calls=0,
        tuned_ms=now_ms,
    )
