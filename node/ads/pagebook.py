"""A site's pages, and on which shelf each is kept: so that a classification writes one shelf and not all pages.

A shelf is a durable record of a few pages (`node.ads.entities.page_shelf`). New pages fill the lowest shelf that has
room; a page stays where it is. What is dropped for want of room stays in its shelf's record until that is written
next: read again, it is the oldest again, and is dropped again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from node.ads.messages import PageEntry
from node.core import limits


class PageBook:
    """The pages of one site by url, the oldest classification first."""

    def __init__(self) -> None:
        self._pages: dict[str, PageEntry] = {}
        self._place: dict[str, int] = {}
        self._shelves: list[set[str]] = []
        self._room: set[int] = set()
        self._drops: dict[int, set[str]] = {}
        self._bytes = 0

    @property
    def pages(self) -> Mapping[str, PageEntry]:
        return MappingProxyType(self._pages)

    @property
    def shelves(self) -> int:
        """How many shelves there are."""
        return len(self._shelves)

    def read(self, number: int, pages: Iterable[PageEntry]) -> None:
        """Takes in what a shelf has kept; of two records of one page the newer holds."""
        while len(self._shelves) <= number:
            self._add_shelf()
        for page in pages:
            known = self._pages.get(page.url)
            if known is None or newer(page, known):
                self._put(page, number)
                if known is not None:
                    self._drops.setdefault(number, set()).discard(page.url)
            elif self._place[page.url] != number:
                self._drops.setdefault(number, set()).add(page.url)

    def learn(self, number: int, page: PageEntry) -> None:
        """Takes in a page that came to light after the last `read`."""
        self.read(number, (page,))
        self._bound()

    def arrange(self) -> None:
        """After the last `read`: the order of classification, and no more pages than there is room for."""
        self._pages = dict(sorted(self._pages.items(), key=lambda item: item[1].classified_at_ms))
        self._bound()

    def put(self, page: PageEntry) -> int:
        """Adds a page, or replaces it; the shelf that has to be written."""
        number = self._place.get(page.url, -1)
        if number < 0:
            number = min(self._room) if self._room else self._add_shelf()
        self._put(page, number)
        self._bound()
        return number

    def take_drops(self, number: int) -> tuple[str, ...]:
        """Pages that the shelf's record still has and should not; asked for with its next write."""
        return tuple(sorted(self._drops.pop(number, ())))

    def _add_shelf(self) -> int:
        self._shelves.append(set())
        self._room.add(len(self._shelves) - 1)
        return len(self._shelves) - 1

    def _put(self, page: PageEntry, number: int) -> None:
        known = self._pages.pop(page.url, None)
        if known is not None:
            self._bytes -= page_bytes(known)
            before = self._place[page.url]
            if before != number:
                self._leave(page.url, before)
        self._pages[page.url] = page
        self._bytes += page_bytes(page)
        self._place[page.url] = number
        self._shelves[number].add(page.url)
        if len(self._shelves[number]) >= limits.shelf_pages_max:
            self._room.discard(number)

    def _leave(self, url: str, number: int) -> None:
        self._shelves[number].discard(url)
        self._drops.setdefault(number, set()).add(url)
        if len(self._shelves[number]) < limits.shelf_pages_max:
            self._room.add(number)

    def _bound(self) -> None:
        while len(self._pages) > limits.site_pages_max or self._bytes > limits.site_page_bytes_max:
            url, page = next(iter(self._pages.items()))
            del self._pages[url]
            self._bytes -= page_bytes(page)
            self._leave(url, self._place.pop(url))


def newer(page: PageEntry, known: PageEntry) -> bool:
    """Whether a record of a page replaces another: by its judgement, then by what was seen on it since."""
    return (page.classified_at_ms, len(page.slots)) > (known.classified_at_ms, len(known.slots))


def page_bytes(page: PageEntry) -> int:
    """At most what a page takes in a record."""
    return 2 * len(page.url.encode()) + sum(map(len, page.slots)) + 24 * (len(page.categories) + len(page.places)) + 160
