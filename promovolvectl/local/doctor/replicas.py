"""What is wrong with the replicas of the ServeIndex, out of what the nodes said. Pure."""

from __future__ import annotations

from typing import Final

from promovolvectl.client.doctor_kinds import Finding
from promovolvectl.local.doctor.checks import finding
from promovolvectl.local.doctor.gathering import Gathered, counters

USED_MUCH: Final = 0.8
USED_UP: Final = 0.95
ROOM_LOW_BYTES: Final = 256 << 20
BEHIND_COMMITS: Final = 1_000


def replica_rows(found: Gathered) -> list[Finding]:
    return [*_state(found), *_room(found), *_readers(found)]


def _state(found: Gathered) -> list[Finding]:
    if found.index is None:
        text = found.problems.get("index", "nobody said")
        return [finding("replica.state", "serveindex", "unknown", text, "promovolvectl serveindex status")]
    rows = []
    for item in found.index.replicas:
        wrong = [
            word
            for holds, word in (
                (not item.ready, f"synchronising, {item.synchronised_ratio:.0%} done"),
                (item.degraded, "degraded: what it takes is not on disk"),
                (item.damaged > 0, f"{item.damaged} damaged entries wait to be fetched again"),
            )
            if holds
        ]
        if wrong:
            fix = f"promovolvectl serveindex verify {item.node}"
            rows.append(finding("replica.state", item.node, "fail", "; ".join(wrong), fix))
    for name, show in sorted(found.shows.items()):
        set_aside = counters(show).get("replica_file.quarantined", 0)
        if set_aside:
            text = f"{set_aside} entries or files were set aside as damaged since its start"
            rows.append(finding("replica.state", name, "warn", text, f"promovolvectl serveindex verify {name}"))
    return rows or [finding("replica.state", "serveindex", "ok", f"{len(found.index.replicas)} replicas are whole")]


def _room(found: Gathered) -> list[Finding]:
    rows = []
    for name, show in sorted(found.shows.items()):
        counts = counters(show)
        used, limit = counts.get("replica_file.used_bytes", 0), counts.get("replica_file.limit_bytes", 0)
        room = counts.get("replica_file.room_bytes")
        text = f"{used >> 20} of {limit >> 20} MiB used" + ("" if room is None else f", room for {room >> 20} MiB more")
        fix = "promovolvectl serveindex largest"
        if limit and used > limit * USED_UP:
            rows.append(finding("replica.room", name, "fail", text, fix))
        elif (limit and used > limit * USED_MUCH) or (room is not None and room < ROOM_LOW_BYTES):
            rows.append(finding("replica.room", name, "warn", text, fix))
    return rows or [finding("replica.room", "serveindex", "ok", "every replica's file has room")]


def _readers(found: Gathered) -> list[Finding]:
    rows = []
    for name, show in sorted(found.shows.items()):
        counts = counters(show)
        readers, most = counts.get("replica_file.readers", 0), counts.get("replica_file.readers_max", 0)
        behind, pid = (
            counts.get("replica_file.oldest_reader_commits", 0),
            counts.get("replica_file.oldest_reader_pid", 0),
        )
        if behind > BEHIND_COMMITS:
            text = f"process {pid} reads what is {behind} commits old"
            rows.append(finding("replica.readers", name, "warn", text, f"ps -fp {pid}"))
        if most and readers > most * USED_MUCH:
            text = f"{readers} of {most} places for readers are taken"
            rows.append(finding("replica.readers", name, "warn", text, f"promovolvectl node show {name}"))
    return rows or [finding("replica.readers", "serveindex", "ok", "nobody keeps old pages")]
