"""A projection made again from the log's first fact, to compare with the one that is stored: pure.

Pages of stored rows are compared in the order of their keys, each with what the facts up to that page's own offset
make: so a projection that goes on while it is looked at can be told from one that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from node.flows.follower import Projection
from node.store.port import StoredFact


class Recount:
    """`rows` are those that the facts up to offset `at` make."""

    def __init__(self, projection: Projection) -> None:
        self._projection = projection
        self.rows: dict[str, bytes] = {}
        self.at = 0

    def add(self, facts: Sequence[StoredFact]) -> None:
        """Facts that follow those before, in order."""
        if facts:
            self.rows.update(self._projection.fold(facts, self.rows))
            self.at = facts[-1].offset

    def differing(self, after: str, stored: Mapping[str, bytes], *, end: bool) -> list[str]:
        """Keys behind `after` whose rows differ, are missing or are too many, among a page of stored rows in order;
        `end`: nothing is stored behind it."""
        last = max(stored, default=after)
        made = {key for key in self.rows if key > after and (end or key <= last)}
        return sorted(key for key in made | stored.keys() if self.rows.get(key) != stored.get(key))
