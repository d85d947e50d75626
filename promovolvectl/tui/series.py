"""Figures over time: what the charts draw. One point a second at most, bounded, gaps kept as gaps.

A series has a name such as `requests` or `cpu/entity-1`. What has not been told for a while is missing from it, and a
chart shows it so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from node.admin.protocol import CampaignList, ClusterStatus
from node.admin.protocol.diagnosis import RateList
from node.core.clock import SECOND

POINTS_MAX: Final = 240  # a point a second: more than the widest chart draws
NAMES_MAX: Final = 600  # figures of a hundred nodes
EVERY_NS: Final = SECOND
_EARLY_NS: Final = EVERY_NS * 9 // 10  # what is told every second comes a little early at times
GAP_NS: Final = 12 * SECOND  # a quiet cluster is pushed every 5 s; silence beyond twice that is no figure


@dataclass(frozen=True, slots=True)
class Points:
    """Oldest first; None: nothing was known at that second."""

    at_ns: int = 0
    values: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """All of them by name. `served`: when how many ads had been served, which the rate is made of."""

    by_name: Mapping[str, Points] = field(default_factory=dict)
    served: tuple[int, int] = (0, 0)

    def of(self, name: str) -> tuple[float | None, ...]:
        """The points of one; none for a name that nothing was told of."""
        found = self.by_name.get(name)
        return found.values if found else ()


def after_push(series: Series, at_ns: int, status: ClusterStatus) -> Series:
    """With the figures of a status."""
    figures: list[tuple[str, float]] = [
        *_served(series.served, (at_ns, status.served_count)),
        ("requests", status.requests_per_s),
        *((("coverage", status.coverage.ratio),) if status.coverage.ratio is not None else ()),
        ("lag", float(status.serveindex.max_lag_ms)),
        ("moving", float(status.shards.moving)),
    ]
    since, _ = series.served
    kept = series.served if since and at_ns - since < _EARLY_NS else (at_ns, status.served_count)
    return replace(_added(series, at_ns, figures), served=kept)


def _served(before: tuple[int, int], after: tuple[int, int]) -> list[tuple[str, float]]:
    """Ads a second between two counts; nothing after a silence, or when a count began anew with its node."""
    passed_ns, count = after[0] - before[0], after[1] - before[1]
    if not before[0] or count < 0 or not _EARLY_NS <= passed_ns <= GAP_NS:
        return []
    return [("served", count * SECOND / passed_ns)]


def after_report(series: Series, at_ns: int, value: msgspec.Struct) -> Series:
    """With the figures of an answer, where it has some."""
    if isinstance(value, CampaignList):
        return _added(series, at_ns, ((f"spent/{item.campaign}", _number(item.spent_today)) for item in value.items))
    if not isinstance(value, RateList):
        return series
    figures: list[tuple[str, float]] = []
    for row in value.items:
        figures += [
            (f"cpu/{row.node}", row.cpu_ratio),
            (f"requests/{row.node}", row.requests_per_s),
            (f"messages/{row.node}", row.messages_per_s),
            (f"writes/{row.node}", row.writes_per_s),
            (f"unhandled/{row.node}", row.unhandled_per_s),
        ]
    for name, total in (
        ("messages", sum(row.messages_per_s for row in value.items)),
        ("writes", sum(row.writes_per_s for row in value.items)),
        ("unhandled", sum(row.unhandled_per_s for row in value.items)),
    ):
        figures.append((name, total))
    return _added(series, at_ns, figures)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _added(series: Series, at_ns: int, figures: Iterable[tuple[str, float]]) -> Series:
    by_name = dict(series.by_name)
    for name, value in figures:
        before = by_name.get(name)
        if before is None and len(by_name) >= NAMES_MAX:
            continue
        by_name[name] = _after(before or Points(), at_ns, value)
    return replace(series, by_name=by_name)


def _after(points: Points, at_ns: int, value: float) -> Points:
    if points.values and at_ns - points.at_ns < _EARLY_NS:
        return points
    missed = max(0, round((at_ns - points.at_ns) / EVERY_NS) - 1) if points.values else 0
    filler: float | None = points.values[-1] if points.values and at_ns - points.at_ns <= GAP_NS else None
    gap = (filler,) * min(missed, POINTS_MAX)
    return Points(at_ns, (*points.values, *gap, value)[-POINTS_MAX:])
