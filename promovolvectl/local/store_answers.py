"""What the process that works on a store found, as answers; and the plans of what it is to do."""

from __future__ import annotations

from collections.abc import Sequence

from node.admin.protocol import Plan
from node.core.clock import rfc3339
from promovolvectl.client.store_kinds import (
    DamagedRecord,
    LastBackup,
    StoreBackup,
    StoreCompact,
    StoreLease,
    StoreLeases,
    StoreRestore,
    StoreSession,
    StoreStatus,
    StoreVerify,
)
from promovolvectl.local import storekeeper as keeper


def status(look: keeper.Look) -> StoreStatus:
    last = look.last_backup
    return StoreStatus(
        store_kind=look.kind,
        place=look.place,
        store_of=f"{look.cluster_name} ({look.cluster_id})",
        used_bytes=look.used_bytes,
        limit_bytes=look.limit_bytes or None,
        file_bytes=look.file_bytes,
        facts_count=look.facts,
        placement_version=look.placement_version,
        writer_waits_ms=look.writer_waits_ms,
        writer_blocked=look.writer_blocked,
        last_backup=LastBackup(path=last.path, taken_at=rfc3339(last.taken_at_ms), last_offset=last.last_offset)
        if last is not None
        else None,
        sessions=tuple(
            StoreSession(
                name=one.name,
                pid=one.pid,
                reads_since_commits=one.reads_since_commits if one.reads_since_commits >= 0 else None,
                busy_ms=one.busy_ms if one.busy_ms >= 0 else None,
                waits=one.waits,
            )
            for one in look.sessions
        ),
    )


def leases(found: Sequence[keeper.Lease]) -> StoreLeases:
    return StoreLeases(
        items=tuple(
            StoreLease(lease=one.name, holder=one.holder, held=one.left_ms > 0, term=one.term, left_ms=one.left_ms)
            for one in found
        )
    )


def verified(found: keeper.Checked) -> StoreVerify:
    return StoreVerify(
        path=found.archive,
        checked=found.records,
        damaged=tuple(DamagedRecord(record="", text=text) for text in found.problems),
        backup=found.manifest.info() if found.manifest is not None else None,
    )


def backed_up(made: keeper.BackedUp) -> StoreBackup:
    return StoreBackup(archive=made.archive, bytes=made.bytes, elapsed_s=made.elapsed_s, backup=made.manifest.info())


def restored(archive: str, made: keeper.Restored) -> StoreRestore:
    return StoreRestore(
        place=made.place, archive=archive, kept=made.kept, elapsed_s=made.elapsed_s, backup=made.manifest.info()
    )


def compacted(made: keeper.Compacted) -> StoreCompact:
    return StoreCompact(
        path=made.place,
        bytes_before=made.bytes_before,
        bytes_after=made.bytes_after,
        changed=made.bytes_after != made.bytes_before,
    )


def restore_plan(archive: str, met: keeper.Surveyed, *, overridden: bool) -> Plan:
    """What a restore would do. A store that is there stands in its way unless that is `overridden`; users always do."""
    violations = list(met.users)
    notes = []
    if met.manifest is not None:
        taken = rfc3339(met.manifest.taken_at_ms)
        notes.append(
            f"the backup is of cluster {met.manifest.cluster_name} ({met.manifest.cluster_id}), taken {taken}, "
            f"up to fact {met.manifest.last_offset}; what was acknowledged later is lost"
        )
    if met.there:
        held = f"{met.place} holds the store of {met.there}, with {met.facts} facts"
        if overridden:
            notes.append(f"{held}; it is put aside under another name")
        elif not met.users:
            violations.append(held)
    notes.append("epochs, terms and starts jump ahead; every shard gets a new owner when nodes start")
    return Plan(
        id="",
        verb="store restore",
        target=met.place,
        base_version=met.manifest.placement_version if met.manifest is not None else 0,
        moves=(),
        violations=tuple(violations),
        overridden=("existing-store",) if overridden and met.there else (),
        notes=tuple(notes),
    )


def name_of(met: keeper.Surveyed) -> str:
    """What has to be typed before the store in that place is put aside: whose the backup is."""
    return met.manifest.cluster_name if met.manifest is not None else met.there


def compact_plan(met: keeper.Surveyed) -> Plan:
    """What a compaction would do: users stand in its way."""
    return Plan(
        id="",
        verb="store compact",
        target=met.place,
        base_version=0,
        moves=(),
        violations=met.users,
        notes=("a copy without gaps takes the file's place",),
    )
