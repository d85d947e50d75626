"""Counts by label and by hour, kept where something happens: what an operator asks "how often, and why" of.

In memory only, so they begin anew with their owner; a day of them, each hour with a bounded number of labels.
"""

from __future__ import annotations

from typing import Final

import msgspec

from node.core.limits import tally_labels_max
from node.wire.registry import wire_type

HOUR_MS: Final = 3_600_000
HOURS: Final = 24
OTHERS: Final = "others"  # what came under one label too many


@wire_type("ads.hourly_count")
class HourlyCount(msgspec.Struct, frozen=True):
    """How often in the hour that runs, in the whole one before it, and in these and the 22 before: hours of UTC."""

    label: str
    this_hour: int
    last_hour: int
    day: int


class Tally:
    """All times are wall ms; counts of hours that a clock which was set back has made the future are forgotten."""

    def __init__(self) -> None:
        self._hours: dict[int, dict[str, int]] = {}

    def add(self, label: str, now_ms: int, by: int = 1) -> None:
        hour = now_ms // HOUR_MS
        counts = self._hours.get(hour)
        if counts is None:
            self._hours = {known: kept for known, kept in self._hours.items() if hour - HOURS < known < hour}
            counts = self._hours[hour] = {}
        if label not in counts and len(counts) >= tally_labels_max:
            label = OTHERS
        counts[label] = counts.get(label, 0) + by

    def told(self, now_ms: int) -> tuple[HourlyCount, ...]:
        """The most frequent first."""
        now = now_ms // HOUR_MS
        day: dict[str, int] = {}
        for hour, counts in self._hours.items():
            if now - HOURS < hour <= now:
                for label, count in counts.items():
                    day[label] = day.get(label, 0) + count
        running, before = self._hours.get(now, {}), self._hours.get(now - 1, {})
        found = (HourlyCount(label, running.get(label, 0), before.get(label, 0), day[label]) for label in day)
        return tuple(sorted(found, key=lambda count: (-count.day, count.label)))
