"""The split-brain decisions that this node took, this start and earlier ones: bounded, durable, and never lost to a
line that can't be read."""

from __future__ import annotations

import msgspec

from node.core.clock import Clock
from node.core.limits import decision_age_days_max
from node.gossip.splitbrain import Decision
from node.store.journal import Journal

_DAY_MS = 86_400_000


class DecisionLog:
    """`unreadable` counts lines that are no decision of this release."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self.unreadable = 0

    def add(self, decision: Decision) -> str:
        """Write one down; returns what went wrong, empty when it is durable. It can be read either way."""
        try:
            self._journal.append(msgspec.json.encode(decision))
        except OSError as error:
            return f"decision {decision.id} is not on disk: {error.strerror}"
        return ""

    def newest(self, limit: int) -> tuple[Decision, ...]:
        """The newest ones, oldest first."""
        since_ms = self._clock.wall_ms() - decision_age_days_max * _DAY_MS
        found: list[Decision] = []
        self.unreadable = 0
        for line in self._journal.lines():
            try:
                found.append(msgspec.json.decode(line, type=Decision))
            except (msgspec.DecodeError, RecursionError):
                self.unreadable += 1
        return tuple(d for d in found if d.at_ms >= since_ms)[-limit:]
