"""What an operator may ask of a store beside its nodes: how large it is, who uses it, who holds which lease."""

from __future__ import annotations

from typing import Final

import msgspec

BACKUP_NOTE: Final = "last-backup.json"


class LastBackup(msgspec.Struct, frozen=True):
    """Kept beside the embedded store by whoever has made the newest one."""

    path: str
    taken_at_ms: int
    last_offset: int


class Session(msgspec.Struct, frozen=True):
    """Somebody who uses the store. `reads_since_commits`: how many commits ago the snapshot is that it reads (its pages
    are kept), -1 when it reads none; `busy_ms`: how long its transaction lasts, -1 where that is not known; `waits`:
    for a lock of another."""

    name: str
    pid: int
    reads_since_commits: int = -1
    busy_ms: int = -1
    waits: bool = False


class Look(msgspec.Struct, frozen=True):
    """`limit_bytes` 0: the server's disk is the limit. `writer_waits_ms`: how long a writer waited for its turn just
    now; it gave up when `writer_blocked`."""

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
    writer_waits_ms: float = 0.0
    writer_blocked: bool = False
    last_backup: LastBackup | None = None


class HeldLease(msgspec.Struct, frozen=True):
    """`left_ms` 0: nobody holds it, `holder` was the last."""

    name: str
    holder: str
    term: int
    left_ms: int
