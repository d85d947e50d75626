"""Whether a node takes work, check by check, and how far its start has come. Pure, but for what has held once.

A check that *latches* stays good once it was: what every node would lose at once (a coordinator, a store) must not take
every node out of service at once, since those that go on can answer most requests.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """`reason` says what is lacking, empty when nothing is."""

    name: str
    reason: str
    latches: bool = False

    @property
    def ok(self) -> bool:
        return not self.reason


class Latches:
    """Which latching checks were good before."""

    def __init__(self) -> None:
        self._held: set[str] = set()

    def look(self, checks: tuple[Check, ...]) -> tuple[Check, ...]:
        """The checks as they count now."""
        self._held |= {check.name for check in checks if check.latches and check.ok}
        return tuple(Check(c.name, "", latches=True) if c.name in self._held else c for c in checks)
