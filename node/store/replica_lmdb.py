"""A node's ServeIndex replica on LMDB: one file, opened by one process.

What its driver owes: `commit` blocks on the disk and is called from a worker thread, one call at a time; `get`, `scan`
and `scan_all` are called from one other thread meanwhile. `close` is called when no commit runs. After a commit that
failed with `definite` false the file must be closed and opened anew; until then reads find nothing.

Each read has a transaction of its own (0.2 µs): one kept open would pin the pages of every commit since, also on a node
that reads nothing for hours. The memory map has its greatest size from the beginning, which costs address space only:
to grow it would pull it away under the thread that is reading.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import lmdb
import msgspec

from node.core import limits
from node.core.check import invariant
from node.core.clock import Clock
from node.core.errors import OperatingError
from node.core.hashing import MAP_COUNT
from node.store import datafile
from node.store.lmdb import keep_length
from node.store.record import RecordDamaged, RecordTooNew, seal
from node.store.replica_codec import CHUNK_LEAVES, digests_bytes, entry_bytes, entry_of, key_bytes, leaf_prefix
from node.store.replica_env import open_env
from node.store.replica_file import FORMAT, Opening, known_owner, lock_replica, set_aside, write_owner
from node.store.replica_layout import (
    COUNTS_KEY,
    ENTRIES_DB,
    IDENTITY_KEY,
    MARK_KEY,
    META_DB,
    Damage,
    chunk_key,
    identity_record,
    stored_counts,
    stored_digests,
    stored_identity,
    stored_mark,
)
from node.store.replica_port import MapCount, ReplicaBatch, ReplicaEntry, ReplicaIdentity


class LmdbReplica:
    """`ReplicaStore` on disk; made by `open_replica`."""

    def __init__(self, path: Path, env: lmdb.Environment, lock: int) -> None:
        self._path = path
        self._env = env
        self._lock = lock
        self._pid = os.getpid()
        self._entries, self._meta = env.open_db(ENTRIES_DB), env.open_db(META_DB)
        self._damaged: set[str] = set()
        self.damaged_reads = 0
        self.reads_failed = 0
        with env.begin(db=self._meta) as txn:
            self._identity = stored_identity(txn.get)
            self._hlc_mark = stored_mark(txn.get)
            self._counts = stored_counts(txn.get)
            self._digests = [stored_digests(txn.get, map_) for map_ in range(MAP_COUNT)]

    @property
    def identity(self) -> ReplicaIdentity:
        """See `ReplicaStore`; so are the others."""
        return self._identity

    @property
    def damaged(self) -> frozenset[str]:
        """Keys whose entries failed their check since the open and have not been written since: to be fetched from a
        peer. A key that can't be read itself stands here with its bytes escaped."""
        return frozenset(self._damaged)

    def hlc_mark(self) -> int:
        return self._hlc_mark

    def digests(self) -> list[list[int]]:
        return [list(row) for row in self._digests]

    def counts(self) -> list[MapCount]:
        return list(self._counts)

    def usage(self) -> tuple[int, int]:
        """Bytes of the file in use, and the limit it may grow to."""
        info = self._env.info()
        return (info["last_pgno"] + 1) * self._env.stat()["psize"], info["map_size"]

    def get(self, map: int, leaf: int, key: str) -> ReplicaEntry | None:  # noqa: A002 - the port's name
        place = leaf_prefix(map, leaf) + key.encode(errors="replace")
        try:
            with self._env.begin(db=self._entries) as txn:
                value = txn.get(place)
        except lmdb.Error:
            self.reads_failed += 1
            return None
        return None if value is None else self._checked(place, value)

    def scan(self, map: int, leaf: int) -> Sequence[ReplicaEntry]:  # noqa: A002 - the port's name
        prefix = leaf_prefix(map, leaf)
        found: list[ReplicaEntry] = []
        for place, value in self._from(prefix):
            if not place.startswith(prefix):
                break
            entry = self._checked(place, value)
            if entry is not None:
                found.append(entry)
        return found

    def scan_all(self, after: str, limit: int) -> Sequence[ReplicaEntry]:
        start = key_bytes(after) if after else b"\0"
        found: list[ReplicaEntry] = []
        for place, value in self._from(start):
            if len(found) >= limit:
                break
            entry = self._checked(place, value) if place != start else None
            if entry is not None:
                found.append(entry)
        return found

    def commit(self, batch: ReplicaBatch) -> None:
        """See `ReplicaStore.commit`. Raises OperatingError `E-BAD-INPUT` (nothing was tried), `E-REPLICA-FULL` or
        `E-REPLICA-DISK`; when that is not definite the file must be opened anew."""
        invariant(os.getpid() == self._pid, "replica-fork", opened_by=self._pid, used_by=os.getpid())
        encoded: dict[bytes, bytes] = {}
        for entry in batch.puts:
            place = key_bytes(entry.key)
            encoded[place] = entry_bytes(place, entry)
        puts = sorted(encoded.items())  # in the order of the file each page is touched once
        drops = sorted(key_bytes(key) for key in batch.drops)
        digests, counts = self._digests_after(batch), list(self._counts)
        for map_, count in batch.counts.items():
            counts[map_] = count
        mark = max(self._hlc_mark, batch.hlc_mark)
        meta = [(MARK_KEY, seal(MARK_KEY, mark.to_bytes(8, "big")))]
        meta.append((COUNTS_KEY, seal(COUNTS_KEY, msgspec.msgpack.encode(counts))))
        for map_, chunk in sorted({(map_, leaf // CHUNK_LEAVES) for map_, leaf in batch.digests}):
            leaves = digests[map_][chunk * CHUNK_LEAVES : (chunk + 1) * CHUNK_LEAVES]
            meta.append((chunk_key(map_, chunk), seal(chunk_key(map_, chunk), digests_bytes(leaves))))
        self._write(puts, drops, meta)
        self._digests, self._counts, self._hlc_mark = digests, counts, mark
        if self._damaged:
            self._damaged.difference_update([entry.key for entry in batch.puts], batch.drops)

    def adopt_tenure(self, tenure: int) -> None:
        """Makes the replica one of another stay on the roster, after it took over what its peers have."""
        identity = msgspec.structs.replace(self._identity, tenure=tenure)
        self._write([], [], [(IDENTITY_KEY, identity_record(identity))])
        self._identity = identity
        write_owner(self._path, identity)

    def close(self) -> None:
        """Lets the file go. In a forked child nothing is touched: the handles are the parent's."""
        if os.getpid() == self._pid and self._lock >= 0:
            self._env.close()
            os.close(self._lock)
            self._lock = -1

    def _digests_after(self, batch: ReplicaBatch) -> list[list[int]]:
        """New rows where the batch changes something, the present ones elsewhere."""
        digests = list(self._digests)
        for map_ in {map_ for map_, _ in batch.digests}:
            digests[map_] = list(digests[map_])
        for (map_, leaf), digest in batch.digests.items():
            digests[map_][leaf] = digest
        return digests

    def _write(self, puts: list[tuple[bytes, bytes]], drops: list[bytes], meta: list[tuple[bytes, bytes]]) -> None:
        try:
            txn = self._env.begin(write=True)
            try:
                for place in drops:
                    txn.delete(place, db=self._entries)
                for place, value in puts:
                    txn.put(place, value, db=self._entries)
                for key, value in meta:
                    txn.put(key, value, db=self._meta)
                txn.commit()
            except BaseException:
                txn.abort()
                raise
        except lmdb.MapFullError as error:
            used, limit = self.usage()
            message = f"{self._path} uses {used} of at most {limit} bytes"
            raise OperatingError("E-REPLICA-FULL", message, hint="raise the replica's limit") from error
        except lmdb.Error as error:
            message = f"{self._path}: {error}"
            raise OperatingError(
                "E-REPLICA-DISK", message, definite=self._still_sound(), hint="make room on the disk, check its health"
            ) from error
        keep_length(self._env, self._path)

    def _still_sound(self) -> bool:
        """LMDB condemns an environment whose header could not be written; only then may a commit have happened."""
        try:
            self._env.begin().abort()
        except lmdb.Error:
            return False
        return True

    def _from(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in order; ends early, and counts it, where the file's structure can't be read."""
        try:
            with self._env.begin(db=self._entries) as txn, txn.cursor() as cursor:
                if cursor.set_range(start):
                    yield from cursor.iternext()
        except lmdb.Error:
            self.reads_failed += 1

    def _checked(self, place: bytes, value: bytes) -> ReplicaEntry | None:
        try:
            return entry_of(place, value)
        except (RecordDamaged, RecordTooNew):
            self.damaged_reads += 1
            if len(self._damaged) < limits.replica_damaged_kept_max:
                self._damaged.add(place[2:].decode(errors="backslashreplace"))
            return None


def open_replica(
    path: Path,
    clock: Clock,
    *,
    cluster_id: str,
    node: str,
    tenure: int,
    map_bytes_max: int = limits.replica_map_bytes_max,
) -> tuple[LmdbReplica, Opening]:
    """Opens a node's replica, or makes one, or sets a damaged one aside and makes one.

    A replica that is found keeps its own tenure: the caller compares it. Raises OperatingError: `E-REPLICA-IN-USE`
    naming the process, `E-OTHER-CLUSTER`, `E-NEWER-FORMAT`, `E-STORE-PATH`.
    """
    datafile.prepare_dir(path)
    wanted = ReplicaIdentity(cluster_id, node, tenure, FORMAT)
    lock = lock_replica(path)
    try:
        try:
            known = known_owner(path, wanted)
            env, opening = open_env(path, map_bytes_max, wanted, known=known)
        except Damage as damage:
            opening = Opening("set_aside", str(damage), set_aside(path, clock))
            env, _ = open_env(path, map_bytes_max, wanted, known=False)
        replica = LmdbReplica(path, env, lock)
        try:
            write_owner(path, replica.identity)
        except OSError as error:
            env.close()
            raise datafile.path_error(path, error) from error
    except BaseException:
        os.close(lock)
        raise
    return replica, opening
