"""The stop of a whole cluster: nothing is moved because nodes go away. It ends by itself, should nobody go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from node.core.clock import MS
from node.core.limits import freeze_ms_max
from node.engine.messages import Freeze, NodeDone
from node.wire.envelope import Envelope

if TYPE_CHECKING:
    from node.engine.engine import Engine


class Freezing:
    """Registers itself with the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._until_ns = 0
        engine.services[Freeze] = self._wanted

    @property
    def on(self) -> bool:
        return self._until_ns > 0

    def tick(self, now_ns: int) -> None:
        """A freeze that is over, and not followed by a stop, was somebody's who went away."""
        engine = self._engine
        if not 0 < self._until_ns <= now_ns or engine.drain.active:
            return
        self._until_ns = 0
        engine.sharding.step_up()
        engine.emit("cluster.thawed", "cluster", "nobody stopped this node; its coordinator may act again")

    def _wanted(self, envelope: Envelope) -> None:
        engine = self._engine
        changed = not self.on
        self._until_ns = engine.world.clock.mono_ns() + freeze_ms_max * MS
        engine.sharding.step_down()
        engine.reply(envelope, NodeDone(changed))
