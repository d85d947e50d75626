"""Messages that wait for their shard's home: bounded, each with its own deadline, given back in order.

What the actors bounced was sent before anything that arrived while the shard was stopping, and what the former owner
passed on before anything that was held back for it: both leave first.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from node.wire.envelope import Envelope


@dataclass(frozen=True, slots=True)
class Waiting:
    """One message: relayed `hops` times so far, here since `since_ns`, refused at `until_ns`."""

    envelope: Envelope
    hops: int
    until_ns: int
    since_ns: int


@dataclass(slots=True)
class ShardBuffer:
    """What waits for one shard."""

    bounced: list[Waiting] = field(default_factory=list)
    arrived: list[Waiting] = field(default_factory=list)
    earliest_ns: int = 1 << 63

    def __len__(self) -> int:
        return len(self.bounced) + len(self.arrived)

    def add_arrived(self, waiting: Waiting) -> None:
        self.arrived.append(waiting)
        self.earliest_ns = min(self.earliest_ns, waiting.until_ns)

    def add_bounced(self, waiting: Waiting) -> None:
        self.bounced.append(waiting)
        self.earliest_ns = min(self.earliest_ns, waiting.until_ns)

    def in_order(self) -> list[Waiting]:
        return self.bounced + self.arrived

    def expire(self, now_ns: int) -> list[Waiting]:
        """Take out what has waited too long; costs nothing while nothing has."""
        if now_ns < self.earliest_ns:
            return []
        late = [w for w in self.in_order() if w.until_ns <= now_ns]
        self.bounced = [w for w in self.bounced if w.until_ns > now_ns]
        self.arrived = [w for w in self.arrived if w.until_ns > now_ns]
        self.earliest_ns = min((w.until_ns for w in self.in_order()), default=1 << 63)
        return late
