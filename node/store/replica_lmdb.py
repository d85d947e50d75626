"""A node's ServeIndex replica on LMDB: one file, opened by one process.

What its driver owes: `commit` and `scrub` block on the disk and are called from a worker thread, one call at a time;
what reads is called from one other thread meanwhile. `reopen` and `close` are called from there when neither runs.
After a commit that left `poisoned` set, the file is checked in another process (`replica_check`) and opened anew before
the next: what the kernel still knows of pages that it failed to write can't be trusted, so trying again proves nothing.

Each read has a transaction of its own (0.2 µs): one kept open would pin the pages of every commit since, also on a node
that reads nothing for hours. The memory map has its greatest size from the beginning, which costs address space only:
to grow it would pull it away under the thread that is reading. The file itself grows by what is written.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

import lmdb
import msgspec

from node.core import limits
from node.core.check import invariant
from node.core.clock import Clock
from node.core.errors import OperatingError
from node.core.hashing import MAP_COUNT
from node.store import replica_commit, replica_rows
from node.store.lmdb import keep_length
from node.store.record import RecordDamaged, RecordTooNew
from node.store.replica_codec import entry_of, key_bytes, leaf_prefix
from node.store.replica_commit import MISPLACED
from node.store.replica_env import TABLES, TableWrite, begin_read, file_health, open_env
from node.store.replica_file import condemn, no_room, write_owner
from node.store.replica_health import ReplicaHealth
from node.store.replica_index import EXPIRY_DB, SITES_DB, TOMBSTONES_DB, Row, names
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
from node.store.replica_mark import CommitMark
from node.store.replica_port import MapCount, ReplicaBatch, ReplicaEntry, ReplicaIdentity, begun
from node.store.replica_quarantine import Quarantine, Quarantined
from node.store.replica_scrub import LeafScrub

T = TypeVar("T")


class LmdbReplica:
    """`ReplicaStore` on disk; made by `replica_open.open_replica`."""

    def __init__(
        self, path: Path, env: lmdb.Environment, lock: int, clock: Clock, mark: CommitMark, *, older: bool
    ) -> None:
        """`older`: the file is an older copy, whose stay on the roster is over."""
        self.path = path
        self._mark = mark
        self._older = older
        self._clock = clock
        self._lock = lock
        self._pid = os.getpid()
        self._incarnation = 0
        self._bad: deque[bytes] = deque(maxlen=limits.replica_damaged_kept_max)
        self._stale: deque[Row] = deque(maxlen=limits.replica_stale_rows_max)
        self._suspect: set[tuple[int, int]] = set()
        self._quarantine = Quarantine(clock)
        self._scrub = LeafScrub()
        self.poisoned = ""
        self.damaged_reads = 0
        self.reads_failed = 0
        self._take(env)

    def _take(self, env: lmdb.Environment) -> None:
        self._env = env
        self._tables = {name: env.open_db(name) for name in TABLES}
        with env.begin(db=self._tables[META_DB]) as txn:
            self._on_disk = stored_identity(txn.get)
            self._now = replica_commit.After(
                [stored_digests(txn.get, map_) for map_ in range(MAP_COUNT)],
                stored_counts(txn.get),
                stored_mark(txn.get),
            )
        self._identity = self._begun() if self._incarnation else self._on_disk

    def begin(self, incarnation: int) -> None:
        self._incarnation = incarnation
        self._identity = self._begun()
        self.commit(ReplicaBatch((), (), {}, 0, {}))

    def _begun(self) -> ReplicaIdentity:
        found = begun(self._on_disk, self._incarnation)
        return msgspec.structs.replace(found, tenure=0) if self._older else found

    @property
    def identity(self) -> ReplicaIdentity:
        """See `ReplicaStore`; so are the others."""
        return self._identity

    @property
    def damaged(self) -> frozenset[str]:
        """Keys whose entries failed their check since the open and have not been written since: to be fetched from a
        peer. A key that can't be read itself stands here with its bytes escaped."""
        return self._quarantine.waiting

    def take_found(self) -> frozenset[str]:
        return self._quarantine.take_news()

    def take_suspects(self) -> frozenset[tuple[int, int]]:
        found = frozenset(self._suspect)
        self._suspect -= found
        return found

    def quarantined(self) -> tuple[Quarantined, ...]:
        """The damaged entries that were found since the open, also those that were written again since."""
        return self._quarantine.all()

    def hlc_mark(self) -> int:
        return self._now.hlc_mark

    def digests(self) -> list[list[int]]:
        return [list(row) for row in self._now.digests]

    def counts(self) -> list[MapCount]:
        return list(self._now.counts)

    def usage(self) -> tuple[int, int]:
        """Bytes of the file in use, and the limit it may grow to."""
        info = self._env.info()
        return (info["last_pgno"] + 1) * self._env.stat()["psize"], info["map_size"]

    def health(self) -> ReplicaHealth:
        """How the file is; reads its header and the roots of its tables."""
        scrub = self._scrub
        return msgspec.structs.replace(
            file_health(self._env, self.path, self._tables.values()),
            quarantined=len(self._quarantine.waiting),
            damaged_found=self._quarantine.found,
            damaged_reads=self.damaged_reads,
            reads_failed=self.reads_failed,
            scrub_rounds=scrub.rounds,
            scrub_progress=scrub.progress,
            scrub_checked=scrub.checked,
            scrub_leaves_wrong=scrub.wrong,
            poisoned=self.poisoned,
        )

    def get(self, map: int, leaf: int, key: str) -> ReplicaEntry | None:  # noqa: A002 - the port's name
        place = leaf_prefix(map, leaf) + key.encode(errors="replace")
        try:
            value = self._read(place)
        except lmdb.Error:
            self.reads_failed += 1
            return None
        return None if value is None else self._checked(place, value)

    def raw(self, map: int, leaf: int, key: str) -> bytes | None:  # noqa: A002 - the port's name
        """The record of a key as it stands, unchecked: what a read costs without its decoding."""
        return self._read(leaf_prefix(map, leaf) + key.encode())

    def _read(self, place: bytes) -> bytes | None:
        with begin_read(self._env) as txn:
            return txn.get(place, db=self._tables[ENTRIES_DB])

    def scan(self, map: int, leaf: int) -> Sequence[ReplicaEntry]:  # noqa: A002 - the port's name
        prefix = leaf_prefix(map, leaf)
        found: list[ReplicaEntry] = []
        for place, value in self._from(prefix):
            if not place.startswith(prefix):
                break
            entry = self._in_place(place, value)
            if entry is not None:
                found.append(entry)
        return found

    def scan_all(self, after: str, limit: int) -> Sequence[ReplicaEntry]:
        start = key_bytes(after) if after else b"\0"
        found: list[ReplicaEntry] = []
        for place, value in self._from(start):
            if len(found) >= limit:
                break
            entry = self._in_place(place, value) if place != start else None
            if entry is not None:
                found.append(entry)
        return found

    def keys_of_site(self, site: str) -> Sequence[str]:
        return list(self._rows(SITES_DB, lambda txn, cursor: replica_rows.keys_of_site(cursor, site)))

    def sites(self) -> Sequence[str]:
        return list(self._rows(SITES_DB, lambda txn, cursor: replica_rows.sites(cursor)))

    def due(self, before_ms: int, limit: int) -> Sequence[str]:
        def find(txn: lmdb.Transaction[bytes], cursor: lmdb.Cursor[bytes]) -> Iterator[bytes]:
            record = partial(txn.get, db=self._tables[ENTRIES_DB])
            return islice(replica_rows.due(cursor, record, before_ms, self._stale.append), limit)

        return names(self._rows(EXPIRY_DB, find))

    def tombstones(self, limit: int, since_hlc: int = 0) -> Sequence[ReplicaEntry]:
        places = self._rows(
            TOMBSTONES_DB, lambda txn, cursor: islice(replica_rows.tombstones(cursor, since_hlc), limit)
        )
        found = (self.get(place[0], place[1], name) for place in list(places) for name in names([place]))
        return [entry for entry in found if entry is not None and entry.tombstone]

    def scrub(self) -> None:
        """Checks the next leaf: each of its entries, and its digest against them. In the worker thread."""
        map_, leaf = self._scrub.place
        try:
            self._env.reader_check()  # the slot of a check that was killed would keep pages for ever
            with begin_read(self._env) as txn, txn.cursor(self._tables[ENTRIES_DB]) as cursor:
                digests = stored_digests(partial(txn.get, db=self._tables[META_DB]), map_)
                found = self._scrub.check(replica_rows.under(cursor, leaf_prefix(map_, leaf)), digests)
        except (lmdb.Error, RecordDamaged):
            self.reads_failed += 1
            self._scrub.skip()
            return
        for place, why in found.damaged.items():
            self._set_apart(place, why)
        if found.wrong:
            self._suspect.add((map_, leaf))

    def commit(self, batch: ReplicaBatch) -> None:
        """See `ReplicaStore.commit`. Raises OperatingError `E-BAD-INPUT` (nothing was tried), `E-REPLICA-FULL` or
        `E-REPLICA-DISK`; sets `poisoned` when the file has to be checked and opened anew before the next."""
        invariant(os.getpid() == self._pid, "replica-fork", opened_by=self._pid, used_by=os.getpid())
        then = replica_commit.after(batch, self._now)
        # Of a damaged record only the leaf's own commit takes the place, so that its digest goes with it.
        bad = [place for place in list(self._bad) if tuple(place[:2]) in batch.digests]
        prepared = replica_commit.prepare(batch, then, bad, list(self._stale))
        identity = msgspec.structs.replace(self._identity, tenure=batch.tenure or self._identity.tenure)
        if identity != self._on_disk:
            prepared = prepared._replace(meta=[*prepared.meta, (IDENTITY_KEY, identity_record(identity))])
        self._write(prepared)
        self._now = then
        self._older = False
        if identity != self._on_disk:
            self._identity = self._on_disk = identity
            with contextlib.suppress(OSError):  # the note beside the data is only a hint, written anew at each open
                write_owner(self.path, identity)
        for place in bad:
            self._bad.remove(place)
        for _ in prepared.stale:
            self._stale.popleft()
        if self._quarantine.waiting:
            self._quarantine.written(frozenset((*(entry.key for entry in batch.puts), *batch.drops)))

    def regain_reads(self) -> None:
        """Opens the file anew if it can't even be read as it is; raises like `reopen`. It stays poisoned."""
        if not self._still_sound():
            self._renew()

    def reopen(self) -> None:
        """Lets the file go and opens it again after every check; raises OperatingError when it can't be used, and then
        reads find nothing."""
        self._renew()
        self.poisoned = ""

    def _renew(self) -> None:
        limit = self._env.info()["map_size"]
        self._env.close()
        try:
            env, _ = open_env(self.path, limit, self._identity, known=True)
        except Damage as damage:
            raise OperatingError("E-REPLICA-DAMAGED", f"{self.path}: {damage}", hint="restart the node") from damage
        self._take(env)

    def suspect(self, leaves: Iterable[tuple[int, int]]) -> None:
        """Has these leaves read whole."""
        self._suspect.update(leaves)

    def condemn(self, reason: str) -> None:
        """Makes the next open set this file aside, which a check found damaged. Raises OSError."""
        condemn(self.path, reason)

    def close(self) -> None:
        """Lets the file go. In a forked child nothing is touched: the handles are the parent's."""
        if os.getpid() == self._pid and self._lock >= 0:
            self._env.close()
            self._mark.close()
            os.close(self._lock)
            self._lock = -1

    def _write(self, prepared: replica_commit.Prepared) -> None:
        if self.poisoned:
            raise OperatingError("E-REPLICA-DISK", f"{self.path} must be opened anew: {self.poisoned}")
        try:
            txn = self._env.begin(write=True)
            try:
                replica_commit.apply(TableWrite(txn, self._tables), prepared, self._clock.wall_ms())
                txn.commit()
            except BaseException:
                txn.abort()
                raise
        except lmdb.MapFullError as error:
            used, limit = self.usage()
            message = f"{self.path} uses {used} of at most {limit} bytes"
            raise OperatingError("E-REPLICA-FULL", message, hint="raise the replica's limit") from error
        except lmdb.Error as error:
            needed = sum(len(value) for _, value in prepared.puts)
            raise self._refused(error, needed) from error
        keep_length(self._env, self.path)
        self._mark.write(self._env.info()["last_txnid"])

    def _refused(self, error: lmdb.Error, needed: int) -> OperatingError:
        """What a failed commit means. A disk without room refuses a page before it takes it, and the file is as it was;
        after any other failure nobody knows what the kernel has dropped."""
        sound = self._still_sound()
        if not (sound and no_room(self.path, 2 * needed + limits.replica_room_bytes_min)):
            self.poisoned = str(error)
        hint = "make room on the disk, check its health"
        return OperatingError("E-REPLICA-DISK", f"{self.path}: {error}", definite=sound, hint=hint)

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
            with begin_read(self._env) as txn, txn.cursor(self._tables[ENTRIES_DB]) as cursor:
                if cursor.set_range(start):
                    yield from cursor.iternext()
        except lmdb.Error:
            self.reads_failed += 1

    def records(self) -> Iterator[tuple[bytes, bytes]]:
        """All entries by place as they stand, unchecked."""
        return self._from(b"\0")

    def _rows(
        self, db: bytes, find: Callable[[lmdb.Transaction[bytes], lmdb.Cursor[bytes]], Iterator[T]]
    ) -> Iterator[T]:
        """What `find` yields of an index; ends early like `_from`."""
        try:
            with begin_read(self._env) as txn, txn.cursor(self._tables[db]) as cursor:
                yield from find(txn, cursor)
        except (lmdb.Error, UnicodeDecodeError):
            self.reads_failed += 1

    def _in_place(self, place: bytes, value: bytes) -> ReplicaEntry | None:
        """The entry, if it is one and stands where its key belongs."""
        entry = self._checked(place, value)
        if entry is not None and key_bytes(entry.key) != place:
            self._set_apart(place, MISPLACED)
            return None
        return entry

    def _checked(self, place: bytes, value: bytes) -> ReplicaEntry | None:
        try:
            return entry_of(place, value)
        except (RecordDamaged, RecordTooNew) as error:
            self.damaged_reads += 1
            self._set_apart(place, error.message)
            return None

    def _set_apart(self, place: bytes, why: str) -> None:
        key = place[2:].decode(errors="backslashreplace")
        if key not in self._quarantine.waiting:
            self._bad.append(place)
            self._suspect.add((place[0], place[1]))
        self._quarantine.add(key, why)
