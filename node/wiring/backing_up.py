"""A backup: one snapshot of the store, row by row into an archive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from node.core import limits
from node.core.clock import SECOND, SystemClock
from node.core.errors import OperatingError
from node.store import backup_lmdb, backup_postgres, look_lmdb, port
from node.store.archive import ARCHIVE_FORMAT, ArchiveWriter, CounterRow, Manifest, Row
from node.store.archive_file import ArchiveFile, archive_file
from node.store.lmdb_layout import FORMAT
from node.store.postgres import PostgresOptions
from node.store.postgres_schema import MIGRATIONS
from node.wiring.description import VERSION
from node.wiring.orders import BackedUp
from node.wiring.store_place import Found

Say = Callable[[str], None]
_LOOK_EVERY_ROWS = 1_000


def back_up(found: Found, to: Path, say: Say) -> BackedUp:
    """Raises OperatingError; nothing is left then."""
    clock = SystemClock()
    began_ns = clock.mono_ns()
    with archive_file(to) as file:
        backup = _Backup(file, clock, say)
        if found.postgres is None:
            if found.path is None:
                raise OperatingError("E-CONFIG", "store.path: kind 'lmdb' needs a path")
            for row in backup_lmdb.rows_of(found.path, found.roster):
                backup.add(row)
        else:
            asyncio.run(_of_postgres(found.postgres, found.roster, backup))
        kind, form = ("lmdb", FORMAT) if found.postgres is None else ("postgres", len(MIGRATIONS))
        archive, manifest = backup.end(kind, form)
        size = archive.stat().st_size
    if found.path is not None:
        look_lmdb.note_backup(found.path, archive, manifest)
    return BackedUp(str(archive), size, manifest, round((clock.mono_ns() - began_ns) / SECOND, 3))


async def _of_postgres(options: PostgresOptions, roster: str, backup: _Backup) -> None:
    async with backup_postgres.connected(options) as connection:
        async for row in backup_postgres.rows_of(connection, options.schema, roster):
            backup.add(row)


class _Backup:
    """One archive in the making."""

    def __init__(self, file: ArchiveFile, clock: SystemClock, say: Say) -> None:
        self._file = file
        self._clock = clock
        self._say = say
        self._writer = ArchiveWriter(file.stream)
        self._taken_at_ms = clock.wall_ms()
        self._late_ns = clock.mono_ns() + limits.backup_snapshot_s_max * SECOND
        self._identity: port.Identity | None = None
        self._counters: dict[str, int] = {}

    def add(self, row: Row) -> None:
        match row:
            case port.Identity():
                self._identity = row
            case CounterRow(name, value):
                self._counters[name] = value
            case _:
                pass
        self._writer.add(row)
        if self._writer.rows % _LOOK_EVERY_ROWS == 0:
            self._look()

    def end(self, kind: str, form: int) -> tuple[Path, Manifest]:
        """The file, under its name for good."""
        if self._identity is None:
            raise OperatingError("E-NOT-FOUND", "the store does not say whose it is")
        manifest = self._writer.end(
            Manifest(
                ARCHIVE_FORMAT,
                self._identity.cluster_id,
                self._identity.cluster_name,
                kind,
                form,
                VERSION,
                self._taken_at_ms,
                self._counters.get("facts", 0),
                self._counters.get("placement", 0),
            )
        )
        return self._file.keep(manifest.cluster_name, self._taken_at_ms), manifest

    def _look(self) -> None:
        facts = self._counters.get("facts", 0)
        self._say(f"{self._writer.rows} rows, {self._writer.bytes} bytes; {facts} facts in all")
        if self._clock.mono_ns() > self._late_ns:
            raise OperatingError(
                "E-BACKUP-LATE",
                f"reading the store took more than {limits.backup_snapshot_s_max} s: the store keeps what is replaced "
                "meanwhile, so the backup was given up",
                hint="write to a faster disk",
            )
