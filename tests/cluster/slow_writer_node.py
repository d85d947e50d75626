"""A node whose store takes its time over some entities; run in place of `python -m node`:

    python slow_writer_node.py KIND/ID[,KIND/ID…] FILE --config FILE

Every write of those waits until FILE exists, as from a disk that has stalled under this one process: they can't finish
before, and all their neighbours can. FILE.held says that one waits.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from node import main
from node.actors.store_driver import StoreDriver
from node.store.port import Answer, Request, WriteState
from node.wiring import stores

LOOK_S = 0.05


def slow(entities: Collection[str], goes_on: Path) -> None:
    """From now on the driver of this process's store holds back the writes of these entities."""
    opened = stores.opened

    def held_back(*given: Any) -> StoreDriver:
        driver = opened(*given)
        submit = driver.submit

        def submitted(request: Request, done: Callable[[Answer], None]) -> None:
            waits = isinstance(request, WriteState) and f"{request.kind}/{request.id}" in entities
            if waits and not goes_on.exists():
                goes_on.with_suffix(".held").touch()
                asyncio.get_running_loop().call_later(LOOK_S, submitted, request, done)
            else:
                submit(request, done)

        driver.submit = submitted  # type: ignore[method-assign]
        return driver

    stores.opened = held_back


if __name__ == "__main__":
    which, file, *rest = sys.argv[1:]
    slow(which.split(","), Path(file))
    sys.exit(main.run(rest))
