"""The log of facts, and what is derived from it, as the edge reads them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from node.actors.runtime import outcome_of
from node.engine.engine import Engine
from node.http.problem import unavailable
from node.store.port import FactPage, ListProjection, ProjectionPage, ReadFacts, Request, StoredFact


class FactLog:
    """Asks the state store; None is what it did not answer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def ask(self, request: Request) -> Any:
        return await outcome_of(lambda done: self._engine.world.submit(request, done))

    async def read(self, after: int) -> tuple[tuple[StoredFact, ...], bool] | None:
        """Facts behind an offset, and whether there are more."""
        page = await self.ask(ReadFacts(after))
        return (page.facts, page.more) if isinstance(page, FactPage) else None

    async def newest(self) -> int | None:
        """The last offset, found by halving: the store tells what is behind an offset, not how much."""
        low, high = 0, 1
        while (more := await self._any_behind(high)) is True:
            low, high = high, high * 2
        while more is not None and low < high:
            middle = (low + high) // 2
            more = await self._any_behind(middle)
            low, high = (middle + 1, high) if more else (low, middle)
        return None if more is None else low

    async def rows(self, consumer: str, after: str, within: str = "") -> AsyncIterator[tuple[str, bytes]]:
        """A consumer's rows (key, body) behind the key `after`, in the order of their keys, as long as these begin with
        `within`. Raises ProblemError 503 when the store does not answer."""
        more = True
        while more:
            page = await self.ask(ListProjection(consumer, after))
            if not isinstance(page, ProjectionPage):
                raise unavailable("the state store did not answer")
            more = page.more
            for row in page.rows:
                after = row.key
                if not after.startswith(within):
                    return
                yield row.key, row.body

    async def _any_behind(self, offset: int) -> bool | None:
        page = await self.ask(ReadFacts(offset, 1))
        return bool(page.facts) if isinstance(page, FactPage) else None
