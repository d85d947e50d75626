"""The log of facts and what is derived from it, as the state store gives them; raises AdminRefusal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from node.actors.runtime import outcome_of
from node.admin.outcomes import store_refusal
from node.core import limits
from node.engine.engine import Engine
from node.store.port import Consumer, FactPage, ListProjection, ProjectionPage, ReadConsumer, ReadFacts, Request


class FactLog:
    """Reads pages; remembers how long the log was, so that its end is found soon."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known_last = 0

    async def page(self, after: int, limit: int = limits.facts_page) -> FactPage:
        """Facts behind an offset."""
        found: FactPage = await self._ask(ReadFacts(after, limit), FactPage)
        return found

    async def last(self) -> int:
        """The newest fact's offset. Offsets have no gaps, so it is found by doubling and halving steps."""
        low, step = self._known_last, 1
        while (await self.page(low + step - 1, 1)).facts:
            low, step = low + step, step * 2
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if (await self.page(middle - 1, 1)).facts else (low, middle)
        self._known_last = low
        return low

    async def offset(self, consumer: str) -> int:
        """Where a consumer stands."""
        found: Consumer = await self._ask(ReadConsumer(consumer), Consumer)
        return found.offset

    async def rows(self, consumer: str) -> AsyncIterator[tuple[str, ProjectionPage]]:
        """Pages of a consumer's rows, each with the key that it begins behind."""
        after = ""
        while True:
            page: ProjectionPage = await self._ask(ListProjection(consumer, after), ProjectionPage)
            yield after, page
            if not page.more:
                return
            after = page.rows[-1].key

    async def _ask(self, request: Request, wanted: type) -> Any:
        answer = await outcome_of(lambda done: self._engine.world.submit(request, done))
        if not isinstance(answer, wanted):
            raise store_refusal(answer)
        return answer
