"""What happens to an entity whose handler raised: restart with back-off, or quarantine."""

from __future__ import annotations

from dataclasses import dataclass

from node.core import limits
from node.core.clock import MS
from node.core.rng import Rng

_JITTER = 0.2  # so that entities that failed together don't restart together


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an entity is quarantined: the last error, and the message that caused it by type and size, never by
    content. Without a message it failed at its start."""

    at_ms: int
    error: str
    message_type: str
    message_bytes: int
    failures: int


class Failures:
    """The failures of one entity that still count, oldest first."""

    __slots__ = ("_at_ns",)

    def __init__(self) -> None:
        self._at_ns: list[int] = []

    def __len__(self) -> int:
        return len(self._at_ns)

    def note(self, now_ns: int, restarts_max: int, window_ms: int) -> bool:
        """Adds a failure; True when there are more than `restarts_max` in the window: quarantine."""
        since = now_ns - window_ms * MS
        self._at_ns = [at for at in self._at_ns if at > since]
        self._at_ns.append(now_ns)
        return len(self._at_ns) > restarts_max


def backoff_ns(failures: int, rng: Rng, max_ms: int = limits.restart_backoff_ms_max) -> int:
    """How long to wait before the restart after `failures` (from 1) in the window: doubling, bounded, with jitter."""
    base_ms = min(limits.restart_backoff_ms_min << min(failures - 1, 16), max_ms)
    return round(base_ms * MS * (1 + _JITTER * rng.random()))


def describe(error: BaseException) -> str:
    """One line for an operator; the traceback is in the log."""
    return f"{type(error).__name__}: {error}"[:500]
