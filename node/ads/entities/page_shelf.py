"""A shelf: the durable record of a few of a site's pages, in the site's own shard.

Its id is the site's with a suffix that keeps it there (`shelf_id`). It holds what the site told it and nothing else:
told again it changes nothing, told out of order it keeps the newer record of each page. Once a page is durable it says
so to whoever is the site then, which may not be who told it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from node.actors.actor import Context
from node.ads import messages as m
from node.ads.facts import PageClassified
from node.ads.pagebook import newer
from node.core.hashing import companion_id
from node.core.ids import EntityRef
from node.wire.registry import wire_type

KIND = "page-shelf"


@wire_type("state.page_shelf")
class PageShelfState(msgspec.Struct, frozen=True):
    """In no order."""

    site: str
    number: int
    pages: tuple[m.PageEntry, ...] = ()


class _Kept(msgspec.Struct, frozen=True):
    """These are durable."""

    pages: tuple[m.PageEntry, ...]


def shelf_id(site: str, number: int) -> str:
    """The id of a site's shelf; it shares the site's shard."""
    return companion_id(site, f"{number}")


class PageShelf:
    """Durable. Not remembered: it is read when its site starts, and leaves memory again."""

    def __init__(self, _shelf: str) -> None:
        self._state: PageShelfState | None = None

    def start(self, ctx: Context, state: PageShelfState | None) -> None:
        self._state = state

    def receive(self, ctx: Context, message: Any) -> None:
        match message:
            case m.GetShelf():
                ctx.reply(m.ShelfPages(self._state.pages if self._state else ()))
                ctx.passivate()
            case m.PutOnShelf():
                self._put(ctx, message)
            case m.ClearShelf():
                self._clear(ctx)
            case _Kept(pages):
                if self._state is not None:
                    ctx.tell(EntityRef("site", self._state.site), m.Shelved(self._state.number, pages))
            case _:
                ctx.reject(f"a page shelf does not understand {type(message).__name__}")

    def _clear(self, ctx: Context) -> None:
        if self._state is None:
            ctx.reply(m.Accepted(changed=False))
            ctx.passivate()
        else:
            ctx.delete(reply=m.Accepted())

    def _put(self, ctx: Context, order: m.PutOnShelf) -> None:
        state = self._state or PageShelfState(order.site, order.number)
        known = {page.url: page for page in state.pages}
        taken = [page for page in order.pages if page.url not in known or newer(page, known[page.url])]
        judged = [
            page for page in taken if page.url not in known or known[page.url].classified_at_ms < page.classified_at_ms
        ]
        dropped = set(order.drops) - {page.url for page in order.pages}
        kept = {url: page for url, page in known.items() if url not in dropped} | {page.url: page for page in taken}
        # Written also when nothing is new: who says it again waits for the word that it is durable.
        self._state = msgspec.structs.replace(state, pages=tuple(kept.values()))
        facts = tuple(
            PageClassified(state.site, page.url, page.categories, page.provider, page.fallback) for page in judged
        )
        ctx.persist(self._state, facts=facts, then=_Kept(order.pages))
