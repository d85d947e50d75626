"""A replica in memory: the reference that `replica_lmdb` is compared with, and the simulator's replica."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import msgspec

from node.core.hashing import LEAF_COUNT, MAP_COUNT, leaf_of, map_of
from node.store.replica_codec import entry_bytes, key_bytes
from node.store.replica_keys import KeyIndex
from node.store.replica_port import MapCount, ReplicaBatch, ReplicaEntry, ReplicaIdentity, begun


class MemoryReplica:
    """`ReplicaStore` over dictionaries."""

    def __init__(self, identity: ReplicaIdentity) -> None:
        self._identity = identity
        self._leaves: dict[tuple[int, int], dict[str, ReplicaEntry]] = {}
        self._digests = [[0] * LEAF_COUNT for _ in range(MAP_COUNT)]
        self._counts = [MapCount()] * MAP_COUNT
        self._hlc_mark = 0
        self._index = KeyIndex()

    @property
    def identity(self) -> ReplicaIdentity:
        """See `ReplicaStore`; so are the others."""
        return self._identity

    def begin(self, incarnation: int) -> None:
        self._identity = begun(self._identity, incarnation)

    @property
    def damaged(self) -> frozenset[str]:
        return frozenset()

    def take_found(self) -> frozenset[str]:
        return frozenset()

    def take_suspects(self) -> frozenset[tuple[int, int]]:
        return frozenset()

    def hlc_mark(self) -> int:
        return self._hlc_mark

    def get(self, map: int, leaf: int, key: str) -> ReplicaEntry | None:  # noqa: A002 - the port's name
        return self._leaves.get((map, leaf), {}).get(key)

    def scan(self, map: int, leaf: int) -> Sequence[ReplicaEntry]:  # noqa: A002 - the port's name
        entries = self._leaves.get((map, leaf), {})
        return [entries[key] for key in sorted(entries)]

    def scan_all(self, after: str, limit: int) -> Sequence[ReplicaEntry]:
        start = (map_of(after), leaf_of(after), after) if after else (-1, -1, "")
        found: list[ReplicaEntry] = []
        for place in sorted(place for place in self._leaves if place >= start[:2]):
            found += [entry for entry in self.scan(*place) if (*place, entry.key) > start]
            if len(found) >= limit:
                break
        return found[:limit]

    def keys_of_site(self, site: str) -> Sequence[str]:
        return sorted(self._index.keys_of_site(site))

    def sites(self) -> Sequence[str]:
        return sorted(self._index.sites())

    def due(self, before_ms: int, limit: int) -> Sequence[str]:
        return self._index.due(before_ms, limit)

    def tombstones(self, limit: int, since_hlc: int = 0) -> Sequence[ReplicaEntry]:
        found = (self.get(map_of(key), leaf_of(key), key) for key in self._index.tombstones())
        return list(islice((entry for entry in found if entry is not None and entry.hlc >= since_hlc), limit))

    def digests(self) -> list[list[int]]:
        return [list(row) for row in self._digests]

    def counts(self) -> list[MapCount]:
        return list(self._counts)

    def commit(self, batch: ReplicaBatch) -> None:
        for entry in batch.puts:
            entry_bytes(key_bytes(entry.key), entry)  # refuses what no disk could hold, before anything is changed
        for key in batch.drops:
            key_bytes(key)
        for key in batch.drops:
            self._index.replace(self._leaves.get((map_of(key), leaf_of(key)), {}).pop(key, None), None)
        for entry in batch.puts:
            entries = self._leaves.setdefault((map_of(entry.key), leaf_of(entry.key)), {})
            self._index.replace(entries.get(entry.key), entry)
            entries[entry.key] = entry
        for (map_, leaf), digest in batch.digests.items():
            self._digests[map_][leaf] = digest
        for map_, count in batch.counts.items():
            self._counts[map_] = count
        self._hlc_mark = max(self._hlc_mark, batch.hlc_mark)
        if batch.tenure:
            self._identity = msgspec.structs.replace(self._identity, tenure=batch.tenure)

    def condemn(self, reason: str) -> None:
        """Memory has no next open."""

    def close(self) -> None:
        """Nothing is held open."""
