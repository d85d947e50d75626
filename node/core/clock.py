"""The clock port: the only place that reads real time.

Monotonic time is integer nanoseconds, so that sums never lose precision; it is compared only within one process
(a lease compares it at the store, see `node.store.port`). Wall time is integer milliseconds since the epoch and is
used where a person reads it, for times to live and for the hybrid logical clock.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

US = 1_000
MS = 1_000_000
SECOND = 1_000_000_000


class Moment(NamedTuple):
    """One moment by both clocks: `wall_ms`, which jumps, says which day it is, and is compared with what others say;
    `mono_ms` says how much time has passed in this process."""

    wall_ms: int
    mono_ms: int


class Clock(Protocol):
    """Monotonic nanoseconds and wall milliseconds behind one port."""

    def mono_ns(self) -> int:
        """Nanoseconds since an arbitrary start; never goes back."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch; may jump."""
        ...


class SystemClock:
    """The machine's clocks."""

    mono_ns = staticmethod(time.monotonic_ns)  # itself, not a call of it: the dispatcher reads it for every message

    def wall_ms(self) -> int:
        return time.time_ns() // MS


class ManualClock:
    """A clock that moves only when told; tests and the simulator drive it."""

    def __init__(self, mono_ns: int = 0, wall_ms: int = 1_700_000_000_000) -> None:
        self._mono_ns = mono_ns
        self._wall_offset_ms = wall_ms - mono_ns // MS

    def mono_ns(self) -> int:
        return self._mono_ns

    def wall_ms(self) -> int:
        return self._wall_offset_ms + self._mono_ns // MS

    def advance_ns(self, delta_ns: int) -> None:
        if delta_ns < 0:
            raise ValueError("monotonic time does not go back")
        self._mono_ns += delta_ns

    def step_wall_ms(self, delta_ms: int) -> None:
        """Somebody sets the wall clock, forwards or back."""
        self._wall_offset_ms += delta_ms


def rfc3339(wall_ms: int) -> str:
    """UTC with milliseconds and `Z`, the only form machines are given."""
    return datetime.fromtimestamp(wall_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
