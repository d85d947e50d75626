"""The tables of the state store on PostgreSQL, and how a database comes to have them.

Versions only ever go up: a migration is added at the end and never edited. One node migrates at a time (an advisory
lock), all of it in one transaction: killed midway, the database is as it was. A schema of a later release is refused
with both numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from node.core.errors import OperatingError

# Names compare by their bytes (COLLATE "C"), as in every other adapter. `clock_ns` is a function of the schema: one
# clock for all who hold leases here, and the one thing that a test of them has to replace.
_FIRST: Final = """
CREATE TABLE identity (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    cluster_id text NOT NULL,
    cluster_name text NOT NULL,
    shard_count integer NOT NULL,
    map_count integer NOT NULL,
    hash_version text NOT NULL,
    format integer NOT NULL
);
CREATE TABLE counters (name text COLLATE "C" PRIMARY KEY, value bigint NOT NULL);
INSERT INTO counters VALUES ('facts', 0), ('placement', 0);
CREATE TABLE incarnations (node text COLLATE "C" PRIMARY KEY, number bigint NOT NULL);
CREATE TABLE leases (
    name text COLLATE "C" PRIMARY KEY,
    holder text NOT NULL,
    term bigint NOT NULL,
    granted_at_ns bigint NOT NULL,
    ttl_ms bigint NOT NULL
);
CREATE TABLE placement (
    shard integer PRIMARY KEY,
    node text NOT NULL,
    incarnation bigint NOT NULL,
    epoch bigint NOT NULL,
    state text NOT NULL
);
CREATE TABLE book (key text COLLATE "C" PRIMARY KEY, body bytea NOT NULL);
CREATE TABLE states (
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    shard integer NOT NULL,
    revision bigint NOT NULL,
    epoch bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE INDEX states_of_shard ON states (shard, kind, id);
CREATE TABLE facts (
    fact_offset bigint PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    at_ms bigint NOT NULL,
    type text NOT NULL,
    body bytea NOT NULL
);
CREATE FUNCTION clock_ns() RETURNS bigint LANGUAGE sql VOLATILE AS
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint';
"""

_CONSUMERS: Final = """
CREATE TABLE consumers (name text COLLATE "C" PRIMARY KEY, fact_offset bigint NOT NULL);
CREATE TABLE projections (
    consumer text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (consumer, key)
);
"""

# A deleted state's row stays as its tombstone: whoever waits for its lock then sees it as it is, not a gap.
_TOMBSTONES: Final = "ALTER TABLE states ADD COLUMN deleted boolean NOT NULL DEFAULT false"

MIGRATIONS: Final = (_FIRST, _CONSUMERS, _TOMBSTONES)
_LOCK_CLASS: Final = 0x70726F6D  # "prom": advisory locks have one number space per database


class Connection(Protocol):
    """What is used of a connection."""

    async def execute(self, query: str, *args: Any) -> Any:
        """Runs statements; several at once when there are no arguments."""
        ...

    async def fetch(self, query: str, *args: Any) -> list[Any]:
        """The rows of one statement, each read by index."""
        ...


async def migrate(connection: Connection, schema: str, migrations: Sequence[str] = MIGRATIONS) -> int:
    """Brings `schema` (a checked identifier) to the version of this release; returns how many migrations ran.

    The caller has opened a transaction and commits it. A schema that is up to date is only read, so a role that may
    not create tables is enough then. Raises OperatingError `E-NEWER-FORMAT`, `E-STORE-ENCODING`.
    """
    found = await version_of(connection, schema)
    if found < len(migrations):
        await connection.fetch("SELECT pg_advisory_xact_lock($1, hashtext($2))", _LOCK_CLASS, schema)
        found = await version_of(connection, schema)  # another node may have been first
    if found > len(migrations):
        raise OperatingError(
            "E-NEWER-FORMAT",
            f"schema {schema!r} has version {found}, this release knows {len(migrations)}",
            hint="run the release that wrote it, or a later one",
        )
    if found == 0:
        await _prepare(connection, schema)
    for number, statements in enumerate(migrations[found:], found + 1):
        await connection.execute(statements)
        await connection.fetch("INSERT INTO migrations (version) VALUES ($1)", number)
    return len(migrations) - found


async def version_of(connection: Connection, schema: str) -> int:
    """How many migrations a schema has; 0 when it isn't there. `schema` is first in the search path, or it has none."""
    # Asked of the catalogue's tables: a name that was looked for in vain before the lock is remembered as missing.
    rows = await connection.fetch(
        "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = $1 AND c.relname = 'migrations'",
        schema,
    )
    if not rows:
        return 0
    return int((await connection.fetch("SELECT coalesce(max(version), 0) FROM migrations"))[0][0])


async def _prepare(connection: Connection, schema: str) -> None:
    encoding = (await connection.fetch("SELECT current_setting('server_encoding')"))[0][0]
    if encoding != "UTF8":
        message = f"the database's encoding is {encoding}, which can't hold every name"
        raise OperatingError("E-STORE-ENCODING", message, hint="create the database with ENCODING 'UTF8'")
    await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    await connection.execute(
        "CREATE TABLE migrations (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp())"
    )
