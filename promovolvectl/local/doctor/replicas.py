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
NAMED: Final = 3
OPENED: Final = {"set_aside": "its file was set aside as damaged", "older_copy": "its file was an older copy"}


def replica_rows(found: Gathered) -> list[Finding]:
    return [*_state(found), *_kept(found), *_room(found), *_readers(found)]


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
            fix = f"promovolvectl serveindex verify --node {item.node}"
            rows.append(finding("replica.state", item.node, "fail", "; ".join(wrong), fix))
        if item.opened in OPENED:
            text = f"{OPENED[item.opened]} at its start at {item.opened_at}: {item.opened_why}"
            kept = f"; kept as {item.opened_kept}" if item.opened_kept else ""
            fix = f"promovolvectl serveindex verify --node {item.node}"
            rows.append(finding("replica.state", item.node, "warn", text + kept, fix))
    for name, show in sorted(found.shows.items()):
        # Also those that were written again since: a disk that has flipped bits once does so again.
        set_aside = counters(show).get("replica_file.damaged_found", 0)
        if set_aside:
            text = f"{set_aside} entries were set aside as damaged since its start"
            rows.append(finding("replica.state", name, "warn", text, f"promovolvectl serveindex verify --node {name}"))
    return rows or [finding("replica.state", "serveindex", "ok", f"{len(found.index.replicas)} replicas are whole")]


def _kept(found: Gathered) -> list[Finding]:
    """A file that was set aside is evidence, and room that nobody gets back by himself."""
    if found.index is None:
        return []
    rows = []
    for item in found.index.replicas:
        named = [one for one in found.index.kept if one.node == item.node]
        if not named:
            continue
        size = sum(one.bytes for one in named)
        oldest = min((one.at for one in named if one.at), default="")
        text = f"{item.kept_files} files were set aside, {size >> 10} KiB" + (f", since {oldest}" if oldest else "")
        some = "; ".join(one.path for one in named[:NAMED])
        more = f"; and {item.kept_files - NAMED} more" if item.kept_files > NAMED else ""
        fix = named[0].remove if item.kept_files == 1 else "promovolvectl serveindex status"
        rows.append(finding("replica.kept", item.node, "warn", f"{text}: {some}{more}", fix))
    return rows or [finding("replica.kept", "serveindex", "ok", "no file of a replica is set aside")]


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
