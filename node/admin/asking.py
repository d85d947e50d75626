"""Until when whoever asked waits: each request's own, for the handlers that have to end before."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from node.core.clock import MS, Clock

ANSWER_MS: Final = 500  # for the answer itself: writing it, its way back, a busy machine
ASK_MS_MIN: Final = 100
# No answer takes longer: what does is an operation, which is asked for again and again.
TIMEOUT_MS_MAX: Final = 120_000

# Monotonic nanoseconds; None outside a request.
ends_ns: Final[ContextVar[int | None]] = ContextVar("ends_ns", default=None)


def in_time_ns(margin_ms: int) -> int | None:
    """When something has to be over that the answer waits for, so that `margin_ms` are left for the answer itself."""
    found = ends_ns.get()
    return None if found is None else found - margin_ms * MS


def still_waits(clock: Clock) -> bool:
    """Whether whoever asked would still see an answer."""
    end_ns = in_time_ns(ANSWER_MS)
    return end_ns is not None and clock.mono_ns() < end_ns


def patience_ms(clock: Clock, most_ms: int) -> int:
    """How long to wait for somebody else's word: `most_ms`, or less when whoever asked would be gone by then and never
    see what the others said."""
    end_ns = in_time_ns(ANSWER_MS)
    return most_ms if end_ns is None else max(ASK_MS_MIN, min(most_ms, (end_ns - clock.mono_ns()) // MS))
