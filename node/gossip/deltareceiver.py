"""The receiving half of the deltas (`node.gossip.deltalog`): which numbers of each peer's stream have arrived."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from node.core import limits
from node.gossip.replica_messages import Delta, DeltaAck, WireEntry


@dataclass(slots=True)
class Arrived:
    """What came of one peer's stream: everything up to `upto`, and these ranges behind a gap."""

    stream: int
    upto: int
    ahead: list[tuple[int, int]] = field(default_factory=list)

    def advance(self, upto: int) -> None:
        """Everything up to a number is there, and what was ahead and now adjoins."""
        self.upto = max(self.upto, upto)
        while self.ahead and self.ahead[0][0] <= self.upto + 1:
            self.upto = max(self.upto, self.ahead.pop(0)[1])

    def add(self, first: int, last: int) -> None:
        """A range behind a gap is there; ranges that touch become one."""
        ranges: list[tuple[int, int]] = []
        for low, high in sorted([*self.ahead, (first, last)]):
            if ranges and low <= ranges[-1][1] + 1:
                ranges[-1] = (ranges[-1][0], max(high, ranges[-1][1]))
            else:
                ranges.append((low, high))
        self.ahead = ranges[: limits.replica_ranges_ahead_max]


class DeltaReceiver:
    """The streams of all peers."""

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self._arrived: dict[str, Arrived] = {}

    def receive(self, sender: str, delta: Delta) -> tuple[tuple[WireEntry, ...], DeltaAck]:
        """The entries of a batch that may be new, and the acknowledgement to send."""
        arrived = self._arrived.get(sender)
        if arrived is None or arrived.stream != delta.stream:
            arrived = self._arrived[sender] = Arrived(delta.stream, delta.since)
        arrived.advance(delta.since)
        last = delta.first + len(delta.entries) - 1
        if delta.first > arrived.upto + 1:
            self.counters["delta_gaps"] += 1
            arrived.add(delta.first, last)
            fresh = delta.entries
        else:
            fresh = delta.entries[arrived.upto + 1 - delta.first :]
            arrived.advance(last)
        gap_to = arrived.ahead[0][0] - 1 if arrived.ahead else 0
        return fresh, DeltaAck(delta.stream, arrived.upto, gap_to)
