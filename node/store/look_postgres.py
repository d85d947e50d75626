"""`store_look` for a schema of PostgreSQL. Sessions are those of every promovolve node and command in the database."""

from __future__ import annotations

from typing import Any

from node.core.errors import OperatingError
from node.store import port
from node.store.postgres_schema import version_of
from node.store.store_look import HeldLease, Look, Session


async def look_postgres(connection: Any, schema: str) -> Look:
    """Raises OperatingError for a schema that holds no store."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        identity = await _identity(connection, schema)
        counters = dict(await connection.fetch("SELECT name, value FROM counters"))
        size = await connection.fetch(
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c"
            " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'",
            schema,
        )
        rows = await connection.fetch(
            "SELECT application_name, pid, (extract(epoch FROM clock_timestamp() - xact_start) * 1000)::bigint,"
            " coalesce(wait_event_type = 'Lock', false) FROM pg_stat_activity"
            " WHERE application_name LIKE 'promovolve%' AND datname = current_database() AND pid <> pg_backend_pid()"
            " ORDER BY application_name, pid"
        )
    sessions = tuple(Session(row[0], row[1], busy_ms=-1 if row[2] is None else row[2], waits=row[3]) for row in rows)
    return Look(
        kind="postgres",
        place=schema,
        cluster_id=identity.cluster_id,
        cluster_name=identity.cluster_name,
        used_bytes=size[0][0],
        limit_bytes=0,
        file_bytes=size[0][0],
        facts=counters["facts"],
        placement_version=counters["placement"],
        sessions=sessions,
        writer_blocked=any(session.waits for session in sessions),
    )


async def leases_postgres(connection: Any, schema: str) -> list[HeldLease]:
    """All that were ever held. Raises OperatingError."""
    async with connection.transaction(readonly=True):
        await _identity(connection, schema)
        rows = await connection.fetch(
            "SELECT name, holder, term, CASE WHEN holder = '' THEN 0 ELSE"
            " greatest((granted_at_ns + ttl_ms * 1000000 - clock_ns()) / 1000000, 0) END FROM leases ORDER BY name"
        )
    return [HeldLease(*row) for row in rows]


async def _identity(connection: Any, schema: str) -> port.Identity:
    await connection.execute(f"SET LOCAL search_path TO {schema}")
    rows = []
    if await version_of(connection, schema):
        rows = await connection.fetch(
            "SELECT cluster_id, cluster_name, shard_count, map_count, hash_version, format FROM identity"
        )
    if not rows:
        raise OperatingError("E-NOT-FOUND", f"schema {schema!r} holds no cluster's store", hint="name another schema")
    return port.Identity(*rows[0])
