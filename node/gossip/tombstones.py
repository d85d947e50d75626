"""The tombstones a replica holds: which, whose, and how old. When one is forgotten: `node.gossip.settling`."""

from __future__ import annotations

from collections.abc import Mapping

from node.core.hlc import hlc_wall_ms
from node.gossip.replica_views import TombstoneAge
from node.gossip.version import Version, version_of
from node.store.replica_port import ReplicaEntry

_NONE: Mapping[str, Version] = {}


def age_of(entry: ReplicaEntry, wall_ms: int) -> TombstoneAge:
    """A tombstone for an operator."""
    return TombstoneAge(entry.key, version_of(entry), max(0, wall_ms - hlc_wall_ms(entry.hlc)))


class Tombstones:
    """An index in memory of the tombstones in a replica, by the node that wrote them."""

    def __init__(self) -> None:
        self._by_origin: dict[str, dict[str, Version]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_origin.values()))

    def replace(self, old: ReplicaEntry | None, new: ReplicaEntry | None) -> None:
        """Takes note of a change of one key."""
        if old is not None and old.tombstone:
            self._discard(old)
        if new is not None and new.tombstone:
            self._add(new)

    def _add(self, entry: ReplicaEntry) -> None:
        self._by_origin.setdefault(entry.origin, {})[entry.key] = version_of(entry)

    def _discard(self, entry: ReplicaEntry) -> None:
        found = self._by_origin.get(entry.origin)
        if found is not None:
            found.pop(entry.key, None)
            if not found:
                del self._by_origin[entry.origin]

    def origins(self) -> tuple[str, ...]:
        """Who wrote them."""
        return tuple(sorted(self._by_origin))

    def of_origin(self, origin: str) -> Mapping[str, Version]:
        """An origin's tombstones by key; not to be kept."""
        return self._by_origin.get(origin, _NONE)

    def below(self, origin: str, mark: int, limit: int) -> list[str]:
        """At most `limit` keys of an origin's tombstones up to a mark."""
        found: list[str] = []
        for key, version in self.of_origin(origin).items():
            if version.hlc <= mark:
                found.append(key)
                if len(found) >= limit:
                    break
        return found
