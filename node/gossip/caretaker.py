"""The care of tombstones: which are this node's to confirm, which marks may be raised (`node.gossip.settling`)."""

from __future__ import annotations

from node.core.clock import MS
from node.gossip.contents import Contents
from node.gossip.removals import Removals
from node.gossip.replica_io import ReplicationSettings
from node.gossip.settling import mark_of
from node.gossip.stay import Stay


class Caretaker:
    """Looks through the tombstones in its care once in a while."""

    def __init__(
        self, me: str, contents: Contents, removals: Removals, stay: Stay, settings: ReplicationSettings
    ) -> None:
        self._me = me
        self._contents = contents
        self._removals = removals
        self._stay = stay
        self._settings = settings
        self._compared: dict[str, int] = {}
        self.fresh_ns: int | None = None  # when the roster was known to be the present one

    def compared(self, peer: str, tenure: int) -> None:
        """A whole comparison with the peer, whose replica counts under `tenure`, has ended."""
        self._compared[peer] = tenure

    def confirmed(self, at_ns: int) -> None:
        """The roster that is known was the present one at that time."""
        self.fresh_ns = max(at_ns, self.fresh_ns) if self.fresh_ns is not None else at_ns

    def look(self, now_ns: int, wall_ms: int) -> bool:
        """Confirms what is in this node's care, and raises the marks that may be; says whether one was."""
        if not self._stay.counts:
            return False
        mine = [o for o in self._contents.tombstones.origins() if self._stay.roster.caretaker_of(o) == self._me]
        held = {origin: self._contents.tombstones.of_origin(origin) for origin in mine}
        durable = self._contents.durable
        on_disk = {key: version for group in held.values() for key, version in group.items() if durable(key)}
        self._removals.adopt(on_disk, now_ns, wall_ms)
        if not held or self.why_not(now_ns):
            return False
        before_ms = wall_ms - self._settings.tombstone_min_age_ms
        by_ns = now_ns - self._settings.known_ns
        marks = []
        for origin, group in held.items():
            unconfirmed = [key for key, version in group.items() if not self._removals.confirmed(key, version, by_ns)]
            marks.append((origin, mark_of(group, unconfirmed, before_ms)))
        return self._contents.settled.merge(marks)

    def why_not(self, now_ns: int) -> str:
        """What keeps this node from settling anything, in words; empty when nothing does."""
        roster = self._stay.roster
        others = {replica.node: replica.tenure for replica in roster.replicas if replica.node != self._me}
        lacking = sorted(name for name, tenure in others.items() if self._compared.get(name) != tenure)
        if not self._stay.counts:
            return "this replica is not on the roster"
        if not self._contents.tombstones_learned:
            return "its tombstones are being read"
        if lacking:
            return f"not compared yet with {', '.join(lacking)}"
        if self.fresh_ns is None or now_ns - self.fresh_ns > self._settings.fresh_ns:
            age = "never" if self.fresh_ns is None else f"{(now_ns - self.fresh_ns) // MS} ms ago"
            return f"the roster was last confirmed {age}"
        return ""
