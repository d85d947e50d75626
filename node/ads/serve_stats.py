"""What came of a site's page views today, and why slots stayed empty: the figures of a site's screen."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from node.ads.money import impression_cost_micros
from node.wire.registry import wire_type

HOURS = 24
HOUR_MS = 3_600_000


@wire_type("ads.serve_stats")
class ServeStats(msgspec.Struct, frozen=True):
    """`selected` are slots, all others are page views. `spend_micros` is booked at what was charged: a pin that was
    honoured is free. `hourly` counts the slots that were paid for, by UTC hour."""

    selected: int = 0
    pacing_skipped: int = 0
    budget_exhausted: int = 0
    no_candidates: int = 0
    content_too_old: int = 0
    spend_micros: int = 0
    hourly: tuple[int, ...] = (0,) * HOURS


class Filled(msgspec.Struct, frozen=True):
    """A slot of a batch that got an ad: its clearing CPM, and whether a reader had pinned it."""

    clearing_micros: int
    pinned: bool = False


def count_batch(stats: ServeStats, slots: Sequence[Filled | None], now_ms: int) -> ServeStats:
    """A page view that was decided; None for a slot that stayed empty."""
    filled = [slot for slot in slots if slot is not None]
    if not filled:
        return msgspec.structs.replace(stats, no_candidates=stats.no_candidates + 1)
    paid = [slot for slot in filled if not slot.pinned]
    hour = now_ms // HOUR_MS % HOURS
    return msgspec.structs.replace(
        stats,
        selected=stats.selected + len(filled),
        spend_micros=stats.spend_micros + sum(impression_cost_micros(slot.clearing_micros) for slot in paid),
        hourly=(*stats.hourly[:hour], stats.hourly[hour] + len(paid), *stats.hourly[hour + 1 :]),
    )


def count_paced(stats: ServeStats, *, hard_stop: bool) -> ServeStats:
    """A page view that the pacing gate let go without an ad; a hard stop is one for want of money."""
    if hard_stop:
        return msgspec.structs.replace(stats, budget_exhausted=stats.budget_exhausted + 1)
    return msgspec.structs.replace(stats, pacing_skipped=stats.pacing_skipped + 1)


def count_stale(stats: ServeStats) -> ServeStats:
    """A page view whose page was judged too long ago."""
    return msgspec.structs.replace(stats, content_too_old=stats.content_too_old + 1)
