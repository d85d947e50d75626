"""Who says that the state store does not answer it: coordinating is nothing for such a node, while there is another.

Only the coordinator's role moves: the singletons need no store, and a store that is away for all must not carry them
from node to node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from node.core.clock import MS
from node.core.ids import NodeId
from node.core.limits import storeless_heard_ms_max, storeless_repeat_ms
from node.engine.messages import NodeStoreless
from node.wire.envelope import Envelope

if TYPE_CHECKING:
    from node.engine.engine import Engine


class Storeless:
    """Registers itself with the engine. What is said is said again while it holds, and silence ends it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._heard: dict[NodeId, int] = {}
        self._said = False
        self._said_ns = 0
        engine.services[NodeStoreless] = self._told

    def nodes(self) -> frozenset[NodeId]:
        """Those that said so lately, this node too."""
        return frozenset(self._heard)

    def tick(self, now_ns: int) -> None:
        on = self._engine.sharding.coordinator.storeless
        if on != self._said:
            about = f"node/{self._engine.me.name}"
            text = "the store does not answer it: another may coordinate" if on else "the store answers it again"
            self._engine.emit("node.storeless", about, text, cluster=True)
        if on != self._said or (on and now_ns - self._said_ns >= storeless_repeat_ms * MS):
            self._said, self._said_ns = on, now_ns
            self._engine.broadcast("/node", NodeStoreless(on))
            self._hear(self._engine.me, on)
        silent_ns = storeless_heard_ms_max * MS
        for node in [n for n, at in self._heard.items() if now_ns - at > silent_ns]:
            self._hear(node, False)

    def _told(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, NodeStoreless):
            self._hear(envelope.sender, envelope.message.on)

    def _hear(self, node: NodeId, on: bool) -> None:
        before = node in self._heard
        self._heard.pop(node, None)
        if on:
            self._heard[node] = self._engine.world.clock.mono_ns()
        if before != on:
            self._engine.topology_changed()
