"""A replica's keys by site, by expiry and by the age of their tombstones: the store's index, with what is not on disk
yet on top. It is whole from the moment a replica is open.
"""

from __future__ import annotations

from typing import Final

from node.gossip.overlay import Overlay
from node.gossip.replica_views import TombstoneAge
from node.gossip.tombstones import age_of
from node.store.replica_port import ReplicaEntry, ReplicaStore

_OVERRULED_MAX: Final = 1_000  # tombstones on disk that the overlay may have replaced, read beyond those asked for


class KeyIndex:
    """Which keys carry a value, by site and by expiry; which are tombstones."""

    def __init__(self, store: ReplicaStore, overlay: Overlay) -> None:
        self._store = store
        self._overlay = overlay

    def keys_of_site(self, site: str) -> tuple[str, ...]:
        found = {key for key in self._store.keys_of_site(site) if not self._overlay.find(key)[0]}
        return tuple(sorted(found | self._overlay.index.keys_of_site(site)))

    def sites(self) -> tuple[str, ...]:
        """Sites that have keys; one whose last key was removed a moment ago may still be there."""
        return tuple(sorted(self._overlay.index.sites().union(self._store.sites())))

    def due(self, before_ms: int, limit: int) -> list[str]:
        """At most `limit` keys that expire before `before_ms`."""
        found = self._overlay.index.due(before_ms, limit)
        found += [key for key in self._store.due(before_ms, limit) if not self._overlay.find(key)[0]]
        return found[:limit]

    def tombstones(self, limit: int) -> list[ReplicaEntry]:
        """The oldest tombstones by their writers' clocks, the oldest first."""
        overlay = self._overlay
        committed = self._store.tombstones(limit + min(len(overlay), _OVERRULED_MAX))
        found = [entry for entry in committed if not overlay.find(entry.key)[0]]
        waiting = (overlay.find(key)[1] for key in overlay.index.tombstones())
        found += [entry for entry in waiting if entry is not None]
        return sorted(found, key=lambda entry: (entry.hlc, entry.key))[:limit]

    def oldest_tombstones(self, limit: int, wall_ms: int) -> list[TombstoneAge]:
        """The same with their ages."""
        return [age_of(entry, wall_ms) for entry in self.tombstones(limit)]
