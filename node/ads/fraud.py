"""Days of a site that look bought: beside its own history, and by the share of beacons that were suspect.

Robust statistics (median and median absolute deviation), since the history may hold the very days that are looked for.
A flag is a question to an operator; it changes no money by itself.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

from node.wire.registry import wire_type

MAD_SCALE = 1.4826  # makes the deviation of a normal distribution out of its median one
Z_FLAG = 5.0
SUSPECT_SHARE_FLAG = 0.2
EVENTS_MIN = 500
HISTORY_DAYS_MIN = 7


@wire_type("ads.site_day")
class SiteDay(msgspec.Struct, frozen=True):
    """One day's counts; `suspect` events are counted apart and are in `total` too."""

    impressions: int
    clicks: int
    page_views: int
    suspect: int = 0
    total: int = 0


@wire_type("ads.fraud_flag")
class Flag(msgspec.Struct, frozen=True):
    """`severity` is what was measured, `threshold` what it passed."""

    signal: str
    severity: float
    threshold: float


def median(values: Sequence[float]) -> float:
    return float(statistics.median(values))


def mad(values: Sequence[float]) -> float:
    """The scaled median absolute deviation from the median."""
    centre = median(values)
    return MAD_SCALE * median([abs(value - centre) for value in values])


def robust_z(value: float, history: Sequence[float]) -> float | None:
    """How many deviations above its history a value lies; None where the history does not vary, for then any
    difference would be infinite."""
    spread = mad(history)
    return (value - median(history)) / spread if spread > 0 else None


def flags_of(day: SiteDay, history: Sequence[SiteDay]) -> tuple[Flag, ...]:
    """What is odd about a day. Little traffic, or a short history, proves nothing; a drop is no fraud."""
    found: list[Flag] = []
    if day.total >= EVENTS_MIN and day.impressions >= EVENTS_MIN:
        share = day.suspect / day.total
        if share > SUSPECT_SHARE_FLAG:
            found.append(Flag("suspect_share", share, SUSPECT_SHARE_FLAG))
    for signal, top, bottom in (
        ("impressions_per_view", "impressions", "page_views"),
        ("click_rate", "clicks", "impressions"),
    ):
        known = [ratio for past in history if (ratio := _ratio(past, top, bottom)) is not None]
        ratio = _ratio(day, top, bottom)
        if ratio is None or len(known) < HISTORY_DAYS_MIN or day.impressions < EVENTS_MIN:
            continue
        z = robust_z(ratio, known)
        if z is not None and z > Z_FLAG:
            found.append(Flag(signal, z, Z_FLAG))
    return tuple(found)


def _ratio(day: SiteDay, top: str, bottom: str) -> float | None:
    divisor = getattr(day, bottom)
    return getattr(day, top) / divisor if divisor > 0 else None
