"""How far a replica that was not complete has come, over all the rounds that it takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Fill:
    """`total` is the most leaves that ever differed at once, `remaining` how many still did when last looked at. A cut
    loses nothing of it: the next round finds fewer leaves different, and `ratio` never falls."""

    total: int = 0
    remaining: int = 0
    entries: int = 0
    bytes: int = 0
    discarded: int = 0
    ratio: float = 0.0

    def found(self, leaves: int) -> None:
        """A round begins with so many leaves that differ."""
        self.total = max(self.total, leaves)
        self.left(leaves)

    def left(self, leaves: int) -> None:
        """So many leaves are still to be worked through."""
        self.remaining = leaves
        if self.total:
            self.ratio = max(self.ratio, 1 - leaves / self.total)

    def took(self, entries: int, size: int) -> None:
        self.entries += entries
        self.bytes += size
