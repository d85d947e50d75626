"""What a transaction of the state store on PostgreSQL reads, and what it locks (`lock_…`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from node.core import limits
from node.core.hashing import SHARD_COUNT
from node.store import port
from node.store.keys import page_full
from node.store.lease import StoredLease
from node.store.postgres_schema import Connection

_INITIALISE: Final = (
    "INSERT INTO identity (cluster_id, cluster_name, shard_count, map_count, hash_version, format)"
    " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING"
)
_IDENTITY: Final = "SELECT cluster_id, cluster_name, shard_count, map_count, hash_version, format FROM identity"
_READ_STATES: Final = (
    "SELECT s.kind, s.id, s.revision, s.epoch, s.body, s.deleted FROM states s"
    " JOIN unnest($1::text[], $2::text[]) AS w (kind, id) ON s.kind = w.kind AND s.id = w.id"
)
# A page ends where its bodies would fill memory: bodies behind that place stay at the server.
_LIST_PARTS: Final = (
    "SELECT kind, id, revision, epoch, CASE WHEN before < $5 THEN body END FROM ("
    " SELECT kind, id, revision, epoch, body,"
    " sum(octet_length(body)) OVER (ORDER BY kind, id) - octet_length(body) AS before"
    " FROM (SELECT * FROM states WHERE NOT deleted AND kind = ANY($1::text[]) AND (kind, id) > ($2, $3)",
    " ORDER BY kind, id LIMIT $4) AS page) AS sized ORDER BY kind, id",
)
_LIST: Final = "".join(_LIST_PARTS)
_LIST_OF_SHARD: Final = " AND shard = $6".join(_LIST_PARTS)
_READ_FACTS: Final = (
    "SELECT fact_offset, kind, id, at_ms, type, CASE WHEN before < $3 THEN body END FROM ("
    " SELECT *, sum(octet_length(body)) OVER (ORDER BY fact_offset) - octet_length(body) AS before FROM ("
    " SELECT * FROM facts WHERE fact_offset > $1 ORDER BY fact_offset LIMIT $2) AS page) AS sized ORDER BY fact_offset"
)
_LOCK_LEASES: Final = (
    "SELECT name, holder, term, granted_at_ns, ttl_ms FROM leases WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE"
)
_MAKE_LEASES: Final = "INSERT INTO leases SELECT n, '', 0, 0, 0 FROM unnest($1::text[]) AS n ON CONFLICT DO NOTHING"
_LOCK_INCARNATIONS: Final = (
    "SELECT node, number FROM incarnations WHERE node = ANY($1::text[]) ORDER BY node FOR UPDATE"
)
_MAKE_INCARNATIONS: Final = "INSERT INTO incarnations SELECT n, 0 FROM unnest($1::text[]) AS n ON CONFLICT DO NOTHING"
_ROWS: Final = (
    "SELECT shard, node, incarnation, epoch, state FROM placement WHERE shard = ANY($1::integer[]) ORDER BY shard FOR "
)
_LOCK_STATES: Final = (
    "SELECT s.kind, s.id, s.shard, s.revision FROM states s"
    " JOIN unnest($1::text[], $2::text[]) AS w (kind, id) ON s.kind = w.kind AND s.id = w.id"
    " ORDER BY s.kind, s.id FOR UPDATE OF s"
)


async def clock_ns(connection: Connection) -> int:
    """The database's clock, now."""
    return int((await connection.fetch("SELECT clock_ns()"))[0][0])


async def lock_leases(connection: Connection, names: list[str]) -> dict[str, StoredLease]:
    rows = await _locked(connection, _LOCK_LEASES, _MAKE_LEASES, names)
    return {row[0]: StoredLease(row[1], row[2], row[3], row[4]) for row in rows}


async def lock_incarnations(connection: Connection, nodes: list[str]) -> dict[str, int]:
    rows = await _locked(connection, _LOCK_INCARNATIONS, _MAKE_INCARNATIONS, nodes)
    return {row[0]: row[1] for row in rows}


async def lock_version(connection: Connection) -> int:
    """The placement's version."""
    return int((await connection.fetch("SELECT value FROM counters WHERE name = 'placement' FOR UPDATE"))[0][0])


