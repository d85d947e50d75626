"""A process's memory: given back to the system when much of it is free, and searched for cycles rarely.

What the allocator keeps stays resident until somebody needs it. Measured (100,000 entities of 700 bytes, all
passivated): 7 MB stay without asking, for 2 ms of work. Only glibc can.

Entities hold one another by names, so nearly everything ends when its last reference does, and what lives is much. Left
to its defaults the collector of cycles goes through all of that again and again while decisions are remembered: a sixth
of a page view's time, in pauses that are its 99th percentile.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable

from node.core.limits import gc_middle_max, gc_old_max, gc_young_objects_max


def _trim() -> Callable[[int], object] | None:
    try:
        found: Callable[[int], object] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    except OSError:
        return None  # no C library to be asked, or one that is hidden
    return found


_TRIM = _trim()


def search_rarely() -> None:
    """From now on; at the start of a process."""
    gc.set_threshold(gc_young_objects_max, gc_middle_max, gc_old_max)


def settle() -> None:
    """What there is now (modules, tables, machines) lives as long as the process: it is not looked at any more."""
    gc.collect()
    gc.freeze()


def give_back() -> None:
    """To be called when much was freed; does nothing where the C library can't."""
    if _TRIM is not None:
        _TRIM(0)
