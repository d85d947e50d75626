"""A site's pages in memory, read from its shelves when it starts, and their way back onto them.

What its driver, the site, owes: it calls `start` once, and hands every message to `receive` first. The pages are known
once `known` is true; before, nothing may be concluded from what is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from node.actors.actor import Context
from node.ads import messages as m
from node.ads.entities.page_shelf import KIND, shelf_id
from node.ads.pagebook import PageBook, newer
from node.core.ids import EntityRef

READ_TIMEOUT_MS = 5_000
AGAIN_MS = 1_000
SAVE_AGAIN_MS = 5_000


class _Read(msgspec.Struct, frozen=True):
    number: int
    outcome: Any


class _ReadAgain(msgspec.Struct, frozen=True):
    pass


class _SaveAgain(msgspec.Struct, frozen=True):
    pass


class SitePages:
    """`on_known`: all shelves were read. `on_learned`: a page came to light that this site did not know, as one that
    its predecessor was still writing. `widen(shelves)`: make it durable that there are so many, then call `save`."""

    def __init__(
        self,
        site: str,
        on_known: Callable[[Context], None],
        on_learned: Callable[[Context, m.PageEntry], None],
        widen: Callable[[Context, int], None],
    ) -> None:
        self._site = site
        self._on_known = on_known
        self._on_learned = on_learned
        self._widen = widen
        self._book = PageBook()
        self._unread: set[int] = set()
        self._unsaved: dict[str, tuple[int, m.PageEntry]] = {}
        self._ids: dict[int, EntityRef] = {}
        self._durable = 0
        self._widening = False
        self.known = False

    @property
    def all(self) -> Mapping[str, m.PageEntry]:
        return self._book.pages

    @property
    def saved(self) -> bool:
        """Nothing is on its way to a shelf."""
        return not self._unsaved

    def start(self, ctx: Context, shelves: int) -> None:
        self._durable = shelves
        self._unread = set(range(shelves))
        self._read(ctx)

    def put(self, ctx: Context, pages: Iterable[m.PageEntry]) -> None:
        """Keep pages: in memory at once, on their shelves soon."""
        put = {page.url: (self._book.put(page), page) for page in pages}
        self._unsaved |= put
        self.save(ctx, self._durable, tuple(put))

    def receive(self, ctx: Context, message: Any) -> bool:
        """Whether the message was for the pages."""
        match message:
            case _Read(number, outcome):
                self._was_read(ctx, number, outcome)
            case _ReadAgain():
                self._read(ctx)
            case _SaveAgain():
                self.save(ctx, self._durable)
            case m.Shelved(number, pages):
                self._shelved(ctx, number, pages)
            case _:
                return False
        return True

    # ---- from the shelves

    def _read(self, ctx: Context) -> None:
        for number in sorted(self._unread):
            ctx.ask(
                self._shelf(number),
                m.GetShelf(),
                READ_TIMEOUT_MS,
                lambda outcome, number=number: _Read(number, outcome),  # type: ignore[misc]
            )
        self._know(ctx)

    def _was_read(self, ctx: Context, number: int, outcome: Any) -> None:
        if number not in self._unread:
            return
        if not isinstance(outcome, m.ShelfPages):
            ctx.after("read-shelves", AGAIN_MS, _ReadAgain())
            return
        self._unread.discard(number)
        self._book.read(number, outcome.pages)
        self._know(ctx)

    def _know(self, ctx: Context) -> None:
        if not self._unread and not self.known:
            self.known = True
            self._book.arrange()
            self._on_known(ctx)

    def _shelf(self, number: int) -> EntityRef:
        if number not in self._ids:
            self._ids[number] = EntityRef(KIND, shelf_id(self._site, number))
        return self._ids[number]

    # ---- onto the shelves

    def save(self, ctx: Context, shelves: int, urls: tuple[str, ...] = ()) -> None:
        """Send what is not known to be kept (of these pages, all when none are named); shelves up to `shelves` exist
        durably, so that whoever starts next will read them."""
        if shelves > self._durable:
            self._durable, self._widening = shelves, False
            urls = ()
        if not self._unsaved:
            return
        ctx.after("save-pages", SAVE_AGAIN_MS, _SaveAgain())
        by_shelf: dict[int, list[m.PageEntry]] = {}
        for number, page in [self._unsaved[url] for url in urls or self._unsaved]:
            by_shelf.setdefault(number, []).append(page)
        for number, pages in by_shelf.items():
            if number < self._durable:
                order = m.PutOnShelf(self._site, number, tuple(pages), self._book.take_drops(number))
                ctx.tell(self._shelf(number), order)
        if max(by_shelf) >= self._durable and not self._widening:
            self._widening = True
            self._widen(ctx, self._book.shelves)

    def _shelved(self, ctx: Context, number: int, pages: tuple[m.PageEntry, ...]) -> None:
        for page in pages:
            if self._unsaved.get(page.url, (0, None))[1] == page:
                del self._unsaved[page.url]
            known = self._book.pages.get(page.url)
            if self.known and (known is None or newer(page, known)):
                self._book.learn(number, page)
                self._on_learned(ctx, page)
