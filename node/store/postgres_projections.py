"""Consumers of facts on PostgreSQL: their offsets and the rows they have made, within the caller's transaction."""

from __future__ import annotations

from typing import Final

from node.core import limits
from node.store import port
from node.store.fencing import advance_refusal
from node.store.keys import page_full
from node.store.postgres_schema import Connection
from node.store.projection import ProjectionRow

_MAKE: Final = "INSERT INTO consumers SELECT n, 0 FROM unnest($1::text[]) AS n ON CONFLICT DO NOTHING"
_LOCK: Final = "SELECT 1 FROM consumers WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE"
_PAGE: Final = (
    "SELECT key, CASE WHEN before < $4 THEN body END FROM ("
    " SELECT key, body, sum(octet_length(body)) OVER (ORDER BY key) - octet_length(body) AS before FROM ("
    " SELECT key, body FROM projections WHERE consumer = $1 AND key > $2 ORDER BY key LIMIT $3) AS page) AS sized"
    " ORDER BY key"
)
_PUT: Final = (
    "INSERT INTO projections SELECT $1, * FROM unnest($2::text[], $3::bytea[])"
    " ON CONFLICT (consumer, key) DO UPDATE SET body = excluded.body"
)


async def lock_consumers(connection: Connection, names: list[str]) -> None:
    """Whoever advances one waits for whoever advances it now; an offset is made when there is none."""
    await connection.fetch(_MAKE, names)
    await connection.fetch(_LOCK, names)


async def read_consumer(connection: Connection, request: port.ReadConsumer) -> port.Consumer:
    offset = await _offset(connection, request.name)
    rows = await connection.fetch(
        "SELECT key, body FROM projections WHERE consumer = $1 AND key = ANY($2::text[]) ORDER BY key",
        request.name,
        list(request.keys),
    )
    return port.Consumer(offset, tuple(ProjectionRow(row[0], row[1]) for row in rows))


async def list_projection(connection: Connection, request: port.ListProjection) -> port.ProjectionPage:
    offset = await _offset(connection, request.name)
    rows_max = min(max(request.limit, 1), limits.store_page_records_max)
    found = await connection.fetch(_PAGE, request.name, request.after, rows_max + 1, limits.store_page_bytes_max)
    rows: list[ProjectionRow] = []
    size = 0
    for row in found:
        if page_full(len(rows), size, request.limit):
            return port.ProjectionPage(offset, tuple(rows), more=True)
        rows.append(ProjectionRow(row[0], row[1]))
        size += len(row[1])
    return port.ProjectionPage(offset, tuple(rows), more=False)


async def advance(connection: Connection, request: port.AdvanceConsumer) -> port.Answer:
    """The consumer is locked by the caller."""
    last = (await connection.fetch("SELECT value FROM counters WHERE name = 'facts'"))[0][0]
    refusal = advance_refusal(request, await _offset(connection, request.name), last)
    if refusal is not None:
        return refusal
    rows = {row.key: row.body for row in request.rows}
    kept = {key: body for key, body in rows.items() if body}
    if kept:
        await connection.fetch(_PUT, request.name, list(kept), list(kept.values()))
    gone = [key for key in rows if key not in kept]
    if gone:
        delete = "DELETE FROM projections WHERE consumer = $1 AND key = ANY($2::text[])"
        await connection.fetch(delete, request.name, gone)
    await connection.fetch("UPDATE consumers SET fact_offset = $2 WHERE name = $1", request.name, request.offset)
    return port.Advanced(request.offset)


async def _offset(connection: Connection, name: str) -> int:
    rows = await connection.fetch("SELECT fact_offset FROM consumers WHERE name = $1", name)
    return rows[0][0] if rows else 0
