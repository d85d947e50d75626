"""A replica's directory: who has it open, whose it is, and setting a damaged file aside."""

from __future__ import annotations

import fcntl
import os
import resource
from pathlib import Path
from typing import Final

import msgspec

from node.core.clock import Clock, rfc3339
from node.core.errors import OperatingError
from node.store import datafile
from node.store.replica_layout import FORMAT, Damage
from node.store.replica_port import ReplicaIdentity

NOTE_NAME: Final = "identity.json"
PID_NAME: Final = "pid"
CONDEMNED_NAME: Final = "condemned.json"


class Condemned(msgspec.Struct, frozen=True):
    """Why a file is not to be used again: a check found it damaged while its node ran."""

    reason: str


def lock_replica(path: Path) -> int:
    """Takes the directory for this process until the returned handle is closed; raises OperatingError naming the
    process that has it. The lock is the kernel's, so that it ends with its process however that ends."""
    try:
        handle = os.open(path / PID_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise datafile.path_error(path / PID_NAME, error) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError as error:
        holder = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(handle)
        raise OperatingError(
            "E-REPLICA-IN-USE", f"{path} is open in process {holder}", hint="stop that process first"
        ) from error
    except OSError as error:
        os.close(handle)
        raise datafile.path_error(path / PID_NAME, error) from error
    return handle


def known_owner(path: Path, wanted: ReplicaIdentity) -> bool:
    """Whether the directory is known to hold this owner's data; raises Damage when it is and the data is not there,
    OperatingError when it is another's. A note that can't be read says only that there was one: the data decides."""
    try:
        note = datafile.read_note(path, NOTE_NAME, ReplicaIdentity)
    except OperatingError:
        note = wanted
    if note is None:
        return False
    check_owner(path, note, wanted)
    missing = datafile.missing_data(path)
    if missing:
        raise Damage(missing)
    return True


def check_owner(path: Path, found: ReplicaIdentity, wanted: ReplicaIdentity) -> None:
    """Refuses, with OperatingError, the replica of another cluster or node, or of a later release."""
    if found.format > FORMAT:
        raise OperatingError(
            "E-NEWER-FORMAT",
            f"{path} has format {found.format}, this release reads {FORMAT}",
            hint="run the release that wrote it, or a later one",
        )
    if (found.cluster_id, found.node) != (wanted.cluster_id, wanted.node):
        raise OperatingError(
            "E-OTHER-CLUSTER",
            f"{path} is the replica of node {found.node} of cluster {found.cluster_id},"
            f" not of node {wanted.node} of cluster {wanted.cluster_id}",
            hint="give each node its own data directory",
        )


def write_owner(path: Path, identity: ReplicaIdentity) -> None:
    """Remembers beside the data whose it is. Raises OSError."""
    try:
        if datafile.read_note(path, NOTE_NAME, ReplicaIdentity) == identity:
            return
    except OperatingError:
        pass  # it can't be read: it is replaced
    datafile.write_note(path, NOTE_NAME, identity)


def condemn(path: Path, reason: str) -> None:
    """Makes the next open set the file aside. Raises OSError."""
    datafile.write_note(path, CONDEMNED_NAME, Condemned(reason))


def condemned(path: Path) -> None:
    """Raises Damage when the file was condemned while it was open."""
    try:
        note = datafile.read_note(path, CONDEMNED_NAME, Condemned)
    except OperatingError as error:
        raise Damage(error.message) from error
    if note is not None:
        raise Damage(note.reason)


def set_aside(path: Path, clock: Clock) -> str:
    """Renames the data file, and the notes with it, to dated names; the data's new path, empty when it was missing."""
    data, notes = path / datafile.DATA_NAME, [path / NOTE_NAME, path / CONDEMNED_NAME]
    aside = dated(data, "damaged", clock)
    suffix = aside.name.removeprefix(datafile.DATA_NAME)
    try:
        kept = [file.rename(file.with_name(file.name + suffix)) for file in (data, *notes) if file.exists()]
        datafile.sync_dir(path)
    except OSError as error:
        raise datafile.path_error(path, error) from error
    return str(aside) if aside in kept else ""


def dated(data: Path, why: str, clock: Clock) -> Path:
    """A name beside the data file, which nothing has yet, for a file that is kept."""
    stamp = rfc3339(clock.wall_ms()).replace(":", "").replace(".", "")
    number, suffix = 0, f"{why}-{stamp}"
    while any(file.with_name(f"{file.name}.{suffix}").exists() for file in (data, data.with_name(NOTE_NAME))):
        number += 1
        suffix = f"{why}-{stamp}-{number}"
    return data.with_name(f"{data.name}.{suffix}")


def room_bytes(path: Path) -> int:
    """What the disk still takes; 0 when it does not say."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return 0
    return disk.f_bavail * disk.f_frsize


def no_room(path: Path, needed: int) -> bool:
    """Whether a write that failed had too little room: on the disk, or below this process's limit for a file."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        size = (path / datafile.DATA_NAME).stat().st_size
    except OSError:
        return False
    return room_bytes(path) < needed or (limit != resource.RLIM_INFINITY and limit < size + needed)


def oldest_reader(table: str, last_txn: int) -> tuple[int, int]:
    """Of LMDB's table of readers (a head, then lines of process, thread, transaction or `-`): the process of the oldest
    read still open, and how many commits were made since it began; zeros when none is open."""
    rows = (line.split() for line in table.splitlines()[1:])
    reads = [(int(row[2]), int(row[0])) for row in rows if len(row) == 3 and row[2].isdigit()]
    if not reads:
        return 0, 0
    txn, pid = min(reads)
    return pid, max(0, last_txn - txn)
