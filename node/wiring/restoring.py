"""A restore: an archive becomes a store again, in the place of what was there or where nothing was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb

from node.core.clock import SECOND, SystemClock, rfc3339
from node.core.errors import OperatingError
from node.core.faultpoints import reach
from node.store import backup_lmdb, backup_postgres, datafile, look_lmdb, look_postgres, port
from node.store.archive import ArchiveReader, Manifest, Row
from node.store.occupancy import Occupancy
from node.store.postgres import PostgresOptions
from node.store.rebirth import reborn
from node.wiring.archive_check import map_bytes
from node.wiring.orders import Restored, Surveyed
from node.wiring.store_place import Found

Say = Callable[[str], None]


class _Reading:
    """The rows of an archive as they are restored; at their end `manifest` and `identity` are known."""

    def __init__(self, archive: Path, say: Say) -> None:
        self._archive = archive
        self._say = say
        self.manifest: Manifest | None = None
        self.identity: port.Identity | None = None

    def rows(self) -> Iterator[Row]:
        try:
            with self._archive.open("rb") as stream:
                reader = ArchiveReader(stream)
                for number, row in enumerate(reborn(reader.rows()), 1):
                    if isinstance(row, port.Identity):
                        self.identity = row
                    if number % 1_000 == 0:
                        self._say(f"{number} rows read")
                    yield row
                self.manifest = reader.manifest
        except OSError as error:
            raise OperatingError("E-FILE", f"{self._archive}: {error.strerror or error}") from error

    def known(self) -> tuple[Manifest, port.Identity]:
        """Raises OperatingError for an archive of nobody's."""
        if self.manifest is None or self.identity is None:
            raise OperatingError("E-BACKUP-DAMAGED", f"{self._archive} does not say which cluster it is of")
        return self.manifest, self.identity


def survey(found: Found, archive: Path | None, say: Say) -> Surveyed:
    """What a restore would meet; the whole archive is read. Raises OperatingError for one that is damaged."""
    manifest: Manifest | None = None
    if archive is not None:
        reading = _Reading(archive, say)
        for _ in reading.rows():
            pass
        manifest, _ = reading.known()
    if found.postgres is not None:
        return asyncio.run(_survey_postgres(found, found.postgres, manifest))
    path = _folder(found)
    if datafile.missing_data(path):
        return Surveyed(found.words, manifest)
    try:
        Occupancy(path, alone=True).close()
    except OperatingError as error:
        return Surveyed(found.words, manifest, (error.message,), "unknown")
    try:
        identity, facts = look_lmdb.whose(path)
    except OperatingError as error:
        return Surveyed(found.words, manifest, (), f"unreadable: {error.message}")
    return Surveyed(found.words, manifest, (), identity.cluster_name, facts)


def restore(found: Found, archive: Path, *, replace: bool, say: Say) -> Restored:
    """Raises OperatingError `E-STORE-LIVE`, `E-STORE-NOT-EMPTY`, `E-BACKUP-DAMAGED`, and what the disk or the server
    refuses; everything is as it was then."""
    clock = SystemClock()
    began_ns = clock.mono_ns()
    moment = rfc3339(clock.wall_ms())[:19].translate({ord(char): None for char in "-:"}).lower()
    reading = _Reading(archive, say)
    if found.postgres is not None:
        kept = asyncio.run(_into_postgres(found.postgres, reading, moment, replace=replace))
    else:
        kept = _into_lmdb(_folder(found), reading, archive, moment, replace=replace, say=say)
    manifest, _ = reading.known()
    return Restored(found.words, manifest, kept, round((clock.mono_ns() - began_ns) / SECOND, 3))


def _into_lmdb(path: Path, reading: _Reading, archive: Path, moment: str, *, replace: bool, say: Say) -> str:
    datafile.prepare_dir(path)
    with Occupancy(path, alone=True):
        if not replace and (path / datafile.DATA_NAME).exists():
            raise _not_empty(str(path))
        new = path / backup_lmdb.NEW_NAME
        try:
            size = map_bytes(archive.stat().st_size)
            backup_lmdb.write_new(path, reading.rows(), size, lambda rows: say(f"{rows} rows written"))
            _, identity = reading.known()
            reach("restore.written")
            kept = backup_lmdb.put_in_place(path, new, identity, f"{datafile.DATA_NAME}.before-{moment}")
            reach("restore.replaced")
        except (OSError, lmdb.Error) as error:
            raise OperatingError("E-STORE-DISK", f"{path}: {error}", hint="check the disk's room and health") from error
        finally:
            new.unlink(missing_ok=True)
        return str(kept or "")


async def _into_postgres(options: PostgresOptions, reading: _Reading, moment: str, *, replace: bool) -> str:
    kept = f"{options.schema[:40]}_before_{moment}"

    def rows() -> Iterator[Row]:
        yield from reading.rows()
        reading.known()

    async with backup_postgres.connected(options) as connection:
        users = await backup_postgres.live_leases(connection, options.schema)
        if users:
            raise OperatingError(
                "E-STORE-LIVE",
                f"schema {options.schema!r} is in use: " + ", ".join(f"{who} holds {what}" for what, who in users),
                hint="stop its nodes; what they hold ends by itself within seconds",
            )
        if not replace and await backup_postgres.exists(connection, options.schema):
            raise _not_empty(f"schema {options.schema!r}")
        there = await backup_postgres.write_new(connection, options.schema, rows(), kept)
        reach("restore.replaced")
        return kept if there else ""


async def _survey_postgres(found: Found, options: PostgresOptions, manifest: Manifest | None) -> Surveyed:
    async with backup_postgres.connected(options) as connection:
        if not await backup_postgres.exists(connection, options.schema):
            return Surveyed(found.words, manifest)
        users = await backup_postgres.live_leases(connection, options.schema)
        words = tuple(f"{who} holds {what}" for what, who in users)
        try:
            look = await look_postgres.look_postgres(connection, options.schema)
        except OperatingError as error:
            return Surveyed(found.words, manifest, words, f"unreadable: {error.message}")
        return Surveyed(found.words, manifest, words, look.cluster_name, look.facts)


def _folder(found: Found) -> Path:
    if found.path is None:
        raise OperatingError("E-CONFIG", "store.path: kind 'lmdb' needs a path")
    return found.path


def _not_empty(place: str) -> OperatingError:
    return OperatingError(
        "E-STORE-NOT-EMPTY",
        f"{place} holds a store already; --force existing-store puts it aside, under another name",
        hint="--force existing-store",
    )
