"""How a market's people reach the cluster: by whichever node a balancer in front would choose, again until told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from node.core.clock import MS
from node.core.ids import Ref
from node.sim import history as h
from node.sim.host import Host
from node.sim.outcomes import judge
from node.sim.scheduler import START_WALL_MS
from node.sim.world import World

TIMEOUT_MS: Final = 5_000
VIEW_TIMEOUT_MS: Final = 2_000
RETRY_MS: Final = 700


class Edge:
    """`say` asks until it is acknowledged; `stop` lets nothing begin that is not asked for yet."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._rng = world.scheduler.derive("market/edge")
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    @property
    def now_ms(self) -> int:
        """Wall time, true."""
        return START_WALL_MS + self.world.scheduler.now_ns // MS

    def after(self, seconds: float, what: Callable[..., object], *args: Any) -> None:
        self.world.scheduler.after(round(seconds * 1_000) * MS, self._unless_stopped, what, args)

    def _unless_stopped(self, what: Callable[..., object], args: tuple[Any, ...]) -> None:
        if not self._stopped:
            what(*args)

    def ask(
        self, to: Ref, message: msgspec.Struct, then: Callable[[Any], object], timeout_ms: int = VIEW_TIMEOUT_MS
    ) -> None:
        self.world.ask(self._host(), to, message, timeout_ms, then)

    def act(
        self,
        verb: str,
        key: tuple[str, ...],
        to: Ref,
        message: msgspec.Struct,
        then: Callable[[h.Op], object],
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        """An ask that the checkers of the end hold the store to."""
        world, host = self.world, self._host()
        op = world.history.begin(verb, key, host.name, world.scheduler.now_ns)

        def ended(outcome: Any) -> None:
            op.ended_ns = world.scheduler.now_ns
            op.outcome, op.detail, op.answer = judge(outcome)
            then(op)

        world.ask(host, to, message, timeout_ms, ended)

    def say(
        self, verb: str, key: tuple[str, ...], to: Ref, message: msgspec.Struct, then: Callable[[], object]
    ) -> None:
        def ended(op: h.Op) -> None:
            if op.outcome is h.Outcome.OK:
                then()
            else:
                self.after(RETRY_MS / 1_000, self.say, verb, key, to, message, then)

        self.act(verb, key, to, message, ended)

    def _host(self) -> Host:
        hosts = list(self.world.hosts.values())
        ready = [host for host in hosts if _takes_work(host)] or hosts
        return ready[self._rng.randrange(len(ready))]


def _takes_work(host: Host) -> bool:
    process = host.process
    engine = process.engine if process is not None and not process.paused else None
    return engine is not None and engine.view.joined and engine.drain.accepts_work


def nothing() -> None:
    """What follows is nobody's business."""
