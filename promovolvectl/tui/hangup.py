"""Ends the process when its terminal is gone. The kernel tells who has it as controlling terminal, by SIGHUP; anybody
else is told nothing: reading gives nothing for ever, and what is written waits for a thread that has failed.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from typing import Final, TextIO

from promovolvectl.client.exit_codes import ExitStatus

GRACE_S: Final = 5.0  # to end by itself: longer, and what it waits for is the terminal that is gone


def watch(stream: TextIO) -> None:
    """From now on, where that is a terminal; what stands in for one has no descriptor to be watched."""
    if stream.isatty():
        threading.Thread(target=_until_gone, args=(stream.fileno(),), name="hangup", daemon=True).start()


def _until_gone(descriptor: int) -> None:
    hung_up = select.poll()
    hung_up.register(descriptor, 0)  # no input, no room: POLLHUP and POLLERR alone wake it
    while not hung_up.poll():
        pass
    os.kill(os.getpid(), signal.SIGHUP)
    threading.Event().wait(GRACE_S)
    os._exit(ExitStatus.HANGUP)