async def lock_rows(connection: Connection, shards: list[int], *, alone: bool) -> dict[int, port.ShardRow]:
    """Those rows of the placement that there are: to change them `alone`, or together with others to rely on them."""
    rows = await connection.fetch(_ROWS + ("UPDATE" if alone else "SHARE"), shards)
    return {row[0]: _shard_row(row) for row in rows}


async def lock_states(connection: Connection, names: list[tuple[str, str]]) -> dict[tuple[str, str], tuple[int, int]]:
    """Shard and revision of those states, and tombstones, that there are."""
    rows = await connection.fetch(_LOCK_STATES, [kind for kind, _ in names], [id_ for _, id_ in names])
    return {(row[0], row[1]): (row[2], row[3]) for row in rows}


async def _locked(connection: Connection, select: str, make: str, names: list[str]) -> list[Any]:
    """The rows of `names`, locked; the missing ones are made first, so that of two who find none one waits."""
    rows = await connection.fetch(select, names)
    if len(rows) == len(names):
        return rows
    await connection.fetch(make, names)
    return await connection.fetch(select, names)


async def initialise(connection: Connection, wanted: port.Identity) -> port.Identity:
    """The identity in force: the first that was ever wanted."""
    await connection.fetch(_INITIALISE, *msgspec.structs.astuple(wanted))
    return port.Identity(*(await connection.fetch(_IDENTITY))[0])


async def shard_count(connection: Connection) -> int:
    rows = await connection.fetch("SELECT shard_count FROM identity")
    return rows[0][0] if rows else SHARD_COUNT


async def read_states(
    connection: Connection, names: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], port.Record | port.Absent]:
    """Those of the states, and tombstones, that there are."""
    rows = await connection.fetch(_READ_STATES, [kind for kind, _ in names], [id_ for _, id_ in names])
    return {(row[0], row[1]): port.Absent(row[2]) if row[5] else port.Record(*row[:5]) for row in rows}


async def list_states(connection: Connection, request: port.ListStates) -> port.StatePage:
    """A page of states, in the order of the bytes of their names."""
    rows = await connection.fetch(
        _LIST if request.shard is None else _LIST_OF_SHARD,
        sorted(set(request.kinds)),
        *(request.after or ("", "")),
        _rows_max(request.limit),
        limits.store_page_bytes_max if request.bodies else 0,
        *(() if request.shard is None else (request.shard,)),
    )
    records: list[port.Record] = []
    size = 0
    for row in rows:
        if page_full(len(records), size, request.limit):
            return port.StatePage(tuple(records), more=True)
        records.append(port.Record(row[0], row[1], row[2], row[3], row[4] or b""))
        size += len(records[-1].body)
    return port.StatePage(tuple(records), more=False)


async def read_facts(connection: Connection, request: port.ReadFacts) -> port.FactPage:
    """A page of facts, in the order of their offsets."""
    rows = await connection.fetch(
        _READ_FACTS, max(request.after, 0), _rows_max(request.limit), limits.store_page_bytes_max
    )
    facts: list[port.StoredFact] = []
    size = 0
    for row in rows:
        if page_full(len(facts), size, request.limit):
            return port.FactPage(tuple(facts), more=True)
        facts.append(port.StoredFact(row[0], row[1], row[2], row[3], row[4], row[5] or b""))
        size += len(facts[-1].body)
    return port.FactPage(tuple(facts), more=False)


async def read_placement(connection: Connection) -> port.Placement:
    """The whole table."""
    version = (await connection.fetch("SELECT value FROM counters WHERE name = 'placement'"))[0][0]
    rows = await connection.fetch("SELECT shard, node, incarnation, epoch, state FROM placement")
    found = {row[0]: _shard_row(row) for row in rows}
    shards = range(await shard_count(connection))
    book = await connection.fetch("SELECT key, body FROM book ORDER BY key")
    return port.Placement(
        version,
        tuple(found.get(shard) or port.ShardRow(shard) for shard in shards),
        tuple(port.BookEntry(row[0], row[1]) for row in book),
    )


def _shard_row(row: Any) -> port.ShardRow:
    return port.ShardRow(row[0], row[1], row[2], row[3], port.ShardState(row[4]))


def _rows_max(limit: int) -> int:
    """One more than fits, which says that there is more."""
    return min(max(limit, 1), limits.store_page_records_max) + 1
