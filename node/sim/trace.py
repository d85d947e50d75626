"""What happened in a run, one line each: all of it in one hash, and the newest that say something kept for a report."""

from __future__ import annotations

import hashlib
from collections import deque

from node.core.clock import MS
from node.sim.scheduler import Scheduler

KEPT = 400
# What is sent all the time and tells a reader nothing; it counts for the hash all the same.
ROUTINE = frozenset(
    {
        "gossip.heartbeat",
        "gossip.heartbeat_ack",
        "gossip.digest",
        "replica.digests",
        "replica.delta_ack",
        "sharding.placement_version",
    }
)
_FLUSH_LINES = 512


class Trace:
    """`count` lines so far. Two runs of one seed have the same `digest()`, whatever Python's hash seed is."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._kept: deque[tuple[int, str]] = deque(maxlen=KEPT)
        self._pending: list[str] = []
        self._hash = hashlib.blake2b(digest_size=8)
        self.count = 0

    def add(self, line: str, *, routine: bool = False) -> None:
        now_ns = self._scheduler.now_ns
        self.count += 1
        if not routine:
            self._kept.append((now_ns, line))
        pending = self._pending
        pending.append(f"{now_ns} {line}")
        if len(pending) >= _FLUSH_LINES:
            self._flush()

    def digest(self) -> str:
        self._flush()
        return self._hash.hexdigest()

    def tail(self, lines: int) -> tuple[str, ...]:
        """The newest lines, oldest first, each with its time in seconds."""
        kept = list(self._kept)[-lines:]
        return tuple(f"{at_ns / (1_000 * MS):10.6f}  {line}" for at_ns, line in kept)

    def _flush(self) -> None:
        self._hash.update("\n".join(self._pending).encode())
        self._pending.clear()
