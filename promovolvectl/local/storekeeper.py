"""Orders to a process that works on the state store itself: no part of this program loads one."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from node.core.clock import rfc3339
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.store_kinds import BackupInfo, BackupPart
from promovolvectl.local.layout import node_file, read, roster_file, store_dir
from promovolvectl.local.store_check import death

Say = Callable[[str], None]
_MODULE = "node.wiring.storekeeper"
_STATUS = {
    "E-NOT-FOUND": ExitStatus.NOT_FOUND,
    "E-EXISTS": ExitStatus.CONFLICT,
    "E-STORE-REPLACED": ExitStatus.CONFLICT,
    "E-STORE-LIVE": ExitStatus.REFUSED,
    "E-STORE-NOT-EMPTY": ExitStatus.REFUSED,
    "E-NO-COMPACTION": ExitStatus.REFUSED,
    "E-NEWER-FORMAT": ExitStatus.MISMATCH,
    "E-CONFIG": ExitStatus.UNUSABLE_CONFIG,
    "E-DSN-FILE": ExitStatus.UNUSABLE_CONFIG,
    "E-STORE-DENIED": ExitStatus.UNUSABLE_CONFIG,
    "E-FILE": ExitStatus.LOCAL_FILE,
    "E-STORE-PATH": ExitStatus.LOCAL_FILE,
    "E-BACKUP-DAMAGED": ExitStatus.LOCAL_FILE,
}


class Place(msgspec.Struct, frozen=True):
    """Where the store is: its folder and the roster, or a node's file of settings."""

    path: str = ""
    roster: str = ""
    settings: str = ""


class Part(msgspec.Struct, frozen=True):
    part: str
    rows: int
    bytes: int
    digest: str


class Manifest(msgspec.Struct, frozen=True):
    """See `node.store.archive`."""

    format: int
    cluster_id: str
    cluster_name: str
    store_kind: str
    store_format: int
    release: str
    taken_at_ms: int
    last_offset: int
    placement_version: int
    parts: tuple[Part, ...] = ()

    def info(self) -> BackupInfo:
        """The same for people and scripts."""
        return BackupInfo(
            cluster_name=self.cluster_name,
            cluster_id=self.cluster_id,
            store_kind=self.store_kind,
            store_format=self.store_format,
            archive_format=self.format,
            release=self.release,
            taken_at=rfc3339(self.taken_at_ms),
            last_offset=self.last_offset,
            placement_version=self.placement_version,
            parts=tuple(
                BackupPart(part=one.part, rows_count=one.rows, bytes=one.bytes, digest=one.digest) for one in self.parts
            ),
        )


class BackedUp(msgspec.Struct, frozen=True):
    archive: str
    bytes: int
    manifest: Manifest
    elapsed_s: float


class Checked(msgspec.Struct, frozen=True):
    archive: str
    manifest: Manifest | None
    records: int
    problems: tuple[str, ...]


class Surveyed(msgspec.Struct, frozen=True):
    """`there`: the name of the cluster whose store is in the place, empty when nothing is."""

    place: str
    manifest: Manifest | None
    users: tuple[str, ...]
    there: str
    facts: int


class Restored(msgspec.Struct, frozen=True):
    place: str
    manifest: Manifest
    kept: str
    elapsed_s: float


class Compacted(msgspec.Struct, frozen=True):
    place: str
    bytes_before: int
    bytes_after: int


class Session(msgspec.Struct, frozen=True):
    name: str
    pid: int
    reads_since_commits: int
    busy_ms: int
    waits: bool


class LastBackup(msgspec.Struct, frozen=True):
    path: str
    taken_at_ms: int
    last_offset: int


class Look(msgspec.Struct, frozen=True):
    kind: str
    place: str
    cluster_id: str
    cluster_name: str
    used_bytes: int
    limit_bytes: int
    file_bytes: int
    facts: int
    placement_version: int
    sessions: tuple[Session, ...]
    writer_waits_ms: float
    writer_blocked: bool
    last_backup: LastBackup | None


class Status(msgspec.Struct, frozen=True):
    look: Look


class Lease(msgspec.Struct, frozen=True):
    name: str
    holder: str
    term: int
    left_ms: int


class Leases(msgspec.Struct, frozen=True):
    items: tuple[Lease, ...]


class _Line(msgspec.Struct, frozen=True):
    """Any line of the other process, as far as it says how it goes."""

    type: str
    text: str = ""
    code: str = ""
    message: str = ""
    hint: str = ""


Answer = TypeVar("Answer", bound=msgspec.Struct)


def place_in(folder: Path) -> Place:
    """The store of the cluster whose data lie in a folder, or of one that is to be there; raises CommandFailed (16)."""
    layout = read(folder)
    if layout is not None and (settings := node_file(folder, layout.nodes[0].name)).is_file():
        return Place(settings=str(settings))
    return Place(path=str(store_dir(folder)), roster=str(roster_file(folder)))


def renew(place: Place, folder: Path, say: Say) -> None:
    """Makes the store that is there one of its own, which nobody who used it, or what it was copied from, can write to:
    what a backup and its restore do. The file of before is kept under another name. Raises CommandFailed."""
    made = order("backup", BackedUp, say, place=place, to=str(folder))
    done = order("restore", Restored, say, archive=made.archive, place=place, replace=True)
    Path(made.archive).unlink()
    say(f"{done.place} goes on as new; what was there is kept as {done.kept}")


def order(what: str, answer: type[Answer], say: Say, **about: Any) -> Answer:
    """Carries an order out and returns its result; raises CommandFailed. `say` hears of progress."""
    document = msgspec.json.encode({"type": what, **about})
    command = [sys.executable, "-m", _MODULE]
    last, line = b"", _Line("")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("pipes were asked for")
        try:
            process.stdin.write(document)
            process.stdin.close()
            for last in process.stdout:
                line = msgspec.json.decode(last, type=_Line)
                if line.type == "progress":
                    say(f"  {line.text}")
        except BaseException:
            process.send_signal(signal.SIGTERM)  # it clears away what it has begun
            raise
    if line.type == what:
        return msgspec.json.decode(last, type=answer)
    if line.type != "failure":
        line = _Line("failure", code="E-STORE", message=f"the {what} did not end: {death(process.returncode)}")
    raise CommandFailed(_STATUS.get(line.code, ExitStatus.FAILED), line.code, line.message, hint=line.hint)
