"""Who is registered in a category: kept by the directory, read by each bidder in parts, and only when it has changed.

Both keep a digest of the set, the exclusive or of its names' hashes. So a bidder says what it has in one number, and a
directory that has just started agrees with the one before it as soon as the same campaigns have registered. A register
that changes while it is read comes out with another digest than the directory's, and is read once more.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from node.ads import messages as m
from node.core.hashing import digest8
from node.core.limits import register_names_max

UNREAD = -1  # the digest of a register that was never read


class Register:
    """The campaigns of one category."""

    def __init__(self, category: str) -> None:
        self._category = category
        self._names: list[str] = []  # in order
        self._digest = 0

    def __len__(self) -> int:
        return len(self._names)

    def add(self, campaign: str) -> None:
        at = bisect_left(self._names, campaign)
        if self._names[at : at + 1] != [campaign]:
            self._names.insert(at, campaign)
            self._digest ^= _number(campaign)

    def remove(self, campaign: str) -> None:
        at = bisect_left(self._names, campaign)
        if self._names[at : at + 1] == [campaign]:
            del self._names[at]
            self._digest ^= _number(campaign)

    def told(self, after: str, known: int, *, settled: bool) -> m.CampaignsFor:
        """The answer to one who has read up to `after`, or who holds a register with the digest `known`."""
        if known == self._digest:
            return m.CampaignsFor(self._category, (), settled, unchanged=True)
        begin = bisect_right(self._names, after)
        end = begin + register_names_max
        return m.CampaignsFor(self._category, tuple(self._names[begin:end]), settled, more=end < len(self._names))


class Reading:
    """A register on its way to a bidder, part by part."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.digest = 0
        self.settled = True

    @property
    def after(self) -> str:
        return self.names[-1] if self.names else ""

    def hear(self, part: m.CampaignsFor) -> None:
        """One that began before the directory was settled is not settled, whatever its last part says."""
        self.settled = self.settled and part.settled
        for name in part.campaigns:
            self.digest ^= _number(name)
        self.names += part.campaigns


def _number(campaign: str) -> int:
    return int.from_bytes(digest8(campaign)) >> 1  # a whole number of the wire has 63 bits
