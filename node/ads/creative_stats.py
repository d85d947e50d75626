"""What creatives did on a site in the last 60 minutes: the evidence of Thompson sampling (reference 1.3)."""

from __future__ import annotations

from node.ads.selection import COLD, CreativeStats

WINDOW_MINUTES = 60
MINUTE_MS = 60_000


class RollingStats:
    """Sixty one-minute buckets per creative; a bucket counts while its minute is less than an hour back."""

    def __init__(self) -> None:
        self._buckets: dict[str, dict[int, CreativeStats]] = {}
        self._sums: dict[str, tuple[int, CreativeStats]] = {}  # of a minute: a page view asks for each candidate
        self._records = 0

    def record(self, creative: str, now_ms: int, *, impressions: int = 0, clicks: int = 0, folds: int = 0) -> None:
        minute = now_ms // MINUTE_MS
        buckets = self._buckets.setdefault(creative, {})
        known = buckets.get(minute, COLD)
        buckets[minute] = CreativeStats(known.impressions + impressions, known.clicks + clicks, known.folds + folds)
        for old in [m for m in buckets if m <= minute - WINDOW_MINUTES]:
            del buckets[old]
        self._sums.pop(creative, None)
        self._records += 1

    def mark(self, now_ms: int) -> tuple[int, int]:
        """While this is the same, `of` answers the same of every creative."""
        return self._records, now_ms // MINUTE_MS

    def of(self, creative: str, now_ms: int) -> CreativeStats:
        """The sums over the window that ends now; COLD for a creative without evidence."""
        minute = now_ms // MINUTE_MS
        known = self._sums.get(creative)
        if known is not None and known[0] == minute:
            return known[1]
        buckets = self._buckets.get(creative)
        if not buckets:
            return COLD
        live = [stats for at, stats in buckets.items() if at > minute - WINDOW_MINUTES]
        sums = CreativeStats(sum(s.impressions for s in live), sum(s.clicks for s in live), sum(s.folds for s in live))
        self._sums[creative] = (minute, sums)
        return sums
