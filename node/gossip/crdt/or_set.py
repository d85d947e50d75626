"""An observed-remove set without tombstones (Bieniusa et al., 2012; deltas as in Almeida et al., 2018).

Every addition has a *dot* of its own: its writer and a number. An element is in the set while one of its dots is live,
and the context says which dots were ever seen, so that a dot that is seen and not live was removed. A removal takes
away the dots that its replica had observed, and no others: an addition that it did not know of wins.

Merging decides for each dot alone: live here and never seen there, it stays; live here and seen there, it stays only if
it is live there too. That an element is live on one side must never save a dot of it that the other side has seen and
dropped: such a shortcut keeps what was removed (S09).

Writers are starts of nodes, as in `node.gossip.crdt.g_counter`: a dot must never be given out twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec


class Dot(NamedTuple):
    """One addition: the writer's `number`-th, counted from 1."""

    writer: str
    number: int


class Seen(msgspec.Struct, frozen=True):
    """A set of dots in its one shortest form: of each writer all dots `upto` a number, and those `beyond` a gap."""

    upto: dict[str, int] = {}
    beyond: frozenset[Dot] = frozenset()

    def __contains__(self, dot: Dot) -> bool:
        return dot.number <= self.upto.get(dot.writer, 0) or dot in self.beyond

    def last(self, writer: str) -> int:
        """The greatest number seen of a writer, 0 if none."""
        numbers = (dot.number for dot in self.beyond if dot.writer == writer)
        return max(self.upto.get(writer, 0), max(numbers, default=0))

    def union(self, other: Seen) -> Seen:
        upto = dict(self.upto)
        for writer, number in other.upto.items():
            upto[writer] = max(upto.get(writer, 0), number)
        return _shortest(upto, self.beyond | other.beyond)

    def with_dots(self, dots: Iterable[Dot]) -> Seen:
        return _shortest(dict(self.upto), self.beyond | frozenset(dots))


def _shortest(upto: dict[str, int], dots: frozenset[Dot]) -> Seen:
    beyond: set[Dot] = set()
    for dot in sorted(dots):
        reached = upto.get(dot.writer, 0)
        if dot.number == reached + 1:
            upto[dot.writer] = dot.number
        elif dot.number > reached:
            beyond.add(dot)
    return Seen(upto, frozenset(beyond))


class OrSet(msgspec.Struct, frozen=True):
    """`live` dots by element, none without a dot, and all dots ever `seen`; neither is changed in place."""

    live: dict[str, frozenset[Dot]] = {}
    seen: Seen = Seen()

    def __contains__(self, element: str) -> bool:
        return element in self.live

    @property
    def elements(self) -> frozenset[str]:
        return frozenset(self.live)

    def add(self, writer: str, element: str) -> OrSet:
        """The delta: a new dot, in the place of those that the element had here."""
        dot = Dot(writer, self.seen.last(writer) + 1)
        return OrSet({element: frozenset((dot,))}, Seen().with_dots((dot, *self.live.get(element, ()))))

    def remove(self, element: str) -> OrSet:
        """The delta: the dots that the element has here are gone. Of an element that is not here, nothing."""
        return OrSet({}, Seen().with_dots(self.live.get(element, ())))

    def merge(self, other: OrSet) -> OrSet:
        """What both know: full states and deltas alike."""
        live: dict[str, frozenset[Dot]] = {}
        for element in self.live.keys() | other.live.keys():
            here, there = self.live.get(element, frozenset()), other.live.get(element, frozenset())
            kept = here & there
            kept |= {dot for dot in here if dot not in other.seen} | {dot for dot in there if dot not in self.seen}
            if kept:
                live[element] = kept
        return OrSet(live, self.seen.union(other.seen))
