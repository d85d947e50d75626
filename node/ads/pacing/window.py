"""A budget's day as a window of wall time, and how much of its traffic has passed.

Each advertiser's day begins at its own midnight, so the windows of a site's campaigns begin and end at different
hours. The traffic of a window is that of the site's UTC hours it covers, also past the UTC midnight.
"""

from __future__ import annotations

import msgspec

from node.ads.budget import next_midnight_ms
from node.ads.pacing.shape import DAY_S, Volumes, cdf
from node.wire.registry import wire_type

DAY_MS = DAY_S * 1_000
# Below this a window's traffic is too little to divide by: the clock decides.
MASS_MIN = 0.001


@wire_type("ads.budget_window")
class Window(msgspec.Struct, frozen=True):
    """Wall milliseconds; the end is the next window's start."""

    start_ms: int
    end_ms: int

    def ended(self, now_ms: int) -> bool:
        return now_ms >= self.end_ms


def second_of_utc_day(now_ms: int) -> float:
    return now_ms % DAY_MS / 1_000


def day_window(start_ms: int, timezone: str) -> Window:
    """From an instant to the next midnight of a time zone; no zone means UTC."""
    return Window(start_ms, next_midnight_ms(start_ms, timezone or "UTC"))


def traffic_mass(volumes: Volumes, start_ms: int, end_ms: int) -> float:
    """The traffic between two wall instants, in days' worth: midnights, and days of 25 hours, are nothing special."""
    return _days(volumes, end_ms) - _days(volumes, start_ms)


def elapsed_fraction(window: Window, now_ms: int, volumes: Volumes | None = None) -> float:
    """The share of the window that has passed, by traffic where a shape is known, else by the clock."""
    if now_ms <= window.start_ms:
        return 0.0
    if window.ended(now_ms):
        return 1.0
    if volumes is not None:
        whole = traffic_mass(volumes, window.start_ms, window.end_ms)
        if whole > MASS_MIN:
            return traffic_mass(volumes, window.start_ms, now_ms) / whole
    return (now_ms - window.start_ms) / (window.end_ms - window.start_ms)


def scaled_fraction(elapsed_ms: int, day_ms: int, volumes: Volumes | None = None) -> float:
    """The same for a day of another length, into which the traffic of a whole one is pressed."""
    share = min(max(elapsed_ms / day_ms, 0.0), 1.0)
    return share if volumes is None else cdf(volumes, share * DAY_S)


def _days(volumes: Volumes, at_ms: int) -> float:
    day, rest_ms = divmod(at_ms, DAY_MS)
    return day + cdf(volumes, rest_ms / 1_000)
