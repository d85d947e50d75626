"""Answers about the ServeIndex, for `samples`."""

from __future__ import annotations

import msgspec
from sample_words import EARLIER, NASTY, VERSION

from node.admin import protocol as p
from node.admin.protocol.serveindex import KeptReplicaFile
from promovolvectl.client.index_kinds import ServeIndexDump

_KEY = p.KeyItem(
    key="example.com|top",
    map="serve-17",
    bytes=1_024,
    version=VERSION,
    expires_at="2026-11-29T15:00:00.000Z",
    expired=True,
)

SAMPLES: dict[str, msgspec.Struct] = {
    "ServeIndexEntry": p.ServeIndexEntry(
        key="example.com|top",
        map="serve-17",
        shard=3,
        owner=None,
        replicas=(
            p.EntryReplica(
                node="node-1",
                present=True,
                version=VERSION,
                expires_at="2026-11-29T15:00:00.000Z",
                candidates=(
                    p.EntryCandidate(creative="cr-1", campaign="rail", advertiser="acme", category="653", cpm="4.00"),
                ),
            ),
            p.EntryReplica(node="node-2", present=False, version=None, expires_at=None, candidates=()),
        ),
    ),
    "ServeIndexDiff": p.ServeIndexDiff(
        equal=False,
        items=(
            p.DiffItem(
                key=f"example.com|{NASTY}",
                map="serve-17",
                kind="damaged",
                views=(
                    p.DiffView(node="node-1", state="held", version=VERSION, bytes=9, digest="9c1e0a44", wins=True),
                    p.DiffView(node="node-2", state="damaged", version=None, bytes=0, digest="", wins=False),
                ),
            ),
        ),
        total=40,
        replicas=(p.DiffReplica(node="node-1", entries=9, damaged=0, digests_wrong=1),),
    ),
    "ServeIndexDump": ServeIndexDump(
        node="node-1",
        entries_count=1,
        items=(
            p.DumpRow(key=NASTY, map="serve-17", version=VERSION, expires_at=None, removed=False, value=b"\xa1\x00"),
        ),
    ),
    "ServeIndexKeys": p.ServeIndexKeys(items=(_KEY,), node="node-1", total=1),
    "ServeIndexLag": p.ServeIndexLag(
        items=(p.LagItem(from_node="node-1", to=NASTY, entries=3, lag_ms=38_000, reachable=False),), max_lag_ms=38_000
    ),
    "ServeIndexLargest": p.ServeIndexLargest(items=(_KEY,), node="node-1", total=12),
    "ServeIndexPlace": p.ServeIndexPlace(
        key="example.com|top", map="serve-17", leaf=201, shard=3, owner=None, epoch=47
    ),
    "ServeIndexStatus": p.ServeIndexStatus(
        items=(p.MapStatusItem(map="serve-17", keys=3, agree=False, leaves_different=9, tombstones=1, bytes=2_048),),
        replicas=(
            p.ReplicaItem(
                node=NASTY,
                ready=True,
                synchronised_ratio=1.0,
                keys=3,
                bytes=2_048,
                tombstones=1,
                uncommitted=0,
                damaged=1,
                max_lag_ms=38_000,
                commits_count=4,
                degraded=True,
                opened="set_aside",
                opened_why=NASTY,
                opened_at=EARLIER,
                opened_kept=NASTY,
                kept_files=1,
            ),
        ),
        maps_equal=0,
        keys=3,
        tombstones=1,
        oldest_tombstone_ms=2_460_000,
        pending_removals=2,
        max_lag_ms=38_000,
        coverage_ratio=0.983,
        kept=(KeptReplicaFile(node=NASTY, path=NASTY, bytes=2_048, at=EARLIER, remove=NASTY),),
    ),
    "ServeIndexHistory": p.ServeIndexHistory(
        key=NASTY,
        items=(
            p.HistoryItem(
                node="node-1", version=VERSION, what="removed", bytes=0, expires_at=None, at=EARLIER, source="node-2"
            ),
        ),
        removal=p.RemovalCertificate(
            key=NASTY,
            version=VERSION,
            node="node-1",
            asked_at=EARLIER,
            asked_by=NASTY,
            roster_version=4,
            required=2,
            available=1,
            held=(p.RemovalHeld(node="node-1", tenure=1, durable_at=EARLIER),),
            majority_at=None,
            last_serve_at=None,
        ),
    ),
    "ServeIndexPending": p.ServeIndexPending(
        items=(
            p.PendingRemoval(
                id="47.123456.node-1.example.com|top",
                key="example.com|top",
                node="node-1",
                version=VERSION,
                asked_at=EARLIER,
                asked_by=NASTY,
                attempts=7,
                required=2,
                available=1,
                held_by=("node-1",),
                awaited=("node-2", "node-3"),
                refused=(p.RemovalRefused(node="node-2", reason=NASTY),),
                next_ms=5_000,
            ),
        ),
        total=1,
    ),
    "ServeIndexTombstones": p.ServeIndexTombstones(
        items=(
            p.TombstoneItem(
                key=NASTY,
                map="serve-17",
                version=VERSION,
                removed_at=EARLIER,
                age_ms=90_000,
                caretaker="node-1",
                awaited=("node-2",),
            ),
        ),
        total=3,
        min_age_ms=3_600_000,
        not_settling=(p.NotSettling(node="node-1", reason=NASTY),),
    ),
    "ServeIndexRoster": p.ServeIndexRoster(
        version=4,
        required=2,
        available=1,
        items=(
            p.RosterItem(
                node="node-1",
                counts=True,
                tenure=2,
                since=EARLIER,
                cause=NASTY,
                member="up",
                reachable=True,
                phase="complete",
                progress_ratio=1.0,
            ),
        ),
    ),
    "ServeIndexVerify": p.ServeIndexVerify(
        sound=False,
        items=(
            p.VerifyItem(
                node="node-1",
                state="done",
                sound=False,
                checked=12,
                total=12,
                entries_per_s=80_000.0,
                problems_found=1,
                problems=(p.FileProblem(kind="damaged", text=NASTY, map="serve-17", key="example.com|top"),),
                complete=True,
                file_bytes=1 << 20,
                live_bytes=1 << 19,
                elapsed_s=0.4,
            ),
        ),
    ),
    "ServeIndexMaps": p.ServeIndexMaps(
        items=(
            p.MapItem(
                map="serve-00",
                keys=3,
                bytes=2048,
                tombstones=0,
                agree=True,
                replicas=(p.MapReplica(node="node-1", digest="9c1e", keys=3, lag_ms=2),),
            ),
        )
    ),
}
