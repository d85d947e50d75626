"""Ctrl-C while nothing has been asked of anybody yet, or no more: the process ends, without a word.

What is loaded before a command runs takes a moment, and an interrupt in it would show where in our imports it came.
While the command itself runs an interrupt is an exception, so that the command can say how to go on. This module is
loaded before all others, and loads nothing that takes time.
"""

import os
import signal
from types import FrameType

INTERRUPTED = 130


def hushed() -> None:
    """From now on an interrupt ends the process; not where whoever started us wants none, or keeps his own handler."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def heard() -> None:
    """From now on an interrupt is a KeyboardInterrupt again, where it was `hushed`."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
