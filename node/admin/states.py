"""Lists read from the state store: what exists, whether or not it is awake somewhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from node.actors.runtime import outcome_of, outcomes_of
from node.admin.outcomes import store_refusal
from node.core.limits import store_batch_requests_max
from node.engine.engine import Engine
from node.store.port import Absent, Answer, ListStates, ReadState, Record, StatePage
from node.wire.codec import CODEC

S = TypeVar("S", bound=msgspec.Struct)
PAGE = 500


class States:
    """Durable states by kind."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def ids(self, kind: str) -> list[str]:
        """All ids of a kind, in order."""
        return [record.id for record in await self._records(kind, bodies=False)]

    async def all(self, kind: str, shape: type[S]) -> list[S]:
        """All states of a kind, in order of their ids."""
        found: list[S] = []
        for record in await self._records(kind, bodies=True):
            state = CODEC.decode_record(record.body)
            if isinstance(state, shape):
                found.append(state)
        return found

    async def page(self, kind: str, shape: type[S], after: str, limit: int) -> tuple[list[S], bool]:
        """The first states of a kind behind an id, and whether there are more."""
        records, more = await self._page(kind, (kind, after) if after else None, limit, bodies=True)
        states = [CODEC.decode_record(record.body) for record in records]
        return [state for state in states if isinstance(state, shape)], more

    async def one(self, kind: str, name: str, shape: type[S]) -> S | None:
        """The state of that name, None when there is none."""
        record = await self.record(kind, name)
        state = None if record is None else CODEC.decode_record(record.body)
        return state if isinstance(state, shape) else None

    async def some(self, kind: str, names: Sequence[str], shape: type[S]) -> list[S]:
        """The states of these names that there are, in their order. A transaction's worth is read at a time, so that
        others come in between, and by its name each costs no more than it would in a list of all."""
        found: list[S] = []
        for begin in range(0, len(names), store_batch_requests_max):
            for record in await self._named(kind, names[begin : begin + store_batch_requests_max]):
                state = CODEC.decode_record(record.body)
                if isinstance(state, shape):
                    found.append(state)
        return found

    async def record(self, kind: str, name: str) -> Record | None:
        """The record of that name, undecoded; None when there is none."""
        return next(iter(await self._named(kind, (name,))), None)

    async def _named(self, kind: str, names: Sequence[str]) -> list[Record]:
        """Those that there are, in the order of the names; read together, as the driver takes what is submitted in one
        turn into one transaction."""
        answers: Sequence[Answer] = await outcomes_of(
            [partial(self._engine.world.submit, ReadState(kind, name)) for name in names]
        )
        for answer in answers:
            if not isinstance(answer, Record | Absent):
                raise store_refusal(answer)
        return [answer for answer in answers if isinstance(answer, Record)]

    async def _records(self, kind: str, *, bodies: bool) -> list[Any]:
        records: list[Any] = []
        after: tuple[str, str] | None = None
        while True:
            found, more = await self._page(kind, after, PAGE, bodies=bodies)
            records.extend(found)
            if not more or not found:
                return records
            after = (found[-1].kind, found[-1].id)

    async def _page(
        self, kind: str, after: tuple[str, str] | None, limit: int, *, bodies: bool
    ) -> tuple[Sequence[Any], bool]:
        request = ListStates((kind,), after=after, limit=limit, bodies=bodies)
        answer = await outcome_of(lambda done: self._engine.world.submit(request, done))
        if not isinstance(answer, StatePage):
            raise store_refusal(answer)
        return answer.records, answer.more
