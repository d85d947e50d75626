"""Looking for damage before anybody asks for it: a few records at a time, in the order of their keys.

The embedded store has no checksums of its own and reads most flipped bits without an error; each record carries one.
"""

from __future__ import annotations

import msgspec

from node.core import limits
from node.core.clock import MS


class VerifyRecords(msgspec.Struct, frozen=True):
    """Check records behind the place `after`. → Verified. Where a server checks its own pages there are none."""

    after: bytes = b""
    limit: int = limits.scrub_records


class Verified(msgspec.Struct, frozen=True):
    """`checked` records, of which those named in `damaged` are not what was written; go on behind `after`, which is
    empty at the end."""

    checked: int
    damaged: tuple[str, ...]
    after: bytes


class Scrub:
    """Goes round a store for ever, slowly. What its driver owes: it asks what `tick` says and hands the answer back.

    `damaged`: what the present round and the one before have found.
    """

    def __init__(self) -> None:
        self._after = b""
        self._due_ns = 0
        self._waits = False
        self._found: set[str] = set()
        self._before: frozenset[str] = frozenset()
        self.checked = 0
        self.rounds = 0

    @property
    def damaged(self) -> tuple[str, ...]:
        return tuple(sorted(self._before | self._found))

    def tick(self, now_ns: int) -> VerifyRecords | None:
        """The next few records, when it is time."""
        if self._waits or now_ns < self._due_ns:
            return None
        self._waits = True
        self._due_ns = now_ns + limits.scrub_pause_ms * MS
        return VerifyRecords(self._after)

    def answered(self, answer: object) -> None:
        """The answer to the last request; one that failed is asked again in its time."""
        self._waits = False
        if not isinstance(answer, Verified):
            return
        self.checked += answer.checked
        self._found.update(answer.damaged)
        self._after = answer.after
        if not answer.after:
            self.rounds += 1
            self._before, self._found = frozenset(self._found), set()
