"""One replica's contents: what is on disk, with what is not there yet on top.

The only place that merges an entry in, and so the only one that keeps digests, counts and indexes in step with it.
"""

from __future__ import annotations

import copy

from node.core import limits
from node.core.hashing import leaf_of, map_of
from node.gossip.digest import DigestTable
from node.gossip.keyindex import KeyIndex
from node.gossip.lww import lapsed_at, supersedes
from node.gossip.overlay import LeafChanges, Overlay, Place
from node.gossip.recount import Recount
from node.gossip.replica_messages import KeyVersion, WireEntry
from node.gossip.settling import Settled
from node.gossip.tombstones import Tombstones
from node.store.replica_digest import digest_of, fingerprint_of
from node.store.replica_port import MapCount, ReplicaBatch, ReplicaEntry, ReplicaStore


class Contents:
    """Entries by key and by leaf, merged by version; `expired_keep_ms` as in `ReplicationSettings`."""

    def __init__(self, store: ReplicaStore, expired_keep_ms: int) -> None:
        self._store = store
        self.settled = Settled()
        self._keep_ms = expired_keep_ms
        self._overlay = Overlay()
        self._counts = [LeafChanges(keys=c.keys, bytes=c.bytes, tombstones=c.tombstones) for c in store.counts()]
        self.digests = DigestTable(store.digests())
        self.index = KeyIndex(store, self._overlay)
        self.tombstones = Tombstones()  # all of them, once they are `learned`
        self.tombstones_learned = False
        self._learned_to = 0
        self._recount = Recount()
        for map_, count in enumerate(store.counts()):
            if not count.sure:
                self._recount.want(map_)
        self.digests_repaired = 0

    def entry(self, key: str) -> ReplicaEntry | None:
        """What the replica holds of a key: tombstones and expired entries too."""
        decided, entry = self._overlay.find(key)
        return entry if decided else self._store.get(map_of(key), leaf_of(key), key)

    def apply(self, entry: ReplicaEntry) -> bool:
        """Merges an entry in; says whether it took its key."""
        return self.take(entry)[0]

    def take(self, entry: ReplicaEntry) -> tuple[bool, ReplicaEntry | None]:
        """Merges an entry in; whether it took its key, and what was held before."""
        old = self.entry(entry.key)
        if not supersedes(entry, old):
            return False, old
        self.replace(entry.key, old, entry)
        return True, old

    def replace(self, key: str, old: ReplicaEntry | None, new: ReplicaEntry | None) -> None:
        """Puts `new` (None: nothing) in the place of `old`, which must be what `entry` says."""
        place = (map_of(key), leaf_of(key))
        self._overlay.set(place, key, new)
        self.tombstones.replace(old, new)
        self._overlay.changes(place).replace(old, new)
        self._counts[place[0]].replace(old, new)
        self._recount.changed(place, old, new)
        if old is not None:
            self.digests.remove(*place, fingerprint_of(old))
        if new is not None:
            self.digests.add(*place, fingerprint_of(new))

    def drop_lapsed(self, key: str, wall_ms: int) -> bool:
        """Forgets a key whose time is over for good; says whether it was one."""
        entry = self.entry(key)
        if entry is None or not self.lapsed(entry, wall_ms):
            return False
        self.replace(key, entry, None)
        return True

    def lapsed(self, entry: ReplicaEntry | WireEntry | KeyVersion, wall_ms: int) -> bool:
        """Whether every replica is to forget such an entry: its time is long over, or it is a settled tombstone."""
        if entry.tombstone:
            return self.settled.covers(entry.origin, entry.hlc)
        return lapsed_at(entry.expires_at_ms, entry.tombstone, self._keep_ms, wall_ms)

    def collect(self, wall_ms: int, limit: int) -> list[str]:
        """Forgets at most `limit` lapsed entries; their keys."""
        keys = self.index.due(wall_ms - self._keep_ms, limit)
        tombstones = self.tombstones
        for origin in tombstones.origins() if len(keys) < limit else ():
            keys += tombstones.below(origin, self.settled.mark(origin), limit - len(keys))
        return [key for key in keys if self.drop_lapsed(key, wall_ms)]

    def durable(self, key: str) -> bool:
        """Whether all that this replica holds of a key is on disk."""
        return not self._overlay.find(key)[0]

    def held(self, place: Place) -> dict[str, ReplicaEntry]:
        """A leaf's entries by key, and nothing changed by looking."""
        found = {entry.key: entry for entry in self._store.scan(*place)}
        for key, entry in self._overlay.of_leaf(place):
            if entry is None:
                found.pop(key, None)
            else:
                found[key] = entry
        return found

    def leaf_entries(self, place: Place) -> dict[str, ReplicaEntry]:
        """A leaf's entries by key. As all of them are read here, the leaf's digest is compared with them on the way
        and put right if they contradict it (an entry that the store had to quarantine, say)."""
        found = self.held(place)
        true_digest = digest_of(found.values())
        if true_digest != self.digests.leaf(*place):
            self.digests.put(*place, true_digest)
            self._overlay.changes(place)
            self._recount.want(place[0])
            self.digests_repaired += 1
        return found

    def living_entries(self, place: Place, wall_ms: int) -> dict[str, ReplicaEntry]:
        """The same once its lapsed entries are forgotten."""
        entries = self.leaf_entries(place)
        for key in [key for key, entry in entries.items() if self.lapsed(entry, wall_ms)]:
            self.drop_lapsed(key, wall_ms)
            del entries[key]
        return entries

    def rewrite(self, entry: ReplicaEntry) -> None:
        """Commits what is held once more, so that whatever leads to it in the file is right again."""
        self._overlay.set((map_of(entry.key), leaf_of(entry.key)), entry.key, entry)

    def recount(self, budget: int | None) -> None:
        """Counts the maps in which a digest had to be put right: so many entries and leaves of them, None: all."""
        left = budget
        while (place := self._recount.place) is not None and (left is None or left > 0):
            entries = self.held(place)
            found = self._recount.counted(entries.values())
            if found is not None:
                self._counts[place[0]] = found
                self._overlay.changes(place)  # so that the next commit writes them
            if left is not None:
                left -= 1 + len(entries)

    def miscounted(self, map_: int) -> None:
        """The map's entries have been meddled with: its counts are not to be trusted."""
        self._recount.want(map_)

    def learn_tombstones(self, limit: int) -> None:
        """Reads the next page of the tombstones that were in the file."""
        page = self._store.tombstones(limit, self._learned_to)
        for entry in page:
            if not self._overlay.find(entry.key)[0]:
                self.tombstones.replace(None, entry)
        if len(page) < limit:
            self.tombstones_learned = True
        else:
            self._learned_to = page[-1].hlc

    def counts(self) -> list[MapCount]:
        return [MapCount(c.keys, c.bytes, c.tombstones) for c in self._counts]

    # ---- to disk

    def uncommitted(self) -> int:
        """Changes that no commit has been asked for yet."""
        return len(self._overlay) or len(self._overlay.dirty)

    def take_batch(
        self, hlc_mark: int, entries_max: int = limits.replica_commit_entries_max, tenure: int = 0
    ) -> ReplicaBatch:
        """The next commit: whole leaves, so that what it leaves on disk agrees with its digests and counts."""
        flying = self._overlay.take(entries_max)
        entries = {key: entry for changes in flying.values() for key, entry in changes.entries.items()}
        counts = {map_: copy.copy(self._counts[map_]) for map_, _ in flying}
        for (map_, _), waiting in self._overlay.dirty.items():
            if map_ in counts:
                counts[map_].add(-waiting.keys, -waiting.bytes, -waiting.tombstones)
        return ReplicaBatch(
            puts=tuple(entry for entry in entries.values() if entry is not None),
            drops=tuple(key for key, entry in entries.items() if entry is None),
            # A leaf that flies has no waiting changes now: its digest in memory is the one to write.
            digests={place: self.digests.leaf(*place) for place in flying},
            hlc_mark=hlc_mark,
            counts={
                map_: MapCount(c.keys, c.bytes, c.tombstones, map_ not in self._recount) for map_, c in counts.items()
            },
            tenure=tenure,
        )

    def commit_ended(self, ok: bool) -> None:
        """The batch taken last is on disk, or waits again."""
        if ok:
            self._overlay.landed()
        else:
            self._overlay.returned()
