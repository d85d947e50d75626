"""What happened in a run, one line each: all of it in one hash, and the newest that say something kept for a report."""

from __future__ import annotations

import hashlib
from collections import deque

import msgspec

from node.core.clock import MS
from node.sim.scheduler import Scheduler

KEPT = 400
# What is sent all the time and tells a reader nothing; it counts for the hash all the same.
ROUTINE = frozenset(
    {
        "gossip.heartbeat",
        "gossip.heartbeat_ack",
        "gossip.digest",
        "node.sent_control",
        "node.sent_data",
        "replica.digests",
        "replica.delta_ack",
        "sharding.placement_version",
    }
)
_FLUSH_LINES = 1_024


class Trace:
    """`count` lines so far. Two runs of one seed have the same `digest()`, whatever Python's hash seed is. Lines are
    put together only when somebody reads them."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._kept: deque[tuple[int, str, str, str]] = deque(maxlen=KEPT)
        self._pending: list[tuple[int, str, str, str]] = []
        self._hash = hashlib.blake2b(digest_size=8)
        self._flushed = 0

    @property
    def count(self) -> int:
        return self._flushed + len(self._pending)

    def add(self, line: str) -> None:
        self.message(line, "", "", routine=False)

    def message(self, wire: str, name: str, fate: str, *, routine: bool) -> None:
        """What became of a message on a wire; an empty fate: it arrived."""
        entry = (self._scheduler.now_ns, wire, name, fate)
        if not routine:
            self._kept.append(entry)
        self._pending.append(entry)
        if len(self._pending) >= _FLUSH_LINES:
            self._flush()

    def digest(self) -> str:
        self._flush()
        return self._hash.hexdigest()

    def tail(self, lines: int) -> tuple[str, ...]:
        """The newest lines, oldest first, each with its time in seconds."""
        kept = list(self._kept)[-lines:]
        return tuple(f"{at_ns / (1_000 * MS):10.6f}  {' '.join(filter(None, words))}" for at_ns, *words in kept)

    def _flush(self) -> None:
        self._hash.update(msgspec.json.encode(self._pending))
        self._flushed += len(self._pending)
        self._pending.clear()
