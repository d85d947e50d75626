"""A replica's LMDB environment: opened after every check, before anything in it is trusted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import lmdb

from node.core.errors import OperatingError
from node.core.hashing import MAP_COUNT
from node.store import datafile
from node.store.lmdb import STRUCTURE_ERRORS, header
from node.store.record import RecordDamaged
from node.store.replica_file import Opening, check_owner
from node.store.replica_layout import (
    ENTRIES_DB,
    IDENTITY_KEY,
    META_DB,
    Damage,
    identity_record,
    stored_counts,
    stored_digests,
    stored_identity,
    stored_mark,
)
from node.store.replica_port import ReplicaIdentity


def open_env(
    path: Path, map_bytes_max: int, wanted: ReplicaIdentity, *, known: bool
) -> tuple[lmdb.Environment, Opening]:
    """An environment that has passed every check, the records of the open included; raises Damage."""
    try:
        env = lmdb.open(str(path), map_size=map_bytes_max, max_dbs=2, mode=0o600, writemap=False, max_spare_txns=2)
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
            meta, _ = env.open_db(META_DB, txn=txn), env.open_db(ENTRIES_DB, txn=txn)
            txn.put(IDENTITY_KEY, identity_record(wanted), db=meta)
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


def live_bytes(txn: lmdb.Transaction[bytes], databases: Sequence[lmdb._Database]) -> int:
    """What the pages in use take of a file; the rest of it waits to be used again."""
    pages = 0
    for stat in (txn.stat(), *map(txn.stat, databases)):
        pages += stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
    return pages * txn.stat()["psize"]
