"""Looking for damage in a replica before anybody asks for it: a leaf at a time, round and round.

A leaf is read whole, so that not only a record that is not what was written shows, but also one that is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from node.core.hashing import LEAF_COUNT, MAP_COUNT
from node.store.replica_codec import entry_of
from node.store.replica_commit import why_damaged
from node.store.replica_digest import digest_of

_LEAVES = MAP_COUNT * LEAF_COUNT


class LeafFindings(NamedTuple):
    """`damaged`: why, by place; `wrong`: the leaf's digest contradicts the entries that are sound."""

    damaged: dict[bytes, str]
    wrong: bool


class LeafScrub:
    """Where the walk is and what it has seen: `rounds` ended, entries `checked`, leaves found `wrong`."""

    def __init__(self) -> None:
        self._at = 0
        self.rounds = 0
        self.checked = 0
        self.wrong = 0

    @property
    def place(self) -> tuple[int, int]:
        """The leaf to check next: its map and number."""
        return divmod(self._at, LEAF_COUNT)

    @property
    def progress(self) -> float:
        """The part of the present round that is done."""
        return self._at / _LEAVES

    def check(self, records: Iterable[tuple[bytes, bytes]], digests: Sequence[int]) -> LeafFindings:
        """Judges the records of the leaf at `place` against its map's digests, and goes on to the next."""
        damaged: dict[bytes, str] = {}
        sound = []
        for place, value in records:
            self.checked += 1
            why = why_damaged(place, value)
            if why:
                damaged[place] = why
            else:
                sound.append(entry_of(place, value))
        wrong = digest_of(sound) != digests[self._at % LEAF_COUNT]
        self.wrong += wrong
        self.skip()
        return LeafFindings(damaged, wrong)

    def skip(self) -> None:
        """Goes on to the next leaf."""
        self._at += 1
        if self._at == _LEAVES:
            self._at = 0
            self.rounds += 1
