"""The pages whose last auction lacked an answer: when each is tried again, and whether that can find anything new.

After a start of the whole cluster the campaign directory calls itself unsettled for a while, and all pages are late:
until one of its bidders says something new, a page is asked for and not auctioned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from node.ads import messages as m

RETRY_MS: Final = 1_000  # the first wait; doubled up to the next line
RETRY_MS_MAX: Final = 4_000
RETRIES_MAX: Final = 9  # half a minute; then the periodic auction takes it up again


class _Late(NamedTuple):
    """Auctioned in `round` for these categories; tried again so often since."""

    attempt: int
    round: int
    categories: frozenset[str]


class LatePages:
    """Lives in its auctioneer's cell, which hands it every bidder's answer with the number of the round."""

    def __init__(self) -> None:
        self._late: dict[str, _Late] = {}
        self._heard: dict[str, m.CategoryBidResponse] = {}  # what each category said last
        self._news: dict[str, int] = {}  # and the round in which it said something else than before

    def __len__(self) -> int:
        return len(self._late)

    def __iter__(self) -> Iterator[str]:
        return iter(self._late)

    def hear(self, number: int, category: str, outcome: Any) -> None:
        """That a bidder is silent is no news; what it says then is, whatever it was."""
        if not isinstance(outcome, m.CategoryBidResponse):
            self._heard.pop(category, None)
        elif self._heard.get(category) != outcome:
            self._heard[category] = outcome
            self._news[category] = number

    def would_learn(self, url: str, hops: Mapping[str, int]) -> bool:
        """Whether an auction of a page for these categories could find something else than its last one did."""
        late = self._late.get(url)
        if late is None or not hops.keys() <= late.categories:
            return True
        return any(self._news.get(category, 0) > late.round for category in hops)

    def lacked(self, url: str, number: int, hops: Mapping[str, int]) -> None:
        """The page's auction in this round went without an answer."""
        known = self._late.get(url)
        self._late[url] = _Late(known.attempt if known is not None else 0, number, frozenset(hops))

    def settled(self, url: str) -> None:
        """Its auction was whole, or it has none any more."""
        self._late.pop(url, None)

    def again(self, urls: Iterable[str]) -> tuple[list[str], int]:
        """Those of these late pages that are to be tried again, and in how many ms: ever more seldom, not for ever."""
        left: list[str] = []
        least = RETRIES_MAX
        for url in urls:
            late = self._late.pop(url)
            if late.attempt < RETRIES_MAX:
                self._late[url] = late._replace(attempt=late.attempt + 1)
                least = min(least, late.attempt)
                left.append(url)
        if not self._late:
            self._heard.clear()
            self._news.clear()
        return left, min(RETRY_MS << least, RETRY_MS_MAX)
