"""A node whose executors take nothing more, which nothing from outside could bring about for so long; run in place of
`python -m node`:

    python burdened_node.py SECONDS MEMBERS OUT --config FILE

Once so many members are up it is burdened for so long, writes what it has seen to OUT, and stops as by SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from node import main
from node.actors.bus import Subscription
from node.core.clock import MS, SECOND
from node.core.limits import executor_threads
from node.engine.engine import Engine
from node.engine.events import EVENTS
from node.gossip.member import Status
from node.wiring.process import Process

STEP_S = 0.01


def fill_executors(engine: Engine) -> int:
    """Gives every executor blocking work until it takes no more; how many were filled."""
    full = 0
    for name in executor_threads:
        while engine.world.execute(name, time.sleep, (STEP_S,), lambda _: None):
            pass
        full += 1
    return full


async def formed(engine: Engine, members: int) -> None:
    """Returns once so many members are up."""
    done = asyncio.Event()

    def look(subscription: Subscription) -> None:
        while subscription.take() is not None:
            pass
        if sum(m.status is Status.UP for m in engine.membership.state.members.values()) >= members:
            done.set()

    subscription = engine.system.bus.subscribe(EVENTS, look)
    look(subscription)
    await done.wait()
    subscription.close()


async def carry(engine: Engine, seconds: float, members: int, out: Path) -> None:
    await formed(engine, members)
    until = time.monotonic() + seconds
    told = engine.events.count
    full = turns = 0
    while time.monotonic() < until:
        full += fill_executors(engine)
        turns += 1
        await asyncio.sleep(STEP_S)
    assert engine.membership._part is not None
    watched = engine.membership._part._watch._arrivals
    beats = round(seconds * SECOND / engine.config.membership.heartbeat_ns) * 3 // 4
    seen: dict[str, Any] = {
        "full": full,
        "turns": turns,
        "gaps_ms": {peer.name: [gap // MS for gap in list(a._intervals)[-beats:]] for peer, a in watched.items()},
        "unreachable": [
            event.text
            for event in list(engine.events.kept)[told - engine.events.count :]
            if event.topic == "node.unreachable"
        ],
        "pause_ms": engine.config.membership.acceptable_pause_ns // MS,
    }
    await asyncio.to_thread(out.write_text, json.dumps(seen))
    os.kill(os.getpid(), signal.SIGTERM)


def burdened(seconds: float, members: int, out: Path) -> type[Process]:
    class Burdened(Process):
        async def start(self) -> None:
            await super().start()
            assert self._engine is not None
            self._keep(carry(self._engine, seconds, members, out), "burden")

    return Burdened


if __name__ == "__main__":
    how_long, count, result, *rest = sys.argv[1:]
    main.Process = burdened(float(how_long), int(count), Path(result))  # type: ignore[misc]
    sys.exit(main.run(rest))
