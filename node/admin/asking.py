"""Until when whoever asked waits: each request's own, for the handlers that have to end before."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from node.core.clock import MS

# Monotonic nanoseconds; None outside a request.
ends_ns: Final[ContextVar[int | None]] = ContextVar("ends_ns", default=None)


def in_time_ns(margin_ms: int) -> int | None:
    """When something has to be over that the answer waits for, so that `margin_ms` are left for the answer itself."""
    found = ends_ns.get()
    return None if found is None else found - margin_ms * MS
