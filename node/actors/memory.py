"""Gives freed memory back to the system: what the allocator keeps otherwise stays resident until somebody needs it.

Measured (100,000 entities of 700 bytes, all passivated): 7 MB stay without it, for 2 ms of work. Only glibc can.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable


def _trim() -> Callable[[int], object] | None:
    try:
        found: Callable[[int], object] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    except OSError:
        return None  # no C library to be asked, or one that is hidden
    return found


_TRIM = _trim()


def give_back() -> None:
    """To be called when much was freed; does nothing where the C library can't."""
    if _TRIM is not None:
        _TRIM(0)
