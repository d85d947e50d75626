"""What an operator can ask about a replica's file."""

from __future__ import annotations

import msgspec


class ReplicaHealth(msgspec.Struct, frozen=True):
    """`used_bytes` of the file's pages were ever used, `live_bytes` of them hold something now; the file may grow to
    `limit_bytes`, the disk has room for `room_bytes` more. `oldest_reader_commits`: how many commits have been made
    since the oldest read still open began, in the process `oldest_reader_pid` (0 when none is open): what those commits
    replaced can't be used again before that read ends.

    `quarantined` entries wait to be written again, of `damaged_found` since the open; `damaged_reads` met one, and
    `reads_failed` met a file that could not be read there. The scrub has ended `scrub_rounds` rounds and is at the
    part `scrub_progress`, 0 to 1, of the next; it has checked `scrub_checked` entries and found `scrub_leaves_wrong`
    leaves whose digest contradicts them."""

    used_bytes: int = 0
    live_bytes: int = 0
    limit_bytes: int = 0
    room_bytes: int = 0
    readers: int = 0
    readers_max: int = 0
    oldest_reader_commits: int = 0
    oldest_reader_pid: int = 0
    quarantined: int = 0
    damaged_found: int = 0
    damaged_reads: int = 0
    reads_failed: int = 0
    scrub_rounds: int = 0
    scrub_progress: float = 0.0
    scrub_checked: int = 0
    scrub_leaves_wrong: int = 0
    poisoned: str = ""
