"""What operators ask of a replica beside its entries: removals and their tombstones, a key's history, how a replica
that is not complete gets there."""

from __future__ import annotations

from node.gossip.replica_parts import Parts
from node.gossip.replica_views import Certificate, PendingRemoval, Streaming, TombstoneAge, VersionSeen


class Questions:
    """Of one replicator's parts; nothing changes by asking."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def tombstones(self, limit: int, wall_ms: int) -> list[TombstoneAge]:
        """The oldest tombstones, with whom they wait for where this node collects that."""
        roster = self._parts.stay.roster
        return [
            age._replace(
                caretaker=roster.caretaker_of(age.version.origin),
                awaited=self._parts.removals.awaited(age.key, age.version) or (),
            )
            for age in self._parts.contents.index.oldest_tombstones(limit, wall_ms)
        ]

    def why_not_settling(self, now_ns: int) -> str:
        """What keeps this node from settling tombstones, in words; empty when only their age does, and whoever lacks
        them or has only just got them."""
        return self._parts.caretaker.why_not(now_ns)

    def pending_removals(self, limit: int, now_ns: int) -> list[PendingRemoval]:
        """Removals of this node that no majority has on disk yet, the oldest first."""
        return self._parts.removals.pending(limit, now_ns)

    def pending_removal_count(self) -> int:
        """How many those are."""
        return self._parts.removals.pending_count()

    def certificate(self, key: str) -> Certificate | None:
        """What is known of the newest removal of a key in this node's care; None when there is none."""
        return self._parts.removals.certificate(key)

    def certificates(self, limit: int) -> list[Certificate]:
        """The newest removals in this node's care."""
        return self._parts.removals.certificates(limit)

    def history(self, key: str) -> tuple[VersionSeen, ...]:
        """The last versions of a key that this replica held, oldest first, with what it held before any change."""
        return self._parts.history.of(key, self._parts.contents.entry(key))

    def streaming(self) -> Streaming:
        """How this replica comes to be complete, and one of the roster."""
        stay, fill, compared = self._parts.stay, self._parts.fetching.fill, self._parts.antientropy
        awaited: tuple[str, ...] = ()
        if self._parts.ready:
            phase = "complete" if stay.counts else "joining"
        elif stay.taking_over and not compared.candidates():
            phase, awaited = "awaiting", tuple(sorted(stay.sources))
        else:
            phase = "streaming"
        return Streaming(
            phase,
            compared.peer,
            awaited,
            fill.total - fill.remaining,
            fill.total,
            fill.entries,
            fill.bytes,
            fill.discarded,
            compared.progress(),
        )
