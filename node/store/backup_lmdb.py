"""Rows of an archive out of the embedded store, and into a new file of one.

Reading is one read transaction, so what comes out is the store at one instant, whatever is written meanwhile; every
record's checksum is verified on the way. What its driver owes: it runs in a process of its own, and lets no reader
live for long (LMDB keeps all pages that are freed meanwhile), see `limits.backup_snapshot_s_max`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import lmdb
import msgspec

from node.core import limits
from node.core.errors import OperatingError
from node.store import archive, datafile, port, whereabouts
from node.store.archive import Row
from node.store.keys import split_state_name
from node.store.lease import StoredLease
from node.store.lmdb import IDENTITY_NOTE, STRUCTURE_ERRORS, open_file
from node.store.lmdb_layout import (
    BOOK,
    FACT,
    FACTS_KEY,
    FORMAT,
    FORMAT_KEY,
    IDENTITY_KEY,
    OFFSET,
    SHARD,
    VERSION_KEY,
    Counter,
    FactRow,
    book_key,
    consumer_key,
    fact_key,
    index_key,
    projection_key,
    row_key,
    state_key,
    tombstone_key,
)
from node.store.occupancy import Occupancy
from node.store.record import Sealed, seal, unseal

NEW_NAME: Final = "data.mdb.new"
_COUNTERS: Final = {"facts": FACTS_KEY, "placement": VERSION_KEY}
T = TypeVar("T", bound=msgspec.Struct)


def occupied(path: Path, *, alone: bool = False) -> Occupancy:
    """The folder of a store that is there; raises OperatingError."""
    missing = datafile.missing_data(path)
    if missing:
        raise OperatingError("E-NOT-FOUND", missing, hint="name the store's folder with --path, or --data")
    return Occupancy(path, alone=alone)


def rows_of(path: Path, roster: str) -> Iterator[Row]:
    """All rows of the store in `path`, in an archive's order. Raises OperatingError for a store that is not there, is
    damaged or in use by somebody who replaces it."""
    with occupied(path):
        env = open_file(path, limits.store_map_bytes)
        try:
            with reading(env) as txn:
                yield from _rows(txn, roster)
        except STRUCTURE_ERRORS as error:
            raise OperatingError("E-STORE-DAMAGED", f"{path}: {error}", hint="promovolvectl store verify") from error
        finally:
            env.close()


def reading(env: lmdb.Environment) -> lmdb.Transaction[bytes]:
    """A snapshot."""
    try:
        return env.begin()
    except lmdb.MapResizedError:
        env.set_mapsize(0)  # a node has grown the file since
        return env.begin()


def identity_in(txn: lmdb.Transaction[bytes]) -> port.Identity:
    """Whose store it is; raises OperatingError for one that is nobody's yet."""
    identity = txn.get(IDENTITY_KEY)
    if identity is None:
        raise OperatingError("E-NOT-FOUND", "the store is empty: no node has made it a cluster's yet")
    return _decoded(unseal(IDENTITY_KEY, identity), port.Identity)


def _rows(txn: lmdb.Transaction[bytes], roster: str) -> Iterator[Row]:
    yield identity_in(txn)
    if roster:
        yield archive.RosterText(roster)
    for key, found in family(txn, b"N"):
        yield archive.IncarnationRow(key[1:].decode(), _decoded(found, Counter).value)
    for key, found in family(txn, b"L"):
        yield archive.LeaseRow(key[1:].decode(), _decoded(found, StoredLease).term)
    for name, key in _COUNTERS.items():
        yield archive.CounterRow(name, counter_in(txn, key))
    for _, found in family(txn, b"P"):
        yield _decoded(found, port.ShardRow)
    for key, found in family(txn, BOOK):
        yield port.BookEntry(key[len(BOOK) :].decode(), found.body)
    for prefix in (b"S", b"D"):
        for key, found in family(txn, prefix):
            yield _state(key[1:], found, deleted=prefix == b"D")
    for key, found in family(txn, b"C"):
        yield archive.ConsumerRow(key[1:].decode(), _decoded(found, Counter).value)
    for key, found in family(txn, b"J"):
        yield archive.DerivedRow(*split_state_name(key[1:]), found.body)
    for key, found in family(txn, FACT):
        row = _decoded(found, FactRow)
        yield port.StoredFact(OFFSET.unpack(key)[1], row.kind, row.id, row.at_ms, row.type, row.body)


def counter_in(txn: lmdb.Transaction[bytes], key: bytes) -> int:
    """A counter; 0 when it was never written."""
    value = txn.get(key)
    return _decoded(unseal(key, value), Counter).value if value is not None else 0


