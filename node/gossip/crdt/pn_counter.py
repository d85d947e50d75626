"""A counter that goes up and down: two that only grow, one of each direction.

Keeping one signed number for each writer would not do: of two such numbers nobody could tell which is the later one.
"""

from __future__ import annotations

import msgspec

from node.gossip.crdt.g_counter import GCounter


class PnCounter(msgspec.Struct, frozen=True):
    """`ups` and `downs` by writer; writers as in `GCounter`."""

    ups: GCounter = GCounter()
    downs: GCounter = GCounter()

    @property
    def value(self) -> int:
        return self.ups.value - self.downs.value

    def add(self, writer: str, amount: int = 1) -> PnCounter:
        """The delta; a negative amount counts down."""
        if amount < 0:
            return PnCounter(downs=self.downs.add(writer, -amount))
        return PnCounter(ups=self.ups.add(writer, amount))

    def merge(self, other: PnCounter) -> PnCounter:
        """What both know: full states and deltas alike."""
        return PnCounter(self.ups.merge(other.ups), self.downs.merge(other.downs))
