"""What became of a site's page views, counted by its ad server as it answers them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from node.ads import messages as m
from node.ads.decide import SlotDecision, why_empty
from node.ads.serve_stats import ServeStats
from node.ads.tally import Tally
from node.ads.unknown_pages import UnknownPages

FILLED = "filled"


class ServeTally:
    """Lives in its ad server's cell; in memory only. All times are wall ms."""

    def __init__(self) -> None:
        self._slots = Tally()
        self._hops = Tally()
        self._unknown = UnknownPages()

    def refused(self, why: str, slots: int, now_ms: int) -> None:
        """A page view that got nothing at all."""
        self._slots.add(why, now_ms, slots)

    def unknown(self, url: str, now_ms: int) -> None:
        """A page view of an url that nothing is known of."""
        self._unknown.viewed(url, now_ms)

    def decided(self, decisions: Iterable[SlotDecision], now_ms: int) -> None:
        for decision in decisions:
            if decision.chosen is None:
                self._slots.add(why_empty(decision), now_ms)
            else:
                self._slots.add(FILLED, now_ms)
                self._hops.add(str(decision.chosen.candidate.ancestor_hops), now_ms)

    def told(self, today: ServeStats, known: Collection[str], now_ms: int) -> m.ServeTallies:
        """`known`: the urls that the site has judged, fresh or not."""
        return m.ServeTallies(
            today,
            self._slots.told(now_ms),
            self._hops.told(now_ms),
            self._unknown.told(known),
            self._unknown.last_minute(now_ms),
        )
