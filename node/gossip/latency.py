"""How long writes take to be on other replicas: counts by bounds, cheap enough for every write and peer."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

from node.core.clock import MS

BOUNDS_MS: Final = (5, 10, 20, 50, 100, 200, 500, 1_000, 5_000, 30_000)


class LatencyCounts(NamedTuple):
    """`counts`: writes that took at most each of `BOUNDS_MS`, and last those that took longer, each counted once;
    `sum_ms` of all of them."""

    counts: tuple[int, ...]
    sum_ms: float


class Latency:
    """From a write until a peer has acknowledged it, one sample for each peer in reach."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_MS) + 1)
        self._sum_ns = 0

    def add(self, took_ns: int) -> None:
        self._counts[bisect_left(BOUNDS_MS, took_ns / MS)] += 1
        self._sum_ns += took_ns

    def counts(self) -> LatencyCounts:
        return LatencyCounts(tuple(self._counts), self._sum_ns / MS)
