"""A node whose store takes its time over one entity; run in place of `python -m node`:

    python slow_writer_node.py KIND/ID SECONDS --config FILE

Every write of that entity reaches the store so much later, as from a disk that has stalled under this one process:
the entity can't finish before, and all its neighbours can.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from node import main
from node.actors.store_driver import StoreDriver
from node.store.port import Answer, Request, WriteState
from node.wiring import stores


def slow(entity: str, seconds: float) -> None:
    """From now on the driver of this process's store holds back the writes of `KIND/ID`."""
    opened = stores.opened

    def held_back(*given: Any) -> StoreDriver:
        driver = opened(*given)
        submit = driver.submit

        def submitted(request: Request, done: Callable[[Answer], None]) -> None:
            if isinstance(request, WriteState) and f"{request.kind}/{request.id}" == entity:
                asyncio.get_running_loop().call_later(seconds, submit, request, done)
            else:
                submit(request, done)

        driver.submit = submitted  # type: ignore[method-assign]
        return driver

    stores.opened = held_back


if __name__ == "__main__":
    which, how_long, *rest = sys.argv[1:]
    slow(which, float(how_long))
    sys.exit(main.run(rest))
