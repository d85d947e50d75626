"""Which campaigns won a page within the last seconds: they step back, if somebody else is there.

There is no viewer that could be remembered, so this is the only thing that keeps a page from showing one ad to all.
"""

from __future__ import annotations

from collections.abc import Iterable

from node.core.limits import page_winners_pages_max

WINNER_TTL_MS = 15_000


class PageWinners:
    """Campaigns by page, each until its time is over."""

    def __init__(self) -> None:
        self._until: dict[str, dict[str, int]] = {}

    def won(self, url: str, campaigns: Iterable[str], now_ms: int) -> None:
        """Remember a batch's winners; pages that were asked for the longest ago go first when there are too many."""
        names = list(campaigns)
        if not names:
            return
        kept = {name: until for name, until in self._until.pop(url, {}).items() if until > now_ms}
        self._until[url] = kept | dict.fromkeys(names, now_ms + WINNER_TTL_MS)
        while len(self._until) > page_winners_pages_max:
            del self._until[next(iter(self._until))]

    def recent(self, url: str, now_ms: int) -> frozenset[str]:
        known = self._until.get(url)
        return frozenset([name for name, until in known.items() if until > now_ms]) if known else frozenset()

    def sweep(self, now_ms: int) -> None:
        """Forget pages whose winners' time is over."""
        self._until = {
            url: names for url, names in self._until.items() if any(until > now_ms for until in names.values())
        }
