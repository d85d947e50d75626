"""Whether an archive is worth anything: it is restored into a scratch folder, and what came out is examined.

Read to its end, an archive is what was written (`store.archive`). Beyond that: each record of the restored store has
its checksum, facts are dense from the first to the last, no state has an epoch that its shard has not reached, no
consumer is ahead of the log, and the ledger and the totals are what their facts make them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from node.ads.projections import PROJECTIONS
from node.ads.recount import Recount
from node.core import limits
from node.core.clock import SECOND, SystemClock
from node.core.errors import OperatingError
from node.store import port
from node.store.archive import ArchiveReader, ConsumerRow, CounterRow, Manifest, Row, StateRow
from node.store.backup_lmdb import put_in_place, write_new
from node.store.lmdb import LmdbStore
from node.wiring.orders import Checked

Say = Callable[[str], None]
Found = tuple[Manifest | None, int, list[str]]  # manifest, records, problems


def check(archive: Path, scratch: Path | None, say: Say) -> Checked:
    """Raises OperatingError when it can't be told: no such file, no room in the scratch folder."""
    clock = SystemClock()
    try:
        with archive.open("rb") as stream, tempfile.TemporaryDirectory(prefix="store-", dir=scratch) as folder:
            began_ns = clock.mono_ns()
            manifest, records, problems = _check(stream, archive.stat().st_size, Path(folder), say)
            elapsed_s = round((clock.mono_ns() - began_ns) / SECOND, 3)
            return Checked(str(archive), manifest, records, tuple(problems), elapsed_s)
    except OSError as error:
        raise OperatingError("E-FILE", f"{archive}: {error.strerror or error}") from error


def map_bytes(archive_bytes: int) -> int:
    """How large a file of the embedded store may become that holds what an archive of that size does."""
    return min(limits.store_map_bytes + 4 * archive_bytes, limits.store_map_bytes_max)


def _check(stream: BinaryIO, size: int, folder: Path, say: Say) -> Found:
    sight = _Sight()
    try:
        reader = ArchiveReader(stream)
        new = write_new(folder, sight.over(reader.rows()), map_bytes(size), lambda rows: say(f"{rows} rows restored"))
    except OperatingError as error:
        if error.code != "E-BACKUP-DAMAGED":
            raise
        return None, sight.rows, [error.message]
    manifest = reader.manifest
    if manifest is None or sight.identity is None:
        return manifest, sight.rows, ["it does not say which cluster it is of"]
    put_in_place(folder, new, sight.identity, keep_as="")
    store = LmdbStore(folder, SystemClock())
    try:
        records, damaged = _records(store, say)
        problems = [*sight.problems(manifest), *damaged, *_projections(store, say)]
    finally:
        store.close()
    return manifest, records, problems


class _Sight:
    """What rows say together, seen as they pass."""

    def __init__(self) -> None:
        self.rows = 0
        self.identity: port.Identity | None = None
        self._found: list[str] = []
        self._counters: dict[str, int] = {}
        self._epochs: dict[int, int] = {}
        self._consumers: dict[str, int] = {}
        self._last = 0

    def over(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            self.rows += 1
            self._see(row)
            yield row

    def problems(self, manifest: Manifest) -> list[str]:
        """What does not fit; the first of each kind and how many more."""
        found = list(self._found[: limits.verify_problems_max])
        last = self._counters.get("facts", 0)
        if not self._last == last == manifest.last_offset:
            found.append(f"facts end at {self._last}, the log at {last}, the manifest says {manifest.last_offset}")
        if self.identity is not None and self.identity.cluster_id != manifest.cluster_id:
            found.append(f"it is of cluster {self.identity.cluster_id}, the manifest says {manifest.cluster_id}")
        for name, offset in self._consumers.items():
            if offset > last:
                found.append(f"consumer {name} stands at {offset}, the log ends at {last}")
        return found

    def _see(self, row: Row) -> None:
        match row:
            case port.Identity():
                self.identity = row
            case CounterRow(name, value):
                self._counters[name] = value
            case port.ShardRow(shard=shard, epoch=epoch):
                self._epochs[shard] = epoch
            case StateRow(kind, id_, shard, _, epoch) if epoch > self._epochs.get(shard, 0):
                self._found.append(f"{kind}:{id_} has epoch {epoch}, its shard {shard} {self._epochs.get(shard, 0)}")
            case ConsumerRow(name, offset):
                self._consumers[name] = offset
            case port.StoredFact(offset=offset):
                if offset != self._last + 1:
                    self._found.append(f"fact {offset} follows fact {self._last}")
                self._last = offset
            case _:
                pass


def _records(store: LmdbStore, say: Say) -> tuple[int, list[str]]:
    """How many records there are, and those whose checksum is wrong."""
    checked, after = 0, b""
    damaged: list[str] = []
    while True:
        [answer] = store.apply([port.VerifyRecords(after, limits.store_page_records_max)])
        if not isinstance(answer, port.Verified):
            return checked, [*damaged, f"records can't be read: {answer}"]
        checked += answer.checked
        damaged += [f"record {name} is damaged" for name in answer.damaged]
        after = answer.after
        say(f"{checked} records checked")
        if not after:
            return checked, damaged


def _projections(store: LmdbStore, say: Say) -> list[str]:
    """How the ledger and the totals differ from what their facts make them."""
    return [text for name, rule in PROJECTIONS.items() for text in _projection(store, say, name, Recount(rule))]


def _projection(store: LmdbStore, say: Say, name: str, recount: Recount) -> list[str]:
    after = ""
    found: list[str] = []
    while True:
        [rows] = store.apply([port.ListProjection(name, after)])
        if not isinstance(rows, port.ProjectionPage):
            return [*found, f"{name} can't be read: {rows}"]
        while recount.at < rows.offset:
            [page] = store.apply([port.ReadFacts(recount.at, limits.facts_page)])
            if not isinstance(page, port.FactPage) or not page.facts:
                return [*found, f"facts behind {recount.at} can't be read: {page}"]
            recount.add([fact for fact in page.facts if fact.offset <= rows.offset])
            say(f"{recount.at} facts of {rows.offset} counted again for {name}")
        keys = recount.differing(after, {row.key: row.body for row in rows.rows}, end=not rows.more)
        found += [f"{name}'s row {key!r} is not what its facts make it" for key in keys]
        if not rows.more:
            return found
        after = rows.rows[-1].key
