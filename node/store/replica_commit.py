"""One commit of a replica: everything encoded before the transaction begins, and then what is done within it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from node.core import limits
from node.store.record import RecordDamaged, RecordTooNew, seal
from node.store.replica_codec import CHUNK_LEAVES, digests_bytes, entry_bytes, entry_of, key_bytes
from node.store.replica_index import Row, RowChanges, rows_of
from node.store.replica_layout import COUNTS_KEY, ENTRIES_DB, MARK_KEY, META_DB, QUARANTINE_DB, chunk_key
from node.store.replica_port import MapCount, ReplicaBatch

MISPLACED: Final = "it stands where it does not belong"
Digests = list[list[int]]


class Write(Protocol):
    """A write transaction over the databases by name."""

    def get(self, db: bytes, key: bytes) -> bytes | None: ...

    def put(self, db: bytes, key: bytes, value: bytes) -> None: ...

    def pop(self, db: bytes, key: bytes) -> bytes | None: ...

    def replace(self, db: bytes, key: bytes, value: bytes) -> bytes | None: ...

    def count(self, db: bytes) -> int: ...


class After(NamedTuple):
    """What a replica holds in memory once a commit is durable."""

    digests: Digests
    counts: list[MapCount]
    hlc_mark: int


class Prepared(NamedTuple):
    """A batch as bytes. `bad`: places whose records are not what was written, to be put into quarantine; `stale`: rows
    that led nowhere when they were read."""

    puts: Sequence[tuple[bytes, bytes]]
    drops: Sequence[bytes]
    meta: Sequence[tuple[bytes, bytes]]
    bad: Sequence[bytes] = ()
    stale: Sequence[Row] = ()


def after(batch: ReplicaBatch, now: After) -> After:
    """What holds after the batch; rows of maps that it changes are new, the others the present ones."""
    digests, counts = list(now.digests), list(now.counts)
    for map_ in {map_ for map_, _ in batch.digests}:
        digests[map_] = list(digests[map_])
    for (map_, leaf), digest in batch.digests.items():
        digests[map_][leaf] = digest
    for map_, count in batch.counts.items():
        counts[map_] = count
    return After(digests, counts, max(now.hlc_mark, batch.hlc_mark))


def prepare(batch: ReplicaBatch, then: After, bad: Sequence[bytes], stale: Sequence[Row]) -> Prepared:
    """Encodes a batch, in the file's order so that each page is touched once; raises BadInput."""
    encoded: dict[bytes, bytes] = {}
    for entry in batch.puts:
        place = key_bytes(entry.key)
        encoded[place] = entry_bytes(place, entry)
    meta = [(MARK_KEY, seal(MARK_KEY, then.hlc_mark.to_bytes(8, "big")))]
    meta.append((COUNTS_KEY, seal(COUNTS_KEY, msgspec.msgpack.encode(then.counts))))
    for map_, chunk in sorted({(map_, leaf // CHUNK_LEAVES) for map_, leaf in batch.digests}):
        leaves = then.digests[map_][chunk * CHUNK_LEAVES : (chunk + 1) * CHUNK_LEAVES]
        meta.append((chunk_key(map_, chunk), seal(chunk_key(map_, chunk), digests_bytes(leaves))))
    return Prepared(sorted(encoded.items()), sorted(map(key_bytes, batch.drops)), meta, bad, stale)


def apply(txn: Write, prepared: Prepared, wall_ms: int) -> None:
    """Everything of a commit but its end."""
    rows = RowChanges()
    for row in prepared.stale:  # looked at again: the entry may have come to be since
        if row not in rows_of(row.value, txn.get(ENTRIES_DB, row.value)):
            txn.pop(row.db, row.key)
    for place in prepared.bad:
        _set_apart(txn, place, rows, wall_ms)
    for place in prepared.drops:
        rows.replace(place, txn.pop(ENTRIES_DB, place), None)
    for place, value in prepared.puts:
        before = txn.replace(ENTRIES_DB, place, value)
        # Whoever writes the very same again doubts what leads to it: the rows are put, whether they are there or not.
        rows.replace(place, before if before != value else None, value)
    for row, comes in rows.in_order():
        if comes:
            txn.put(row.db, row.key, row.value)
        else:
            txn.pop(row.db, row.key)
    for key, value in prepared.meta:
        txn.put(META_DB, key, value)


def _set_apart(txn: Write, place: bytes, rows: RowChanges, wall_ms: int) -> None:
    """Moves a record that is still damaged out of the entries; its bytes are kept while there is room for them."""
    value = txn.get(ENTRIES_DB, place)
    if value is None or why_damaged(place, value) == "":
        return
    if txn.count(QUARANTINE_DB) < limits.replica_quarantine_records_max:
        txn.put(QUARANTINE_DB, place, wall_ms.to_bytes(8, "big") + value)
    txn.pop(ENTRIES_DB, place)
    rows.replace(place, value, None)


def why_damaged(place: bytes, value: bytes) -> str:
    """Why a record is not what was written at its place; empty when it is."""
    try:
        found = entry_of(place, value)
        return "" if key_bytes(found.key) == place else MISPLACED
    except (RecordDamaged, RecordTooNew) as error:
        return error.message
