"""The state store on PostgreSQL, for nodes on several hosts.

What its driver owes: `apply` blocks, so it is called from a worker thread; unlike the embedded store it may be called
from several at once. Batches that only ask for leases travel on a connection of their own, so that a slow batch of
writes never costs a node its lease; the others share what is left of the pool.

asyncpg lives on an event loop in a thread of this adapter, and the port stays the blocking one of every other adapter:
one contract, one suite, and a driver that stalls can't stall the node. The time limit of a batch is kept here, outside
the driver: a batch that is late has its connection *terminated* (asyncpg's own time limits, and `close`, wait for a
server that may be frozen to confirm a cancellation) and is answered by how far it had come, see `postgres_errors`.

The server ends a transaction that its node leaves idle, so a node that is stopped inside one blocks the others for
`limits.store_idle_transaction_ms_max` at most.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Sequence
from typing import Any, Final

import asyncpg
import msgspec

from node.core import limits
from node.core.check import invariant
from node.core.clock import Clock
from node.core.errors import OperatingError
from node.core.faultpoints import reach
from node.store import port
from node.store.lanes import READS, Lane, lane_of
from node.store.postgres_errors import Stage, StoreWentBack, failure, worth_another_try
from node.store.postgres_schema import migrate
from node.store.postgres_txn import Marks, PgTxn

SCHEMA_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_ATTEMPTS_MAX: Final = 5


class PostgresOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`dsn`: a connection string, or empty for the PG* environment. `pool_size` counts all connections, the lease's
    included. Without `prepared_statements` nothing outlives a transaction on a connection, as pgbouncer in transaction
    mode needs it. `name` is shown to the server's operator."""

    dsn: str = ""
    schema: str = "promovolve"
    pool_size: int = 4
    deadline_ms: int = limits.store_deadline_ms
    prepared_statements: bool = True
    name: str = "promovolve"


class _Work:
    """One batch under way: how far it has come, and the connection that it holds."""

    def __init__(self, batch: tuple[port.Request, ...], lane: Lane) -> None:
        self.batch = batch
        self.lane = lane
        self.stage = Stage.CONNECTING
        self.connection: Any = None
        self.late = False

    @property
    def reads_only(self) -> bool:
        return all(isinstance(request, READS) for request in self.batch)


