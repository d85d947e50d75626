"""Drives the conservation of messages: statements to the peers in reach, and a fault for what vanished."""

from __future__ import annotations

from typing import TYPE_CHECKING

from node.core import limits
from node.core.clock import MS
from node.core.ids import NodeId
from node.engine import topology
from node.wire.conservation import Conservation, SentControl, SentData
from node.wire.envelope import Envelope

if TYPE_CHECKING:
    from node.engine.engine import Engine

MISSING = "E-MESSAGES-MISSING"


class Conserving:
    """Registers itself with the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._machine = Conservation(engine.me, engine.world.transport.ledger)
        self._due_ns = 0
        self._shown: set[str] = set()
        engine.services |= {SentControl: self._heard, SentData: self._heard}

    def tick(self, now_ns: int) -> None:
        engine = self._engine
        if now_ns < self._due_ns or not engine.view.joined:
            return
        self._due_ns = now_ns + limits.conservation_ms * MS
        self._machine.look(now_ns)
        reached = sorted(topology.peers(engine.view))
        peers = [member.id for name in reached if (member := engine.view.member(name)) is not None]
        for peer, said in self._machine.statements(peers):
            engine.send_message(peer.name, "/node", said)
        self._show()

    def _heard(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, (SentControl, SentData)):
            self._machine.heard(envelope.sender, envelope.message, self._engine.world.clock.mono_ns())

    def _show(self) -> None:
        engine = self._engine
        self._machine.forget(frozenset(member.id for member in engine.view.members.values()))
        found = {self._about(node): text for node, text in self._machine.faults().items()}
        for about in self._shown - found.keys():
            engine.faults.clear(MISSING, about)
        for about, text in found.items():
            engine.faults.put(MISSING, about, text)
        self._shown = set(found)

    def _about(self, sender: NodeId) -> str:
        me = self._engine.me.name
        return f"messages/{me}" if sender.name == me else f"messages/{sender.name}>{me}"
