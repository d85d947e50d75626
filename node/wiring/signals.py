"""Signals of a running node: the first SIGTERM (or SIGINT) drains, the second one skips to the flush; SIGHUP reads the
roster again.

The first signal after the whole cluster was told to stop is that stop's, and not somebody's impatience with this node:
it joins a drain that is under way (P63).
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable

from node.core.errors import OperatingError
from node.engine.engine import Engine
from node.engine.nodeservice import NodeService
from node.wire.keyring import Keyring

_log = logging.getLogger("node")


def on_stop(act: Callable[[], object]) -> None:
    """From now on `act` is called for each signal that tells the process to stop, and nothing else happens."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, act)


class Stops:
    """Tells impatience from what is merely said twice."""

    def __init__(self) -> None:
        self._heard = False
        self._heard_frozen = False

    def impatient(self, *, frozen: bool) -> bool:
        """Whether the signal that comes now means "at once". `frozen`: the whole cluster stops."""
        joins = frozen and not self._heard_frozen
        again = self._heard and not joins
        self._heard = True
        self._heard_frozen |= frozen
        return again


def watch(engine: Engine, service: NodeService, keyring: Keyring) -> None:
    """What signals do to a node that has started."""
    stops = Stops()

    def stop() -> None:
        if stops.impatient(frozen=engine.freezing.on):
            engine.drain.hurry()
        else:
            service.stop(drain=True, reason="a signal", final=True)

    def reload_roster() -> None:
        try:
            keyring.reload()
        except OperatingError as error:
            _log.warning("the roster stays as it was: %s", error.message)

    on_stop(stop)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload_roster)
