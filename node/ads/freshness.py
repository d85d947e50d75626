"""Until when a page's classification counts: one predicate, for whoever asks, restores or cleans up.

Two that differ by a moment would chase each other: what one restores the other would take away again.
"""

from __future__ import annotations

from node.core.limits import freshness_window_ms_max, freshness_window_ms_min

WINDOW_DEFAULT_MS = 48 * 3_600_000


def window_ms(declared_ms: int) -> int:
    """A publisher's window, held to a day and a week; 0 means the default."""
    if declared_ms <= 0:
        return WINDOW_DEFAULT_MS
    return min(max(declared_ms, freshness_window_ms_min), freshness_window_ms_max)


def is_fresh(classified_at_ms: int, now_ms: int, window: int = WINDOW_DEFAULT_MS) -> bool:
    """Whether a classification still counts; at the end of its window it does not."""
    return reclassify_in_ms(classified_at_ms, now_ms, window) > 0


def reclassify_in_ms(classified_at_ms: int | None, now_ms: int, window: int = WINDOW_DEFAULT_MS) -> int:
    """When a page's text is wanted again; 0 or less: now, as for a page that was never judged."""
    if classified_at_ms is None:
        return 0
    return classified_at_ms + (window if window > 0 else WINDOW_DEFAULT_MS) - now_ms


def accepts(expired_at_ms: int | None, classified_at_ms: int) -> bool:
    """Whether a classification may be recorded for a page whose older ones were expired: only a newer one.

    Without the mark the next auction would record the old one again.
    """
    return expired_at_ms is None or classified_at_ms > expired_at_ms
