"""Which state store a node's settings ask for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from node.core import limits
from node.core.clock import Clock
from node.core.errors import OperatingError
from node.core.private_file import UnfitFile, read_private
from node.core.settings import StoreSection
from node.store.lanes import Lane, lane_of, one_lane
from node.store.lmdb import LmdbStore
from node.store.port import Request, StateStore
from node.store.postgres import PostgresOptions, PostgresStore

# What passes without anybody doing something about this node: it waits, and says what for.
PASSING = ("E-STORE-UNREACHABLE", "E-STORE-TIMEOUT", "E-STORE-BUSY", "E-STORE-BLOCKED", "E-STORE-READ-ONLY")


def open_store(section: StoreSection, name: str, clock: Clock) -> tuple[StateStore, Callable[[Request], Lane]]:
    """The store, and the lanes that it serves side by side. Raises OperatingError; a database that can't be reached is
    no error yet, its first answer says it."""
    if section.kind == "postgres":
        options = PostgresOptions(
            dsn=read_dsn(section.dsn_file) if section.dsn_file else "",
            schema=section.schema_name,
            pool_size=section.pool_size,
            deadline_ms=section.deadline_ms,
            prepared_statements=section.prepared_statements,
            name=f"promovolve-node {name}",
        )
        return PostgresStore(options, clock), lane_of
    if section.path is None:
        raise OperatingError("E-CONFIG", "store.path: kind 'lmdb' needs a path")
    return LmdbStore(section.path, clock, lasting=True), one_lane


def read_dsn(path: Path) -> str:
    """The connection string in a file. Raises OperatingError `E-DSN-FILE`; no message quotes the string."""
    try:
        text = read_private(path, limits.key_file_bytes_max).decode().strip()
    except UnfitFile as unfit:
        raise OperatingError("E-DSN-FILE", f"store.dsn_file {path} {unfit.what}", hint=unfit.hint) from None
    except UnicodeDecodeError:
        raise OperatingError("E-DSN-FILE", f"store.dsn_file {path} is not text") from None
    if not text.startswith(("postgresql://", "postgres://")):
        raise OperatingError(
            "E-DSN-FILE",
            f"store.dsn_file {path} does not begin with postgresql://",
            hint="one line like postgresql://user:password@host:5432/database",
        )
    return text


def place(section: StoreSection) -> str:
    """What to call the store in a sentence."""
    return str(section.path) if section.kind == "lmdb" else f"schema {section.schema_name!r} of the database"