def family(txn: lmdb.Transaction[bytes], prefix: bytes) -> Iterator[tuple[bytes, Sealed]]:
    """Records whose keys begin so, in order; raises RecordDamaged."""
    with txn.cursor() as cursor:
        if cursor.set_range(prefix):
            for key, value in cursor.iternext():
                if not key.startswith(prefix):
                    return
                yield key, unseal(key, value)


def _decoded(found: Sealed, shape: type[T]) -> T:
    return msgspec.msgpack.decode(found.body, type=shape)


def _state(name: bytes, found: Sealed, *, deleted: bool) -> archive.StateRow:
    (shard,) = SHARD.unpack_from(found.body)
    body = found.body[SHARD.size :]
    return archive.StateRow(*split_state_name(name), shard, found.revision, found.epoch, deleted, body)


# ---- into a new file


def write_new(path: Path, rows: Iterable[Row], map_bytes: int, tick: Callable[[int], None]) -> Path:
    """Writes all rows into a new data file in the folder `path`, whole and synced, and returns it; `tick` hears of the
    rows so far. The file that is there is left alone, a former try is not. The caller holds the folder alone. Raises
    OSError and lmdb.Error for what the disk refuses."""
    new = path / NEW_NAME
    new.unlink(missing_ok=True)
    # One writer and no reader: neither lock file nor a sync for each transaction is needed before the last one.
    env = lmdb.open(str(new), map_size=map_bytes, subdir=False, lock=False, sync=False, mode=0o600, writemap=False)
    try:
        with env.begin(write=True) as txn:
            txn.put(FORMAT_KEY, seal(FORMAT_KEY, b"", revision=FORMAT))
        done = 0
        pending = iter(rows)
        while batch := list(itertools.islice(pending, limits.restore_batch_rows)):
            with env.begin(write=True) as txn:
                for row in batch:
                    for key, value in _records(row):
                        txn.put(key, value)
            done += len(batch)
            tick(done)
        env.sync(True)
    finally:
        env.close()
    _sync(new)
    return new


def put_in_place(path: Path, new: Path, identity: port.Identity, keep_as: str) -> Path | None:
    """Makes `new` the folder's data file, from one moment to the next; the one before, if there is one, is kept under
    the name `keep_as` where that says one, and returned. The caller holds the folder alone, since before `new` was
    made. Raises OSError."""
    data = path / datafile.DATA_NAME
    kept: Path | None = None
    if keep_as and data.exists():
        kept = path / keep_as
        os.link(data, kept)
    whereabouts.forget(path)
    new.replace(data)
    datafile.write_note(path, IDENTITY_NOTE, identity)
    datafile.sync_dir(path)
    return kept


def _records(row: Row) -> Iterator[tuple[bytes, bytes]]:
    """What is stored for a row."""
    match row:
        case port.Identity():
            yield _sealed(IDENTITY_KEY, row)
        case archive.RosterText():
            return
        case archive.IncarnationRow(node, number):
            yield _sealed(b"N" + node.encode(), Counter(number))
        case archive.LeaseRow(name, term):
            yield _sealed(b"L" + name.encode(), StoredLease("", term, 0, 0))
        case archive.CounterRow(name, value):
            yield _sealed(_COUNTERS[name], Counter(value))
        case port.ShardRow():
            yield _sealed(row_key(row.shard), row)
        case port.BookEntry(name, body):
            yield book_key(name), seal(book_key(name), body)
        case archive.StateRow():
            yield from _state_records(row)
        case archive.ConsumerRow(name, offset):
            yield _sealed(consumer_key(name), Counter(offset))
        case archive.DerivedRow(name, key, body):
            yield projection_key(name, key), seal(projection_key(name, key), body)
        case port.StoredFact():
            yield _sealed(fact_key(row.offset), FactRow(row.kind, row.id, row.at_ms, row.type, row.body))


def _state_records(row: archive.StateRow) -> Iterator[tuple[bytes, bytes]]:
    key = tombstone_key(row.kind, row.id) if row.deleted else state_key(row.kind, row.id)
    yield key, seal(key, SHARD.pack(row.shard) + row.body, revision=row.revision, epoch=row.epoch)
    if not row.deleted:
        yield index_key(row.shard, row.kind, row.id), b""


def _sealed(key: bytes, value: msgspec.Struct) -> tuple[bytes, bytes]:
    return key, seal(key, msgspec.msgpack.encode(value))


def _sync(file: Path) -> None:
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
