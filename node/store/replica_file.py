"""A replica's directory: who has it open, whose it is, and setting a damaged file aside."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final, Literal

import msgspec

from node.core.clock import Clock, rfc3339
from node.core.errors import OperatingError
from node.store import datafile
from node.store.replica_layout import Damage
from node.store.replica_port import ReplicaIdentity

FORMAT: Final = 1
NOTE_NAME: Final = "identity.json"
PID_NAME: Final = "pid"


class Opening(msgspec.Struct, frozen=True):
    """How an open went: `fresh` (there was nothing), `reused`, or `set_aside` with the reason and the file's new
    path; a replica that is not `reused` is empty and is streamed from a peer."""

    how: Literal["fresh", "reused", "set_aside"]
    reason: str = ""
    path: str = ""


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


def set_aside(path: Path, clock: Clock) -> str:
    """Renames the data file, and the note with it, to dated names; the data's new path, empty when it was missing."""
    stamp = rfc3339(clock.wall_ms()).replace(":", "").replace(".", "")
    data, note = path / datafile.DATA_NAME, path / NOTE_NAME
    number, suffix = 0, f"damaged-{stamp}"
    while any(file.with_name(f"{file.name}.{suffix}").exists() for file in (data, note)):
        number += 1
        suffix = f"damaged-{stamp}-{number}"
    try:
        kept = [file.rename(file.with_name(f"{file.name}.{suffix}")) for file in (data, note) if file.exists()]
        datafile.sync_dir(path)
    except OSError as error:
        raise datafile.path_error(path, error) from error
    return next((str(file) for file in kept if file.name.startswith(datafile.DATA_NAME)), "")
