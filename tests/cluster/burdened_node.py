"""A node with a burden that nothing from outside could bring about for so long; run in place of `python -m node`:

    python burdened_node.py executors|lanes SECONDS MEMBERS OUT --config FILE

Once so many members are up, which OUT.begun says, every executor takes nothing more, or the data lane to every other
node is full of 900 KiB frames, for so long; then it writes what it has seen to OUT, and stops as by SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from node import main
from node.actors.bus import Subscription
from node.core.clock import MS, SECOND
from node.core.ids import ServiceRef
from node.core.limits import executor_threads
from node.engine.engine import Engine
from node.engine.events import EVENTS
from node.gossip.member import Status
from node.wire.envelope import Envelope, Kind
from node.wire.port import SendOutcome
from node.wire.registry import wire_type
from node.wiring.process import Process

STEP_S = 0.01
FRAME_BYTES = 900 << 10


@wire_type("test.flood")
class Flood(msgspec.Struct, frozen=True):
    payload: bytes


def executors(engine: Engine, counts: dict[str, int]) -> Callable[[], None]:
    """Gives every executor blocking work until it takes no more."""

    def fill() -> None:
        for name in executor_threads:
            while engine.world.execute(name, time.sleep, (STEP_S,), lambda _: None):
                pass
            counts["full"] += 1

    return fill


def lanes(engine: Engine, counts: dict[str, int]) -> Callable[[], None]:
    """Sends to each peer until its lane takes no more. The senders are inside the nodes: one outside would have to be
    as quick as all of them together."""

    def count(_envelope: Envelope) -> None:
        counts["received"] += 1

    engine.services[Flood] = count
    peers = sorted(name for name in engine.membership.state.members if name != engine.me.name)
    message = Flood(os.urandom(FRAME_BYTES))

    def fill() -> None:
        for peer in peers:
            envelope = Envelope(Kind.TELL, ServiceRef(peer, "/node"), engine.me, message)
            while (outcome := engine.world.transport.send(peer, envelope)) is SendOutcome.SENT:
                counts["sent"] += 1
            counts["full"] += outcome is SendOutcome.PEER_BUSY

    return fill


BURDENS = {"executors": executors, "lanes": lanes}


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


async def carry(engine: Engine, burden: str, seconds: float, members: int, out: Path) -> None:
    await formed(engine, members)
    counts = {"full": 0, "sent": 0, "received": 0, "looks": 0}
    fill = BURDENS[burden](engine, counts)
    out.with_suffix(".begun").touch()
    until = time.monotonic() + seconds
    told = engine.events.count
    while time.monotonic() < until:
        fill()
        counts["looks"] += 1
        await asyncio.sleep(STEP_S)
    await asyncio.to_thread(out.write_text, json.dumps(heartbeats(engine, seconds, told) | counts))
    os.kill(os.getpid(), signal.SIGTERM)


def heartbeats(engine: Engine, seconds: float, told: int) -> dict[str, Any]:
    """What the failure detector saw in the last `seconds`, and who was unreachable since so many events were told."""
    assert engine.membership._part is not None
    watched = engine.membership._part._watch._arrivals
    beats = round(seconds * SECOND / engine.config.membership.heartbeat_ns) * 3 // 4
    return {
        "gaps_ms": {peer.name: [gap // MS for gap in list(a._intervals)[-beats:]] for peer, a in watched.items()},
        "unreachable": [
            event.text
            for event in list(engine.events.kept)[told - engine.events.count :]
            if event.topic == "node.unreachable"
        ],
        "pause_ms": engine.config.membership.acceptable_pause_ns // MS,
        "interval_ms": engine.config.membership.heartbeat_ns // MS,
    }


def burdened(burden: str, seconds: float, members: int, out: Path) -> type[Process]:
    class Burdened(Process):
        async def start(self) -> None:
            await super().start()
            assert self._engine is not None
            self._keep(carry(self._engine, burden, seconds, members, out), "burden")

    return Burdened


if __name__ == "__main__":
    which, how_long, how_many, result, *rest = sys.argv[1:]
    main.Process = burdened(which, float(how_long), int(how_many), Path(result))  # type: ignore[misc]
    sys.exit(main.run(rest))
