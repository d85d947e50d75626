"""Counting maps anew, a leaf at a time, while they change.

What damage has taken from a leaf is still in its map's counts, and nobody can say what it was: the map is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from node.core.hashing import LEAF_COUNT
from node.gossip.overlay import LeafChanges, Place
from node.store.replica_port import ReplicaEntry


class Recount:
    """The maps that wait, the first of them being counted: its leaves before `_leaf` are in `_totals`."""

    def __init__(self) -> None:
        self._maps: deque[int] = deque()
        self._leaf = 0
        self._totals = LeafChanges()

    def __contains__(self, map_: int) -> bool:
        """Whether a map's counts are not to be trusted yet."""
        return map_ in self._maps

    def want(self, map_: int) -> None:
        """Have a map counted; once more if it is being counted now."""
        if map_ not in list(self._maps)[1:]:
            self._maps.append(map_)

    @property
    def place(self) -> Place | None:
        """The leaf to count next."""
        return (self._maps[0], self._leaf) if self._maps else None

    def changed(self, place: Place, old: ReplicaEntry | None, new: ReplicaEntry | None) -> None:
        """An entry took another's place."""
        if self._maps and place[0] == self._maps[0] and place[1] < self._leaf:
            self._totals.replace(old, new)

    def counted(self, entries: Iterable[ReplicaEntry]) -> LeafChanges | None:
        """Takes the entries of the leaf at `place`; the map's counts when it was the last one."""
        for entry in entries:
            self._totals.replace(None, entry)
        self._leaf += 1
        if self._leaf < LEAF_COUNT:
            return None
        found, self._totals, self._leaf = self._totals, LeafChanges(), 0
        self._maps.popleft()
        return found
