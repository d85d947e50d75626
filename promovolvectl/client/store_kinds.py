"""Answers about the state store."""

from __future__ import annotations

import msgspec


class BackupPart(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of record in a backup; `digest` is a BLAKE2 of its bytes."""

    part: str
    rows_count: int
    bytes: int
    digest: str


class BackupInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup says of itself. It shows the store as it was at `taken_at`, up to the fact `last_offset`."""

    cluster_name: str
    cluster_id: str
    store_kind: str
    store_format: int
    archive_format: int
    release: str
    taken_at: str
    last_offset: int
    placement_version: int
    parts: tuple[BackupPart, ...]


class StoreBackup(msgspec.Struct, frozen=True, kw_only=True):
    archive: str
    bytes: int
    elapsed_s: float
    backup: BackupInfo


class DamagedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`record` is empty where no single one is at fault; `text` says what is wrong."""

    record: str
    text: str = ""


class StoreVerify(msgspec.Struct, frozen=True, kw_only=True):
    """`checked` counts all records read, the damaged ones included. `backup`: what was verified is a backup that could
    be read to its end; else null."""

    path: str
    checked: int
    damaged: tuple[DamagedRecord, ...]
    backup: BackupInfo | None = None


class StoreRestore(msgspec.Struct, frozen=True, kw_only=True):
    """`kept`: where that is which was in the place before; empty when nothing was."""

    place: str
    archive: str
    kept: str
    elapsed_s: float
    backup: BackupInfo
    changed: bool = True


class StoreCompact(msgspec.Struct, frozen=True, kw_only=True):
    """`changed` false: there was nothing to give back."""

    path: str
    bytes_before: int
    bytes_after: int
    changed: bool


class StoreSession(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who uses the store. `reads_since_commits`: how many commits ago the snapshot is that it reads, null when
    it reads none; `busy_ms`: how long its transaction lasts, null where that is not known; `waits`: for a lock."""

    name: str
    pid: int
    reads_since_commits: int | None
    busy_ms: int | None
    waits: bool


class LastBackup(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    taken_at: str
    last_offset: int


class StoreStatus(msgspec.Struct, frozen=True, kw_only=True):
    """`limit_bytes` null: the server's disk is the limit. `writer_waits_ms`: how long a writer waited for its turn just
    now; it gave up when `writer_blocked`. `last_backup`: null when none is known here."""

    store_kind: str
    place: str
    store_of: str
    used_bytes: int
    limit_bytes: int | None
    file_bytes: int
    facts_count: int
    placement_version: int
    writer_waits_ms: float
    writer_blocked: bool
    last_backup: LastBackup | None
    sessions: tuple[StoreSession, ...]


class StoreLease(msgspec.Struct, frozen=True, kw_only=True):
    """`held` false: nobody holds it, `holder` was the last."""

    lease: str
    holder: str
    held: bool
    term: int
    left_ms: int


class StoreLeases(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[StoreLease, ...]
