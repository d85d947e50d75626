"""Rows of an archive out of a schema of PostgreSQL, and into a new one.

Reading is one REPEATABLE READ transaction: the schema at one instant, whatever is written meanwhile. Writing is one
transaction as well, so that a schema is there whole or not at all; a node that starts meanwhile waits for it at the
lock of migrations. What its driver owes: a process of its own, and an end within `limits.backup_snapshot_s_max`, as
the server keeps all row versions from the snapshot on.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import asyncpg
import msgspec

from node.core.errors import OperatingError
from node.core.faultpoints import reach
from node.store import archive, port
from node.store.archive import Row
from node.store.postgres import SCHEMA_NAME, PostgresOptions
from node.store.postgres_errors import Stage, failure
from node.store.postgres_schema import MIGRATIONS, migrate, version_of

_PAGE: Final = 100  # rows fetched at once: each may have 4 MiB
_READS: Final[tuple[tuple[str, type[msgspec.Struct]], ...]] = (
    ("SELECT node, number FROM incarnations ORDER BY node", archive.IncarnationRow),
    ("SELECT name, term FROM leases ORDER BY name", archive.LeaseRow),
    ("SELECT name, value FROM counters ORDER BY name", archive.CounterRow),
    ("SELECT shard, node, incarnation, epoch, state FROM placement ORDER BY shard", port.ShardRow),
    ("SELECT key, body FROM book ORDER BY key", port.BookEntry),
    (
        "SELECT kind, id, shard, revision, epoch, deleted, body FROM states ORDER BY deleted, kind, id",
        archive.StateRow,
    ),
    ("SELECT name, fact_offset FROM consumers ORDER BY name", archive.ConsumerRow),
    ("SELECT consumer, key, body FROM projections ORDER BY consumer, key", archive.DerivedRow),
    ("SELECT fact_offset, kind, id, at_ms, type, body FROM facts ORDER BY fact_offset", port.StoredFact),
)
# Where each kind of row goes: table and columns, in the order of the row's fields.
_TABLES: Final[dict[type[msgspec.Struct], tuple[str, tuple[str, ...]]]] = {
    port.Identity: (
        "identity",
        ("cluster_id", "cluster_name", "shard_count", "map_count", "hash_version", "format"),
    ),
    archive.IncarnationRow: ("incarnations", ("node", "number")),
    archive.LeaseRow: ("leases", ("name", "term", "holder", "granted_at_ns", "ttl_ms")),
    port.ShardRow: ("placement", ("shard", "node", "incarnation", "epoch", "state")),
    port.BookEntry: ("book", ("key", "body")),
    archive.StateRow: ("states", ("kind", "id", "shard", "revision", "epoch", "deleted", "body")),
    archive.ConsumerRow: ("consumers", ("name", "fact_offset")),
    archive.DerivedRow: ("projections", ("consumer", "key", "body")),
    port.StoredFact: ("facts", ("fact_offset", "kind", "id", "at_ms", "type", "body")),
}


@contextlib.asynccontextmanager
async def connected(options: PostgresOptions) -> AsyncIterator[Any]:
    """A connection of a command's own; what the server or the network does on it is raised as OperatingError."""
    if not SCHEMA_NAME.fullmatch(options.schema):
        raise OperatingError("E-CONFIG", f"store.schema: {options.schema!r} is not a name like 'promovolve'")
    connection: Any = None
    try:
        connection = await asyncpg.connect(
            options.dsn or None,
            timeout=options.deadline_ms / 1_000,
            statement_cache_size=0,
            server_settings={"application_name": options.name},
        )
        yield connection
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        failed = failure(error, Stage.WORKING if connection else Stage.CONNECTING, reads_only=True)
        raise OperatingError(failed.code, failed.message) from error
    finally:
        if connection is not None:
            connection.terminate()


async def exists(connection: Any, schema: str) -> bool:
    """Whether there is a schema of that name."""
    return bool(await connection.fetch("SELECT 1 FROM pg_namespace WHERE nspname = $1", schema))


async def rows_of(connection: Any, schema: str, roster: str) -> AsyncIterator[Row]:
    """All rows of the schema, in an archive's order; raises OperatingError for one that is not there or not of this
    release."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        await connection.execute(f"SET LOCAL search_path TO {schema}")
        found = await version_of(connection, schema)
        if found != len(MIGRATIONS):
            raise _unlike(schema, found)
        identity = await connection.fetch(
            "SELECT cluster_id, cluster_name, shard_count, map_count, hash_version, format FROM identity"
        )
        if not identity:
            raise _unlike(schema, 0)
        yield port.Identity(*identity[0])
        if roster:
            yield archive.RosterText(roster)
        for query, shape in _READS:
            async for values in connection.cursor(query, prefetch=_PAGE):
                row = shape(*values)
                yield _shard(row) if isinstance(row, port.ShardRow) else row  # type: ignore[misc]


async def write_new(connection: Any, schema: str, rows: Iterable[Row], keep_as: str) -> bool:
    """Makes the schema out of the rows, all of it or nothing; one that is there is kept under the name `keep_as`.
    Returns whether there was one."""
    async with connection.transaction():
        there = await exists(connection, schema)
        if there:
            await connection.execute(f"ALTER SCHEMA {schema} RENAME TO {keep_as}")
        await connection.execute(f"CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}")
        await migrate(connection, schema)
        for shape, group in itertools.groupby(rows, key=type):
            if shape is archive.CounterRow:
                for row in group:
                    name, value = msgspec.structs.astuple(row)
                    await connection.execute("UPDATE counters SET value = $2 WHERE name = $1", name, value)
            elif shape in _TABLES:
                table, columns = _TABLES[shape]
                records = (_values(row) for row in group)
                await connection.copy_records_to_table(table, schema_name=schema, columns=columns, records=records)
        reach("restore.written")
    return there


async def live_leases(connection: Any, schema: str) -> list[tuple[str, str]]:
    """Leases that hold at this moment, with their holders: somebody runs on this schema."""
    async with connection.transaction(readonly=True):
        await connection.execute(f"SET LOCAL search_path TO {schema}")
        if not await version_of(connection, schema):
            return []
        rows = await connection.fetch(
            "SELECT name, holder FROM leases WHERE holder <> ''"
            " AND granted_at_ns + ttl_ms * 1000000 > clock_ns() ORDER BY name"
        )
    return [(row[0], row[1]) for row in rows]


def _values(row: Row) -> tuple[Any, ...]:
    values = msgspec.structs.astuple(row)
    match row:
        case archive.LeaseRow():
            return (*values, "", 0, 0)
        case port.ShardRow(state=state):
            return (*values[:-1], state.value)
        case _:
            return values


def _shard(row: port.ShardRow) -> port.ShardRow:
    return msgspec.structs.replace(row, state=port.ShardState(row.state))


def _unlike(schema: str, found: int) -> OperatingError:
    if found == 0:
        return OperatingError("E-NOT-FOUND", f"schema {schema!r} holds no cluster's store", hint="name another schema")
    return OperatingError(
        "E-NEWER-FORMAT",
        f"schema {schema!r} has version {found}, this release reads {len(MIGRATIONS)}",
        hint="run the release of the nodes that use it",
    )
