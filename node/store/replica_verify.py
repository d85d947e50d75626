"""`python -m node.store.replica_verify DIRECTORY`: reads a whole replica, also one that a node has open.

A process of its own, since a damaged file can kill whoever reads it: see `node.store.replica_check`, which starts it.
It writes lines of `node.store.replica_report`, the report last. It changes nothing and makes nothing.

Each map is read in one read transaction, so that its entries, digests and counts are of one moment; no transaction is
longer than that, since it keeps the pages of all commits that the node makes meanwhile.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import lmdb
import msgspec
import xxhash

from node.core import limits
from node.core.errors import BadInput, OperatingError
from node.core.hashing import LEAF_COUNT, MAP_COUNT
from node.store import datafile
from node.store.lmdb import header
from node.store.pagewalk import missing_page
from node.store.record import RecordDamaged, RecordTooNew
from node.store.replica_codec import entry_of, key_bytes
from node.store.replica_digest import DIGEST_MASK, fingerprint_of
from node.store.replica_env import TABLES, live_bytes
from node.store.replica_index import INDEX_DBS, INDEXED_FORMAT, rows_of
from node.store.replica_layout import (
    ENTRIES_DB,
    META_DB,
    Damage,
    Get,
    stored_counts,
    stored_digests,
    stored_identity,
)
from node.store.replica_port import MapCount, ReplicaEntry, ReplicaIdentity
from node.store.replica_report import Line, MapFindings, Problem, ProblemKind, ReplicaReport, VerifyProgress

_NICE: Final = 10  # whoever serves goes first
Say = Callable[[VerifyProgress], None]


def verify(path: Path, say: Say) -> ReplicaReport:
    """Checks everything in a replica's directory."""
    check = _Check(path, say)
    complete = False
    try:
        missing = datafile.missing_data(path)
        if missing:
            check.problem("structure", missing)
        else:
            complete = check.run()
    except (lmdb.Error, OSError, Damage, OperatingError) as error:
        check.problem("structure", f"{path / datafile.DATA_NAME}: {error}")
    return check.report(complete=complete)


