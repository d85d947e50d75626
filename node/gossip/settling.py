"""Settled tombstones: those that may be forgotten everywhere (I3).

A tombstone is settled when every replica of the roster has acknowledged it and the least age has passed. That is said
by *marks*: per origin a clock value up to which all its tombstones are settled. Marks only grow, travel with every
comparison, and are merged by taking the greater one; a tombstone below its origin's mark counts as lapsed
(`node.gossip.lww`): whoever meets it forgets it, leaves it out of comparisons, and fetches it from nobody. So a replica
that has forgotten it does not take it again from one that hasn't, and both agree after one round in which no entry
moved. Marks are not durable: who lost them learns them from the first comparison, and in a cluster that has lost them
all, what comes back of settled tombstones is confirmed and settled once more.

A mark is raised by the origin's caretaker alone (`ReplicaRoster.caretaker_of`), and only when it can't be wrong:

- it has confirmed all tombstones of the origin that it knows of, up to the mark, at every replica of the roster, and
  that not just now: they have had them for three quarters of the least age;
- it knows all of them: it has indexed its file, and compared itself wholly with every replica of the roster, under that
  replica's tenure, since its start. One it has never heard of is younger than that, or a message that travelled for
  longer than the least age;
- its roster was the present one a short while ago (a quarter of the least age). A replica that joined later had
  compared itself within such a while before it asked to, with one that had every such tombstone by then.

With these no replica of the roster holds anything older than a settled tombstone. One that is not on it discards what
its peers don't have before it offers anything, and does so again unless a comparison within such a while has shown
that it still has what they have (`node.gossip.stay`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from node.core.hlc import COUNTER_BITS
from node.gossip.version import Version

Marks = tuple[tuple[str, int], ...]


class Settled:
    """The marks this replica knows."""

    def __init__(self) -> None:
        self._marks: dict[str, int] = {}
        self.revision = 0  # grows with them

    def covers(self, origin: str, hlc: int) -> bool:
        """Whether a tombstone of that version is settled."""
        return hlc <= self._marks.get(origin, 0)

    def mark(self, origin: str) -> int:
        return self._marks.get(origin, 0)

    def merge(self, marks: Iterable[tuple[str, int]]) -> bool:
        """Takes the greater marks; says whether one has grown."""
        grown = False
        for origin, hlc in marks:
            if hlc > self._marks.get(origin, 0):
                self._marks[origin] = hlc
                grown = True
        self.revision += grown
        return grown

    def marks(self) -> Marks:
        return tuple(sorted(self._marks.items()))


def mark_of(tombstones: Mapping[str, Version], unconfirmed: Iterable[str], before_ms: int) -> int:
    """The mark up to which an origin's tombstones are settled: below the oldest that is `unconfirmed` and that was
    written at `before_ms` or later; 0 when that covers none."""
    bound = (before_ms << COUNTER_BITS) - 1
    oldest = min((tombstones[key].hlc for key in unconfirmed), default=bound + 1)
    return max((v.hlc for v in tombstones.values() if v.hlc <= bound and v.hlc < oldest), default=0)
