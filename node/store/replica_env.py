"""A replica's LMDB environment: opened after every check, before anything in it is trusted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import lmdb

from node.core import limits
from node.core.errors import OperatingError
from node.core.hashing import MAP_COUNT
from node.store import datafile
from node.store.lmdb import STRUCTURE_ERRORS, header
from node.store.record import RecordDamaged
from node.store.replica_file import check_owner, oldest_reader, room_bytes
from node.store.replica_health import ReplicaHealth
from node.store.replica_index import INDEX_DBS
from node.store.replica_layout import (
    ENTRIES_DB,
    IDENTITY_KEY,
    META_DB,
    QUARANTINE_DB,
    Damage,
    identity_record,
    stored_counts,
    stored_digests,
    stored_identity,
    stored_mark,
)
from node.store.replica_opening import Opening
from node.store.replica_port import ReplicaIdentity

TABLES: Final = (ENTRIES_DB, META_DB, QUARANTINE_DB, *INDEX_DBS)


class TableWrite:
    """`replica_commit.Write` over a transaction."""

    def __init__(self, txn: lmdb.Transaction[bytes], tables: Mapping[bytes, lmdb._Database]) -> None:
        self._txn = txn
        self._tables = tables

    def get(self, db: bytes, key: bytes) -> bytes | None:
        return self._txn.get(key, db=self._tables[db])

    def put(self, db: bytes, key: bytes, value: bytes) -> None:
        self._txn.put(key, value, db=self._tables[db])

    def pop(self, db: bytes, key: bytes) -> bytes | None:
        return self._txn.pop(key, db=self._tables[db])

    def replace(self, db: bytes, key: bytes, value: bytes) -> bytes | None:
        return self._txn.replace(key, value, db=self._tables[db])

    def count(self, db: bytes) -> int:
        return self._txn.stat(self._tables[db])["entries"]


def begin_read(env: lmdb.Environment) -> lmdb.Transaction[bytes]:
    """A read transaction; slots that killed processes have left are cleared when none is free. Raises lmdb.Error."""
    try:
        return env.begin()
    except lmdb.ReadersFullError:
        env.reader_check()
        return env.begin()


def open_env(
    path: Path, map_bytes_max: int, wanted: ReplicaIdentity, *, known: bool
) -> tuple[lmdb.Environment, Opening]:
    """An environment that has passed every check, the records of the open included; raises Damage."""
    try:
        env = lmdb.open(
            str(path),
            map_size=map_bytes_max,
            max_dbs=len(TABLES),
            max_readers=limits.replica_readers_max,
            mode=0o600,
            writemap=False,
            max_spare_txns=2,
            # A cold read waits for one page, not for the megabytes that the system would read ahead of it; a scan of a
            # cold file pays for that, and is for workers and other processes.
            readahead=False,
        )
    except STRUCTURE_ERRORS as error:
        raise Damage(str(error)) from error
    except lmdb.Error as error:
        raise OperatingError("E-STORE-PATH", f"{path}: {error}", hint="check its owner, mode and disk") from error
    try:
        return env, _examine(env, path, wanted, known=known)
    except (*STRUCTURE_ERRORS, lmdb.NotFoundError, RecordDamaged) as error:
        env.close()
        raise Damage(str(error)) from error
    except lmdb.Error as error:  # a full disk is no reason to set a replica aside
        env.close()
        raise OperatingError("E-REPLICA-DISK", f"{path}: {error}", hint="check the disk's room and health") from error
    except BaseException:
        env.close()
        raise


def _examine(env: lmdb.Environment, path: Path, wanted: ReplicaIdentity, *, known: bool) -> Opening:
    truncated = datafile.truncation(path, lambda: header(env), lambda: env.begin(write=True))
    if truncated:
        raise Damage(truncated)
    env.reader_check()
    if env.stat()["entries"] == 0:
        if known:
            raise Damage(f"{path / datafile.DATA_NAME} holds nothing")
        with env.begin(write=True) as txn:
            tables = {name: env.open_db(name, txn=txn) for name in TABLES}
            txn.put(IDENTITY_KEY, identity_record(wanted), db=tables[META_DB])
        return Opening("fresh")
    meta = env.open_db(META_DB, create=False)
    with env.begin(db=meta) as txn:
        check_owner(path, stored_identity(txn.get), wanted)
        # Digests that can't be trusted would hide differences from every peer: then the replica is worth nothing.
        for map_ in range(MAP_COUNT):
            stored_digests(txn.get, map_)
        stored_counts(txn.get)
        stored_mark(txn.get)
    return Opening("reused")


def live_bytes(txn: lmdb.Transaction[bytes], databases: Iterable[lmdb._Database]) -> int:
    """What the pages in use take of a file; the rest of it waits to be used again."""
    pages = 0
    for stat in (txn.stat(), *map(txn.stat, databases)):
        pages += stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
    return pages * txn.stat()["psize"]


def file_health(env: lmdb.Environment, path: Path, databases: Iterable[lmdb._Database]) -> ReplicaHealth:
    """What the file's header and its readers' table say; only the disk's room when they can't be read."""
    room = room_bytes(path)
    try:
        info = env.info()
        pid, behind = oldest_reader(env.readers(), info["last_txnid"])
        with env.begin() as txn:
            live = live_bytes(txn, databases)
    except lmdb.Error:
        return ReplicaHealth(room_bytes=room)
    return ReplicaHealth(
        used_bytes=(info["last_pgno"] + 1) * env.stat()["psize"],
        live_bytes=live,
        limit_bytes=info["map_size"],
        room_bytes=room,
        readers=env.readers().count("\n") - 1,
        readers_max=info["max_readers"],
        oldest_reader_commits=behind,
        oldest_reader_pid=pid,
    )
