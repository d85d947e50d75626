"""`facts list|tail`: pages of the log of facts, chosen here so that no client reads all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from node.admin import protocol as p
from node.admin.fact_log import FactLog
from node.admin.fact_views import asked_for, fact_item, has, pairs
from node.admin.protocol.facts import FactItem, FactList, GetFacts
from node.admin.type_patterns import expect_fact_types
from node.core import limits
from node.core.errors import BadInput
from node.store.port import StoredFact

if TYPE_CHECKING:
    from node.admin.server import AdminServer

_NAMES_MAX: Final = 20  # patterns and fields of one request


class FactRequests:
    """The handlers."""

    def __init__(self, server: AdminServer) -> None:
        self._log = FactLog(server.engine)
        server.handlers |= {GetFacts: self.listed}

    async def listed(self, request: GetFacts, call: p.Meta) -> tuple[FactList, p.Meta]:
        _expect("limit", 1 <= request.limit <= limits.facts_list_max, f"is not between 1 and {limits.facts_list_max}")
        _expect("last", 0 <= request.last <= limits.facts_list_max, f"is not between 0 and {limits.facts_list_max}")
        _expect("after", request.after >= 0, "is negative")
        _expect("types", len(request.types) <= _NAMES_MAX, f"are more than {_NAMES_MAX}")
        _expect("fields", len(request.fields) <= _NAMES_MAX, f"are more than {_NAMES_MAX}")
        found = await (self._newest(request) if request.last else self._behind(request))
        if not (found.items or request.after):
            expect_fact_types(request.types)  # those of another release are asked for, too, and found by what there is
        return found, call

    async def _behind(self, request: GetFacts) -> FactList:
        """The oldest behind an offset, up to as many as one answer looks through."""
        wanted, found = pairs(request.fields), list[FactItem]()
        at, more = request.after, True
        while more and at < request.after + limits.facts_scan_max:
            page = await self._log.page(at, limits.facts_page)
            more = page.more
            for stored in page.facts:
                at = stored.offset
                if asked_for(stored, request) and has(item := fact_item(stored), wanted):
                    found.append(item)
                    if len(found) == request.limit:
                        more = more or stored is not page.facts[-1]
                        return FactList(items=tuple(found), next=at, more=more, first=request.after + 1)
        return FactList(items=tuple(found), next=at, more=more, first=request.after + 1)

    async def _newest(self, request: GetFacts) -> FactList:
        """The newest, found from the end backwards, as far as one answer looks."""
        wanted, found = pairs(request.fields), list[FactItem]()
        last = high = await self._log.last()
        lowest = max(0, last - limits.facts_scan_max)
        first = last
        while high > lowest and len(found) < request.last:
            low = max(high - limits.facts_page, lowest)
            for stored in reversed(await self._between(low, high)):
                first = stored.offset
                if asked_for(stored, request) and has(item := fact_item(stored), wanted):
                    found.append(item)
                    if len(found) == request.last:
                        break
            high = low
        return FactList(items=tuple(reversed(found)), next=last, first=first)

    async def _between(self, low: int, high: int) -> list[StoredFact]:
        """The facts above one offset up to another: a page that is large comes in parts."""
        found: list[StoredFact] = []
        while low < high:
            page = await self._log.page(low, high - low)
            if not page.facts:
                break
            found += page.facts
            low = page.facts[-1].offset
        return found


def _expect(field: str, holds: bool, text: str) -> None:
    if not holds:
        raise BadInput(field, text)
