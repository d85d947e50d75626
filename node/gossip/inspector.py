"""What an operator may look at in a replica, and mend in it, beside the protocol.

Reading here changes nothing, not even a digest that its entries contradict: what is looked for must still be there when
it is reported. A mend replaces exactly the entry that it names, so that a write which came meanwhile is never lost.

Places number the leaves of all maps, 0 … 8191: `map * 256 + leaf`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import xxhash

from node.core.hashing import LEAF_COUNT, MAP_COUNT, leaf_of, map_of
from node.gossip.contents import Contents
from node.gossip.version import Version, version_of
from node.store.replica_digest import digest_of
from node.store.replica_port import ReplicaEntry

PLACE_COUNT: Final = MAP_COUNT * LEAF_COUNT
_SIGNED_BYTES: Final = 8


class LeafLook(NamedTuple):
    """One leaf as its entries really are: `content` over all that they hold, lapsed ones left out; `contradicted`:
    its digest says otherwise."""

    place: int
    entries: int
    content: bytes
    contradicted: bool


def place_of(key: str) -> int:
    return map_of(key) * LEAF_COUNT + leaf_of(key)


def content_of(entry: ReplicaEntry) -> bytes:
    """16 bytes that stand for what an entry holds, apart from its key and version."""
    fixed = entry.expires_at_ms.to_bytes(_SIGNED_BYTES, "big", signed=True) + bytes((entry.tombstone,))
    return xxhash.xxh3_128_digest(fixed + entry.value, 0)


class Inspector:
    """Over a replica's contents. `damaged` names the keys that the store keeps from sight."""

    def __init__(self, contents: Contents, damaged: Callable[[], frozenset[str]]) -> None:
        self._contents = contents
        self._damaged = damaged

    def leaves(self, place: int, end: int, entries_max: int, wall_ms: int) -> list[LeafLook]:
        """Leaves from `place` on and below `end`, until `entries_max` entries were read: at least one."""
        found: list[LeafLook] = []
        read = 0
        for at in range(max(place, 0), min(end, PLACE_COUNT)):
            held = self._contents.held(_leaf(at))
            read += len(held)
            found.append(self._look(at, held, wall_ms))
            if read >= entries_max:
                break
        return found

    def _look(self, place: int, held: dict[str, ReplicaEntry], wall_ms: int) -> LeafLook:
        hasher = xxhash.xxh3_128()
        kept = [held[key] for key in sorted(held) if not self._contents.lapsed(held[key], wall_ms)]
        for entry in kept:
            hasher.update(repr((entry.key, *version_of(entry))).encode())
            hasher.update(content_of(entry))
        contradicted = digest_of(held.values()) != self._contents.digests.leaf(*_leaf(place))
        return LeafLook(place, len(kept), hasher.digest(), contradicted)

    def entries(self, place: int, end: int, after: str, wall_ms: int) -> Iterator[tuple[int, ReplicaEntry]]:
        """Entries with their places, in order, from behind the key `after` of `place` ("": its beginning)."""
        for at in range(max(place, 0), min(end, PLACE_COUNT)):
            held = self._contents.held(_leaf(at))
            for key in sorted(held):
                if (at > place or key > after) and not self._contents.lapsed(held[key], wall_ms):
                    yield at, held[key]

    def entry(self, key: str) -> ReplicaEntry | None:
        return self._contents.entry(key)

    def damaged(self, place: int, end: int) -> tuple[str, ...]:
        """Keys in these leaves whose entries were found damaged, and that nothing has come for since."""
        found = (key for key in self._damaged() if place <= place_of(key) < end)
        return tuple(sorted(key for key in found if self._contents.entry(key) is None))

    # ---- mending

    def rebuild(self, places: Sequence[int]) -> int:
        """Puts the digests of these leaves, what leads to their entries in the file, and the counts of their maps right
        by the entries; how many digests were wrong."""
        before = self._contents.digests_repaired
        for place in places:
            for entry in self._contents.leaf_entries(_leaf(place)).values():
                self._contents.rewrite(entry)
            self._contents.miscounted(_leaf(place)[0])
        self._contents.recount(None)
        return self._contents.digests_repaired - before

    def drop(self, keys: Sequence[str]) -> None:
        """Forgets these entries where they are damaged; a sound one stays."""
        for key in keys:
            if key in self.damaged(place_of(key), place_of(key) + 1):
                self._contents.replace(key, None, None)

    def mend(self, entry: ReplicaEntry, instead_of: tuple[Version, bytes] | None) -> bool:
        """Puts `entry` where the replica holds exactly the version and content `instead_of` (None: nothing); says
        whether it did."""
        held = self._contents.entry(entry.key)
        found = None if held is None else (version_of(held), content_of(held))
        if found != instead_of:
            return False
        self._contents.replace(entry.key, held, entry)
        return True


def _leaf(place: int) -> tuple[int, int]:
    return divmod(place, LEAF_COUNT)
