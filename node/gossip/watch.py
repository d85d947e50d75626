"""Watches: what changes in this node's replica of the keys under a prefix, told to a reader that may be slow.

Each new version of a key is told once, in the order in which the replica took them. A write that says what the one
before it said is no news, though its version is newer. An entry's expiry is told when its time is over, not when the
replica forgets it. A reader that does not take in time loses the oldest news and is told how many: it reads what is
there, and goes on.

What its driver owes it: `begin` with what is there, which is no news; then `changed` for each key of every `Applied`,
with what the replica holds of it then.
"""

from __future__ import annotations

import enum
import heapq
from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from node.core import limits
from node.gossip.lww import expired
from node.gossip.version import Version, version_of
from node.store.replica_port import ReplicaEntry

_ENDS_SPARE: Final = 64  # ends of versions that were replaced, kept until it pays to look through all
_GONE: Final = (None, None, b"")


class What(enum.Enum):
    """What became of a key."""

    PUT = "put"
    REMOVED = "removed"
    EXPIRED = "expired"


class Change(NamedTuple):
    """News of one key; `version` is the one that was put, that removed it, or whose time is over."""

    key: str
    what: What
    version: Version


class Gap(NamedTuple):
    """So many changes were lost, all of them older than what follows."""

    lost: int


class Watch:
    """News of the keys that begin with `prefix`; at most `changes_max` wait to be taken."""

    def __init__(self, prefix: str, changes_max: int = limits.watch_changes_max) -> None:
        self._prefix = prefix
        self._changes_max = changes_max
        self._known: dict[str, tuple[What, Version, bytes]] = {}
        self._ends: list[tuple[int, str, Version]] = []
        self._news: deque[Change] = deque()
        self._lost = 0

    def begin(self, entries: Iterable[ReplicaEntry], wall_ms: int) -> None:
        """What the reader knows already."""
        for entry in entries:
            self.changed(entry.key, entry, wall_ms)
        self.take(wall_ms)

    def changed(self, key: str, entry: ReplicaEntry | None, wall_ms: int) -> None:
        """What the replica holds of a key after a change; None: it forgot it, which was told when it expired."""
        if not key.startswith(self._prefix):
            return
        self._expire(wall_ms)
        if entry is None:
            self._known.pop(key, None)
            return
        version = version_of(entry)
        what = What.REMOVED if entry.tombstone else What.EXPIRED if expired(entry, wall_ms) else What.PUT
        known = self._known.get(key)
        self._known[key] = (what, version, entry.value)
        if what is What.PUT and entry.expires_at_ms:
            heapq.heappush(self._ends, (entry.expires_at_ms, key, version))
            if len(self._ends) > 2 * len(self._known) + _ENDS_SPARE:
                self._ends = [end for end in self._ends if self._known.get(end[1], _GONE)[1] == end[2]]
                heapq.heapify(self._ends)
        if known is None or known[0] is not what or (what is What.PUT and known[2] != entry.value):
            self._tell(Change(key, what, version))

    def _expire(self, wall_ms: int) -> None:
        while self._ends and self._ends[0][0] <= wall_ms:
            _, key, version = heapq.heappop(self._ends)
            known = self._known.get(key)
            if known is not None and known[:2] == (What.PUT, version):
                self._known[key] = (What.EXPIRED, version, b"")
                self._tell(Change(key, What.EXPIRED, version))

    def take(self, wall_ms: int) -> list[Change | Gap]:
        """All that is new, the oldest first; what is over by now too."""
        self._expire(wall_ms)
        taken: list[Change | Gap] = [Gap(self._lost)] if self._lost else []
        taken += self._news
        self._news.clear()
        self._lost = 0
        return taken

    def _tell(self, change: Change) -> None:
        if len(self._news) >= self._changes_max:
            self._news.popleft()
            self._lost += 1
        self._news.append(change)
