"""Names a handler that holds up its node while it still does, from a thread beside the loop.

A handler that returns late is counted by the dispatcher; this is for the one that may never return, when nothing else
of the node can say so.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType

from node.actors.flight import AtWork
from node.core import limits
from node.core.clock import MS, Clock

_log = logging.getLogger(__name__)
_FRAMES_SHOWN = 6


class StuckRule:
    """Of samples in order: how long the same handler has been seen in all of them, once when that is too long."""

    def __init__(self) -> None:
        self._at: AtWork | None = None
        self._since_ns = 0
        self._told = False

    def look(self, now_ns: int, at: AtWork | None) -> int:
        """Milliseconds when it is time to say so, else 0."""
        if at is None or self._at is None or not at.same_as(self._at):
            self._at, self._since_ns, self._told = at, now_ns, False
            return 0
        held_ms = (now_ns - self._since_ns) // MS
        if self._told or held_ms < limits.handler_stuck_ms:
            return 0
        self._told = True
        return held_ms


class Watchdog:
    """Watches the thread that makes it. `at_work` is called from its own thread: it only reads."""

    def __init__(self, clock: Clock, at_work: Callable[[], AtWork | None]) -> None:
        self._clock = clock
        self._at_work = at_work
        self._watched = threading.get_ident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="node-watchdog", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        rule = StuckRule()
        while not self._stop.wait(limits.watchdog_ms / 1_000):
            at = self._at_work()
            held_ms = rule.look(self._clock.mono_ns(), at)
            if held_ms and at is not None:
                where = _where(sys._current_frames().get(self._watched))  # noqa: SLF001 - the way to read a stack
                _log.error("%s has been at %s for %d ms\n%s", at.ref, at.message_type.__name__, held_ms, where)


def _where(frame: FrameType | None) -> str:
    return "".join(traceback.format_stack(frame)[-_FRAMES_SHOWN:]) if frame is not None else ""
