"""What a transaction changes in the state store on PostgreSQL, each set of rows by one statement.

Rows that are updated are locked by the caller; what is inserted may meet somebody who was first, as a duplicate key,
and then the whole transaction is tried again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from node.store import port
from node.store.lease import StoredLease
from node.store.postgres_schema import Connection


async def write_leases(connection: Connection, changed: Mapping[str, StoredLease]) -> None:
    rows = [(name, *msgspec.structs.astuple(held)[:4]) for name, held in sorted(changed.items())]
    await connection.fetch(
        "UPDATE leases l SET holder = w.holder, term = w.term, granted_at_ns = w.at, ttl_ms = w.ttl FROM"
        " unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])"
        " AS w (name, holder, term, at, ttl) WHERE l.name = w.name",
        *_columns(rows),
    )


async def write_incarnations(connection: Connection, changed: Mapping[str, int]) -> None:
    await connection.fetch(
        "UPDATE incarnations i SET number = w.number FROM unnest($1::text[], $2::bigint[])"
        " AS w (node, number) WHERE i.node = w.node",
        *_columns(sorted(changed.items())),
    )


async def write_placement(connection: Connection, version: int, changed: Mapping[int, port.ShardRow]) -> None:
    """Rows may be new: whoever holds the version's lock is the only one to write any."""
    rows = [(row.shard, row.node, row.incarnation, row.epoch, row.state.value) for _, row in sorted(changed.items())]
    await connection.fetch(
        "INSERT INTO placement (shard, node, incarnation, epoch, state) SELECT * FROM"
        " unnest($1::integer[], $2::text[], $3::bigint[], $4::bigint[], $5::text[])"
        " ON CONFLICT (shard) DO UPDATE SET node = excluded.node, incarnation = excluded.incarnation,"
        " epoch = excluded.epoch, state = excluded.state",
        *_columns(rows),
    )
    await connection.fetch("UPDATE counters SET value = $1 WHERE name = 'placement'", version)


async def write_book(connection: Connection, changed: Mapping[str, bytes]) -> None:
    """Entries with an empty body go."""
    kept = [(key, body) for key, body in sorted(changed.items()) if body]
    if kept:
        await connection.fetch(
            "INSERT INTO book SELECT * FROM unnest($1::text[], $2::bytea[])"
            " ON CONFLICT (key) DO UPDATE SET body = excluded.body",
            *_columns(kept),
        )
    gone = [key for key, body in changed.items() if not body]
    if gone:
        await connection.fetch("DELETE FROM book WHERE key = ANY($1::text[])", gone)


async def insert_states(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Rows of kind, id, shard, revision, epoch, body, deleted."""
    await connection.fetch(
        "INSERT INTO states (kind, id, shard, revision, epoch, body, deleted) SELECT * FROM"
        " unnest($1::text[], $2::text[], $3::integer[], $4::bigint[], $5::bigint[], $6::bytea[], $7::boolean[])",
        *_columns(rows),
    )


async def update_states(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Rows of kind, id, revision, epoch, body, deleted."""
    await connection.fetch(
        "UPDATE states s SET revision = w.revision, epoch = w.epoch, body = w.body, deleted = w.deleted FROM"
        " unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bytea[], $6::boolean[])"
        " AS w (kind, id, revision, epoch, body, deleted) WHERE s.kind = w.kind AND s.id = w.id",
        *_columns(rows),
    )


async def append_facts(connection: Connection, at_ms: int, facts: Sequence[tuple[str, str, str, bytes]]) -> int:
    """Facts as kind, id, type, body, in their order. Returns the last offset; the counter is held until the commit."""
    rows = await connection.fetch(
        "WITH taken AS (UPDATE counters SET value = value + $1 WHERE name = 'facts' RETURNING value),"
        " added AS (INSERT INTO facts (fact_offset, kind, id, at_ms, type, body)"
        " SELECT taken.value - $1 + f.number, f.kind, f.id, $2, f.type, f.body FROM taken,"
        " unnest($3::text[], $4::text[], $5::text[], $6::bytea[])"
        " WITH ORDINALITY AS f (kind, id, type, body, number))"
        " SELECT value FROM taken",
        len(facts),
        at_ms,
        *_columns(facts),
    )
    return int(rows[0][0])


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
