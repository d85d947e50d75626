"""Entries of a replica that are not what was written: which, since when, and whether they have been written again.

The bytes stay in the file's own quarantine (`replica_lmdb`); this is the list that an operator reads and a replicator
fetches from. Both threads of a replica use it; each method is one step that the other can't cut in two.
"""

from __future__ import annotations

import msgspec

from node.core import limits
from node.core.clock import Clock


class Quarantined(msgspec.Struct, frozen=True):
    """One entry: `found_ms` and `mended_ms` are wall times, the latter 0 while nothing has taken its place. A key that
    can't be read itself stands here with its bytes escaped."""

    key: str
    found_ms: int
    text: str
    mended_ms: int = 0


class Quarantine:
    """Bounded: at most `limits.replica_damaged_kept_max` keys, those of them first forgotten that were mended."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, Quarantined] = {}
        self._waiting: set[str] = set()
        self._news: set[str] = set()
        self.found = 0

    @property
    def waiting(self) -> frozenset[str]:
        """The keys that nothing sound has taken the place of."""
        return frozenset(self._waiting)

    def add(self, key: str, text: str) -> None:
        """An entry was found; once more says nothing new."""
        if key in self._waiting:
            return
        self.found += 1
        if len(self._news) < limits.replica_damaged_kept_max:
            self._news.add(key)
        if len(self._held) >= limits.replica_damaged_kept_max and not self._forget_a_mended_one():
            return
        self._held[key] = Quarantined(key, self._clock.wall_ms(), text)
        self._waiting.add(key)

    def written(self, keys: frozenset[str]) -> None:
        """These keys have sound entries now, or none that is wanted."""
        for key in keys & self._waiting:
            self._held[key] = msgspec.structs.replace(self._held[key], mended_ms=self._clock.wall_ms())
            self._waiting.discard(key)

    def take_news(self) -> frozenset[str]:
        """What was found since this was last asked, whatever became of it."""
        news = frozenset(self._news)
        self._news -= news
        return news

    def all(self) -> tuple[Quarantined, ...]:
        return tuple(self._held.values())

    def _forget_a_mended_one(self) -> bool:
        key = next((key for key in self._held if key not in self._waiting), None)
        if key is not None:
            del self._held[key]
        return key is not None
