"""Order across a move (I6): what a node sent to the old owner arrives before what it sends to the new one.

When a region learns of a new owner, messages that it sent to the old one may still be on their way, and are passed on
from there. It sends a marker after them, over the same lane, and holds back what comes later until the marker has come
through: from the old owner, behind everything that waits there, to whoever owns the shard now, and back as `Passed`.
Where the old owner is gone, or the marker is lost, the hold ends by itself: order is then not known, and counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from node.core import limits
from node.sharding.messages import Passing


@dataclass(slots=True)
class Hold:
    """What this node sends for a shard waits for the marker of `epoch`, sent by way of the node `via`."""

    epoch: int
    via: str
    ticks: int = limits.passage_ticks_max


@dataclass(slots=True)
class Passages:
    """One region's: `used` shards have been sent somewhere else since their owner was learned; `holds` wait here for
    this node's markers, `markers` of others wait for the shard's way to be known here, by origin."""

    used: set[int] = field(default_factory=set)
    holds: dict[int, Hold] = field(default_factory=dict)
    markers: dict[int, dict[str, Passing]] = field(default_factory=dict)
    unordered: int = 0

    def hold(self, shard: int, epoch: int, via: str) -> bool:
        """Begin to hold, unless something is held already: that marker finds its way to the newest owner as well."""
        if shard not in self.used or shard in self.holds:
            return False
        self.used.discard(shard)
        self.holds[shard] = Hold(epoch, via)
        return True

    def passed(self, shard: int, epoch: int) -> bool:
        """Whether this ends a hold."""
        hold = self.holds.get(shard)
        if hold is None or hold.epoch != epoch:
            return False
        del self.holds[shard]
        return True

    def lapse(self) -> list[int]:
        """Time passes: the shards whose markers did not come back."""
        for hold in self.holds.values():
            hold.ticks -= 1
        return self._end([shard for shard, hold in self.holds.items() if hold.ticks <= 0])

    def without(self, live: frozenset[str]) -> list[int]:
        """The shards whose markers went by way of a node that is gone."""
        return self._end([shard for shard, hold in self.holds.items() if hold.via not in live])

    def _end(self, shards: list[int]) -> list[int]:
        for shard in shards:
            del self.holds[shard]
        self.unordered += len(shards)
        return shards
