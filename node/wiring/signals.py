"""Signals of a running node: the first SIGTERM (or SIGINT) drains, the second one skips to the flush; SIGHUP reads the
roster again.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable

from node.core.errors import OperatingError
from node.engine.draining import NodeDrain
from node.engine.nodeservice import NodeService
from node.wire.keyring import Keyring

_log = logging.getLogger("node")


def on_stop(act: Callable[[], object]) -> None:
    """From now on `act` is called for each signal that tells the process to stop, and nothing else happens."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, act)


def watch(service: NodeService, drain: NodeDrain, keyring: Keyring) -> None:
    """What signals do to a node that has started."""
    told = False

    def stop() -> None:
        nonlocal told
        if told:
            drain.hurry()
        else:
            told = True
            service.stop(drain=True, reason="a signal", final=True)

    def reload_roster() -> None:
        try:
            keyring.reload()
        except OperatingError as error:
            _log.warning("the roster stays as it was: %s", error.message)

    on_stop(stop)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload_roster)
