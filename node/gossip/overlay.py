"""What has changed in a replica and is not on disk yet.

Changes are kept by leaf, because a leaf's digest is right on disk only if all of its changes go in one commit. While
one set of changes is being committed a second one collects what comes meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from node.core.check import invariant
from node.store.replica_keys import KeyIndex
from node.store.replica_port import ReplicaEntry

Place = tuple[int, int]


@dataclass(slots=True)
class LeafChanges:
    """A leaf's changes by key (None: dropped) and what they do to its map's counts."""

    entries: dict[str, ReplicaEntry | None] = field(default_factory=dict)
    keys: int = 0
    bytes: int = 0
    tombstones: int = 0

    def replace(self, old: ReplicaEntry | None, new: ReplicaEntry | None) -> None:
        """Counts that `new` takes the place of `old`."""
        for entry, sign in ((old, -1), (new, 1)):
            if entry is None:
                continue
            if entry.tombstone:
                self.add(0, 0, sign)
            else:
                self.add(sign, sign * (len(entry.key) + len(entry.value)), 0)

    def add(self, keys: int, bytes_: int, tombstones: int) -> None:
        self.keys += keys
        self.bytes += bytes_
        self.tombstones += tombstones

    def under(self, newer: LeafChanges) -> LeafChanges:
        """Both sets as one, the newer one's entries first."""
        return LeafChanges(
            {**self.entries, **newer.entries},
            self.keys + newer.keys,
            self.bytes + newer.bytes,
            self.tombstones + newer.tombstones,
        )


class Overlay:
    """Uncommitted changes: `dirty` waits, `flying` is being committed."""

    def __init__(self) -> None:
        self.dirty: dict[Place, LeafChanges] = {}
        self.flying: dict[Place, LeafChanges] = {}
        # The same entries by key alone, for the read path.
        self._dirty_keys: dict[str, ReplicaEntry | None] = {}
        self._flying_keys: dict[str, ReplicaEntry | None] = {}
        self.index = KeyIndex()  # over what `find` says

    def __len__(self) -> int:
        return len(self._dirty_keys)

    def find(self, key: str) -> tuple[bool, ReplicaEntry | None]:
        """Whether the overlay decides about a key, and what it says."""
        if key in self._dirty_keys:
            return True, self._dirty_keys[key]
        if key in self._flying_keys:
            return True, self._flying_keys[key]
        return False, None

    def changes(self, place: Place) -> LeafChanges:
        """The leaf's waiting changes, to add to."""
        found = self.dirty.get(place)
        if found is None:
            found = self.dirty[place] = LeafChanges()
        return found

    def set(self, place: Place, key: str, entry: ReplicaEntry | None) -> None:
        self.index.replace(self.find(key)[1], entry)
        self.changes(place).entries[key] = entry
        self._dirty_keys[key] = entry

    def of_leaf(self, place: Place) -> Iterator[tuple[str, ReplicaEntry | None]]:
        """A leaf's uncommitted keys, each once, with what holds for it now."""
        dirty = self.dirty.get(place)
        flying = self.flying.get(place)
        if dirty is not None:
            yield from dirty.entries.items()
        if flying is not None:
            for key, entry in flying.entries.items():
                if dirty is None or key not in dirty.entries:
                    yield key, entry

    def take(self, entries_max: int) -> dict[Place, LeafChanges]:
        """Moves whole leaves from waiting to flying until they hold `entries_max` entries, or all; those first that
        give room back, since in a file that is full nothing else goes in before them."""
        invariant(not self.flying, "one commit at a time", flying=len(self.flying))
        taken = 0
        for place in sorted(self.dirty, key=lambda place: self.dirty[place].bytes):
            changes = self.dirty.pop(place)
            self.flying[place] = changes
            taken += len(changes.entries)
            for key, entry in changes.entries.items():
                self._flying_keys[key] = entry
                del self._dirty_keys[key]
            if taken >= entries_max:
                break
        return self.flying

    def landed(self) -> None:
        """The flying changes are on disk."""
        for key, entry in self._flying_keys.items():
            if key not in self._dirty_keys:
                self.index.replace(entry, None)
        self.flying = {}
        self._flying_keys = {}

    def returned(self) -> None:
        """The flying changes are not on disk: they wait again, below what has come since."""
        for place, older in self.flying.items():
            newer = self.dirty.get(place)
            self.dirty[place] = older if newer is None else older.under(newer)
        self._dirty_keys = {**self._flying_keys, **self._dirty_keys}
        self.flying = {}
        self._flying_keys = {}
