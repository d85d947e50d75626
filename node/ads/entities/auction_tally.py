"""What a site's auctions came of and what they went without, counted where they are held."""

from __future__ import annotations

from typing import Any, Final

from node.ads import messages as m
from node.ads.tally import Tally
from node.core.limits import bidders_told_max

BIDDER: Final = ""  # itself said nothing
SOMEBODY: Final = "?"  # whoever else bids there: the bidder does not know all of them yet


class AuctionTally:
    """Lives in its auctioneer's cell; in memory only. All times are wall ms."""

    def __init__(self) -> None:
        self._causes = Tally()
        self._late = Tally()
        self._heard: dict[str, m.BidderHeard] = {}
        self.stale = 0

    def auctioned(self, trigger: str, now_ms: int) -> None:
        """A page was, because of this."""
        self._causes.add(trigger, now_ms)

    def answered(self, category: str, outcome: Any, now_ms: int) -> None:
        """A bidder's answer, or what came in its place. Who is late is counted by name, as far as it is known."""
        if isinstance(outcome, m.CategoryBidResponse):
            self._heard[category] = m.BidderHeard(category, now_ms, outcome.complete)
            late = () if outcome.complete else outcome.missing or (SOMEBODY,)
        else:
            known = self._heard.get(category)
            self._heard[category] = m.BidderHeard(category, known.answered_ms if known else 0, False)
            late = (BIDDER,)
        for campaign in late:
            self._late.add(f"{category}|{campaign}", now_ms)

    def told(self, pages: int, waiting: int, ranks: tuple[m.RankHeard, ...], now_ms: int) -> m.AuctionTallies:
        longest_silent = sorted(self._heard.values(), key=lambda heard: (heard.answered_ms, heard.category))
        return m.AuctionTallies(
            pages,
            waiting,
            self._causes.told(now_ms),
            self._late.told(now_ms),
            tuple(longest_silent[:bidders_told_max]),
            self.stale,
            ranks,
        )