class PostgresStore:
    """`StateStore` in one schema of a database. Nothing is connected before the first batch, so it is made also while
    the server is down. Raises OperatingError `E-CONFIG` for a schema name that is none."""

    def __init__(self, options: PostgresOptions, clock: Clock) -> None:
        if not SCHEMA_NAME.fullmatch(options.schema):
            raise OperatingError("E-CONFIG", f"store.schema: {options.schema!r} is not a name like 'promovolve'")
        self._options = options
        self._clock = clock
        self._pid = os.getpid()
        self._closed = False
        self._migrated = False
        self._marks = Marks()
        self._went_back: StoreWentBack | None = None
        self._idle: dict[bool, list[Any]] = {True: [], False: []}  # by whether they are for leases
        self._slots = {True: asyncio.Semaphore(1), False: asyncio.Semaphore(max(1, options.pool_size - 1))}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="node-postgres", daemon=True)
        self._thread.start()

    def apply(self, batch: Sequence[port.Request]) -> list[port.Answer]:
        """See `StateStore.apply`. Whatever the server or the network does is answered as `StoreFailed`, within
        `deadline_ms`; raises only when used in a forked child or after `close`."""
        invariant(os.getpid() == self._pid, "store-fork", opened_by=self._pid, used_by=os.getpid())
        invariant(not self._closed, "store-closed", schema=self._options.schema)
        lanes = {lane_of(request) for request in batch}
        work = _Work(tuple(batch), lanes.pop() if len(lanes) == 1 else Lane.WRITES)
        return asyncio.run_coroutine_threadsafe(self._in_time(work), self._loop).result()

    def close(self) -> None:
        """Lets every connection go. In a forked child nothing is touched: the sockets are the parent's."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        asyncio.run_coroutine_threadsafe(self._let_go(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _in_time(self, work: _Work) -> list[port.Answer]:
        limit_ms = self._options.deadline_ms
        if work.lane is Lane.LEASES:
            limit_ms = min(limit_ms, limits.store_lease_ms_max)
        task = asyncio.ensure_future(self._tries(work))
        await asyncio.wait({task}, timeout=limit_ms / 1_000)
        if not task.done():
            work.late = True
            if work.connection is not None:
                work.connection.terminate()
            else:
                task.cancel()
            await asyncio.wait({task})
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None:
            return task.result()
        if work.late:
            error = _late(work.stage, limit_ms, reads_only=work.reads_only)
        if isinstance(error, StoreWentBack):
            self._went_back = error
        failed = failure(error, work.stage, reads_only=work.reads_only)
        return [failed] * len(work.batch)

    async def _tries(self, work: _Work) -> list[port.Answer]:
        """Runs the batch, again when it certainly did not happen and may succeed at once."""
        leases = work.lane is Lane.LEASES
        async with self._slots[leases]:
            for attempt in range(1, _ATTEMPTS_MAX + 1):
                work.stage = Stage.CONNECTING
                connection = await self._take(leases=leases)
                work.stage, work.connection = Stage.WORKING, connection
                try:
                    answers = await self._once(work, connection)
                except Exception as error:
                    if work.late or attempt == _ATTEMPTS_MAX or not worth_another_try(error, work.stage):
                        raise
                else:
                    self._idle[leases].append(connection)
                    return answers
                finally:
                    work.connection = None
                    if connection not in self._idle[leases]:
                        connection.terminate()  # whatever state it is in, the server rolls back
                await asyncio.sleep(0.005 * attempt)
        raise OperatingError("E-STORE-BUSY", "every attempt met another transaction")

    async def _once(self, work: _Work, connection: Any) -> list[port.Answer]:
        if self._went_back is not None and not work.reads_only:
            raise self._went_back
        reach("store.before_begin")
        txn = PgTxn(connection, self._marks.copy(), self._clock.wall_ms())
        await connection.execute(self._begin(read_only=work.reads_only))
        answers = await txn.answer(work.batch)
        reach("store.in_transaction")
        reach("store.before_commit")
        work.stage = Stage.COMMITTING
        await connection.execute("COMMIT")
        reach("store.after_commit")
        self._marks.raise_to(txn.seen)
        return answers

    def _begin(self, *, read_only: bool) -> str:
        """Opens a transaction and says in it what must hold whatever the server's and the pooler's settings are."""
        mode = "REPEATABLE READ READ ONLY" if read_only else "READ COMMITTED READ WRITE"
        limit_ms = self._options.deadline_ms
        return (
            f"BEGIN ISOLATION LEVEL {mode}; SET LOCAL search_path TO {self._options.schema};"
            f" SET LOCAL statement_timeout = {limit_ms}; SET LOCAL lock_timeout = {limit_ms};"
            f" SET LOCAL idle_in_transaction_session_timeout = {limits.store_idle_transaction_ms_max};"
            " SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"
        )

    # ---- connections

    async def _take(self, *, leases: bool) -> Any:
        idle = self._idle[leases]
        while idle:
            connection = idle.pop()
            if not connection.is_closed():
                return connection
        return await self._connect()

    async def _connect(self) -> Any:
        options = self._options
        connection = await asyncpg.connect(
            options.dsn or None,
            timeout=options.deadline_ms / 1_000,
            statement_cache_size=100 if options.prepared_statements else 0,
            server_settings={"application_name": options.name},
        )
        try:
            await self._greet(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _greet(self, connection: Any) -> None:
        """Brings the schema up to date, once, and asks whether this server knows what another one had acknowledged."""
        known = self._marks.copy()
        await connection.execute(self._begin(read_only=self._migrated))
        if not self._migrated:
            await migrate(connection, self._options.schema)
        counters = dict(await connection.fetch("SELECT name, value FROM counters"))
        await connection.execute("COMMIT")
        self._migrated = True
        try:
            for name in ("facts", "placement"):
                known.check(name, counters[name])
        except StoreWentBack as error:
            self._went_back = error

    async def _let_go(self) -> None:
        for idle in self._idle.values():
            for connection in idle:
                connection.terminate()
            idle.clear()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)


def _late(stage: Stage, limit_ms: int, *, reads_only: bool) -> OperatingError:
    doing = {Stage.CONNECTING: "for a connection", Stage.WORKING: "for an answer", Stage.COMMITTING: "for the commit"}
    return OperatingError(
        "E-STORE-TIMEOUT",
        f"PostgreSQL: waited {limit_ms} ms {doing[stage]}",
        definite=reads_only or stage is not Stage.COMMITTING,
    )