class _Check:
    def __init__(self, path: Path, say: Say) -> None:
        self._path = path
        self._say = say
        self._problems: list[Problem] = []
        self._found = 0
        self._maps: list[MapFindings] = []
        self._identity = ReplicaIdentity("", "", 0, 0)
        self._checked = self._total = 0
        self._bytes = (0, 0)

    def problem(self, kind: ProblemKind, text: str, map_: int = -1, key: str = "", leaf: int = -1) -> None:
        self._found += 1
        if len(self._problems) < limits.verify_problems_max:
            self._problems.append(Problem(kind, text, map_, key, leaf))

    def report(self, *, complete: bool) -> ReplicaReport:
        identity = self._identity
        return ReplicaReport(
            path=str(self._path),
            complete=complete,
            problems=tuple(self._problems),
            problems_found=self._found,
            cluster_id=identity.cluster_id,
            node=identity.node,
            tenure=identity.tenure,
            format=identity.format,
            file_bytes=self._bytes[0],
            live_bytes=self._bytes[1],
            checked=self._checked,
            maps=tuple(self._maps),
        )

    def run(self) -> bool:
        """Whether it could read to the end."""
        # Nobody may be kept from writing by a check, so no lock is taken beyond a reader's slot.
        with lmdb.open(str(self._path), readonly=True, max_dbs=8, create=False, mode=0o600) as env:
            if datafile.is_short(self._path, header(env)):
                missing = missing_page(self._path / datafile.DATA_NAME, header(env).page_bytes)
                if missing:
                    self.problem("structure", f"{missing}; its header says {header(env).last_page + 1}")
                    return False
            entries, meta = env.open_db(ENTRIES_DB, create=False), env.open_db(META_DB, create=False)
            with env.begin() as txn:
                self._identity = stored_identity(partial(txn.get, db=meta))
            indexed = self._identity.format >= INDEXED_FORMAT
            tables = {name: env.open_db(name, create=False) for name in TABLES} if indexed else {}
            with env.begin() as txn:
                self._total = txn.stat(entries)["entries"]
                live = live_bytes(txn, tables.values() or (entries, meta))
                self._bytes = ((self._path / datafile.DATA_NAME).stat().st_size, live)
            for map_ in range(MAP_COUNT):
                with env.begin() as txn, txn.cursor(entries) as cursor:
                    rows = {name: partial(txn.get, db=tables[name]) for name in INDEX_DBS} if indexed else {}
                    self._map(cursor, partial(txn.get, db=meta), rows, map_)
            with env.begin() as txn, txn.cursor(entries) as cursor:
                if cursor.set_range(bytes((MAP_COUNT,))):
                    self.problem("structure", f"the key {cursor.key()!r} belongs to no map")
        return True

    def _map(self, cursor: lmdb.Cursor[bytes], get: Get, rows: Mapping[bytes, Get], map_: int) -> None:
        leaves = [0] * LEAF_COUNT
        content = keys = size = tombstones = 0
        damaged: Counter[int] = Counter()
        found = cursor.set_range(bytes((map_,)))
        while found and cursor.key()[0] == map_:
            place, value = cursor.item()
            entry = self._entry(place, value, map_)
            if entry is None:
                damaged[place[1] if len(place) > 1 else 0] += 1
            else:
                leaves[place[1]] += fingerprint_of(entry)
                content += xxhash.xxh3_128_intdigest(place + b"\0" + value)
                tombstones += entry.tombstone
                if not entry.tombstone:
                    keys += 1
                    size += len(entry.key) + len(entry.value)
                self._indexed(entry.key, place, value, rows, map_)
            self._count()
            found = cursor.next()
        self._digests(get, map_, leaves, damaged)
        self._counts(get, MapCount(keys, size, tombstones), map_, sound=not damaged)
        digest = f"{sum(leaves) & DIGEST_MASK:032x}"
        self._maps.append(
            MapFindings(map_, keys, size, tombstones, damaged.total(), digest, f"{content & DIGEST_MASK:032x}")
        )

    def _entry(self, place: bytes, value: bytes, map_: int) -> ReplicaEntry | None:
        shown = place[2:].decode(errors="backslashreplace")
        try:
            entry = entry_of(place, value)
            if key_bytes(entry.key) == place:
                return entry
            self.problem("damaged", f"{shown!r} stands where it does not belong", map_, shown, place[1])
        except (RecordDamaged, RecordTooNew, BadInput) as error:
            self.problem("damaged", error.message, map_, shown, place[1])
        return None

    def _indexed(self, key: str, place: bytes, value: bytes, rows: Mapping[bytes, Get], map_: int) -> None:
        for row in rows_of(place, value) if rows else ():
            if rows[row.db](row.key) != row.value:
                self.problem("index", f"{key!r} is not listed in the index {row.db.decode()!r}", map_, key)

    def _count(self) -> None:
        self._checked += 1
        if self._checked % limits.verify_progress_entries == 0:
            self._say(VerifyProgress(self._checked, max(self._total, self._checked), self._found))

    def _digests(self, get: Get, map_: int, leaves: list[int], damaged: Counter[int]) -> None:
        try:
            stored = stored_digests(get, map_)
        except RecordDamaged as error:
            self.problem("damaged", error.message, map_)
            return
        for leaf, total in enumerate(leaves):
            if total & DIGEST_MASK != stored[leaf] and not damaged[leaf]:
                self.problem(
                    "digest", f"the digest of leaf {leaf} of map {map_} contradicts its entries", map_, leaf=leaf
                )

    def _counts(self, get: Get, counted: MapCount, map_: int, *, sound: bool) -> None:
        try:
            stored = stored_counts(get)[map_]
        except RecordDamaged as error:
            self.problem("damaged", error.message, map_)
            return
        if sound and stored.sure and stored != counted:
            self.problem("count", f"map {map_} is counted as {stored}, its entries make {counted}", map_)


def _say(line: Line) -> None:
    sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    os.nice(_NICE)
    _say(verify(Path(sys.argv[1]), _say))
