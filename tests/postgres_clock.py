"""The PostgreSQL store with its database's clock, a function of its schema, replaced by a test's."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import asyncpg

from node.core.clock import ManualClock
from node.store import port
from node.store.postgres import PostgresOptions, PostgresStore

_numbers = itertools.count(1)
_CLOCK = "CREATE OR REPLACE FUNCTION {0}.clock_ns() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT {1}::bigint'"


def new_schema() -> str:
    """The name of a schema that no other test uses."""
    return f"t{os.getpid()}_{next(_numbers)}"


def run_sql(dsn: str, *statements: str) -> list[Any]:
    """The rows of the last statement."""

    async def run() -> list[Any]:
        connection = await asyncpg.connect(dsn)
        try:
            for statement in statements[:-1]:
                await connection.execute(statement)
            return list(await connection.fetch(statements[-1]))
        finally:
            connection.terminate()

    with ThreadPoolExecutor(1) as elsewhere:  # whoever asks may be on a loop of their own
        return elsewhere.submit(asyncio.run, run()).result()


class ClockedPostgres:
    """`StateStore` in a schema of its own. The database learns the time when it has changed."""

    def __init__(self, dsn: str, clock: ManualClock, schema: str = "") -> None:
        self._dsn = dsn
        self._clock = clock
        self._told_ns = -1
        self.schema = schema or new_schema()
        self._store = PostgresStore(PostgresOptions(dsn=dsn, schema=self.schema, deadline_ms=30_000), clock)
        self._store.apply([port.ReadPlacement()])  # makes the schema

    def apply(self, batch: Sequence[port.Request]) -> list[port.Answer]:
        now_ns = self._clock.mono_ns()
        if now_ns != self._told_ns:
            run_sql(self._dsn, _CLOCK.format(self.schema, now_ns))
            self._told_ns = now_ns
        return self._store.apply(batch)

    def close(self) -> None:
        self._store.close()
