"""Which pages of a site go out again when a replay asks for some of them."""

from __future__ import annotations

from heapq import nsmallest

import msgspec

from node.ads import messages as m
from node.ads.entities.coverage import Pages, empty_slots
from node.ads.entities.site_state import SiteState, fresh
from node.ads.serveindex import ServeIndex
from node.flows.messages import ReplayReport, ReplaySite


class Lot(msgspec.Struct, frozen=True):
    """`pages` go out, `total` were looked at; the next lot begins behind `next`, which is empty when there is none.
    `whole`: these are all pages of the site that are fresh."""

    pages: tuple[m.PageEntry, ...]
    total: int
    next: str
    whole: bool

    def report(self, replayed: int, failed: int) -> ReplayReport:
        return ReplayReport(self.total, replayed, self.total - replayed - failed, failed, self.next)


def lot(state: SiteState, pages: Pages, index: ServeIndex, order: ReplaySite, now_ms: int) -> Lot:
    """In the order of the pages' addresses, so that whoever goes on with a replay finds its place."""
    behind = [url for url in pages if url > order.after]
    urls = nsmallest(order.limit, behind) if order.limit else sorted(behind)
    found = tuple(pages[url] for url in urls if fresh(pages[url], now_ms))
    if order.missing:
        found = _lacking(state, pages, index, found, now_ms)
    more = len(urls) < len(behind)
    return Lot(found, len(urls), urls[-1] if more else "", not (order.after or more or order.missing))


def _lacking(
    state: SiteState, pages: Pages, index: ServeIndex, found: tuple[m.PageEntry, ...], now_ms: int
) -> tuple[m.PageEntry, ...]:
    empty = empty_slots(state, pages, index, now_ms)
    return tuple(page for page in found if not empty.isdisjoint(page.slots))
