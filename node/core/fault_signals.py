"""Faults for real processes: kill -9 or SIGSTOP of this process at a named step, armed from its environment."""

from __future__ import annotations

import os
import signal
import threading
from typing import Final

from node.core import faultpoints
from node.core.errors import OperatingError

FAULT_AT: Final = "PROMOVOLVE_FAULT_AT"
_SIGNALS: Final = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def arm_from_environment() -> str:
    """Arms what PROMOVOLVE_FAULT_AT says, `POINT:kill|stop[:N]`, N being the how manieth time the point is reached.

    Returns it, empty when nothing is armed. Raises OperatingError `E-CONFIG`.
    """
    wanted = os.environ.get(FAULT_AT, "")
    if not wanted:
        return ""
    point, _, rest = wanted.partition(":")
    verb, _, nth = rest.partition(":")
    known = faultpoints.POINTS.keys() | faultpoints.COMMAND_POINTS.keys()
    if point not in known or verb not in _SIGNALS or not (nth or "1").isdecimal():
        raise OperatingError("E-CONFIG", f"{FAULT_AT}={wanted!r}: wanted is POINT:kill|stop[:N], POINT one of the list")
    left = int(nth or "1")

    def hook(reached: str) -> None:
        nonlocal left
        left -= reached == point
        if reached == point and left == 0:
            # To this thread: a signal to the process may stop it through another one, and this one would run on.
            signal.pthread_kill(threading.get_ident(), _SIGNALS[verb])

    faultpoints.arm(hook)
    return wanted
