"""A grow-only counter: what each writer has added, the sum of which is the value.

A writer is a start of a node (`name@incarnation`), not the node: whoever starts again may have lost what it had told
others already, and would count over it. So a restart, and a return under another tenure, is another writer, and a
counter grows by one number for each start that counted.
"""

from __future__ import annotations

import msgspec

from node.core.errors import BadInput


class GCounter(msgspec.Struct, frozen=True):
    """`counts` by writer, each above 0, never changed in place."""

    counts: dict[str, int] = {}

    @property
    def value(self) -> int:
        return sum(self.counts.values())

    def add(self, writer: str, amount: int = 1) -> GCounter:
        """The delta: what the writer has added in all, so that a lost delta is made good by its next one. Nothing is
        added by 0; raises BadInput below that."""
        if amount < 0:
            raise BadInput("amount", f"{amount} would make a grow-only counter smaller")
        total = self.counts.get(writer, 0) + amount
        return GCounter({writer: total} if total else {})

    def merge(self, other: GCounter) -> GCounter:
        """What both know: full states and deltas alike."""
        merged = dict(self.counts)
        for writer, count in other.counts.items():
            merged[writer] = max(merged.get(writer, 0), count)
        return GCounter(merged)
