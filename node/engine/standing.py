"""How this node stands, for whoever waits until a cluster is whole; and whether shards run where they belong."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from node.actors.cell import Phase
from node.ads.entities.site import Site
from node.core.clock import MS
from node.core.limits import balance_held_ms_max
from node.flows.messages import GetStanding, HoldBalance, NodeStanding
from node.store.port import ShardState
from node.wire.envelope import Envelope

if TYPE_CHECKING:
    from node.engine.engine import Engine
    from node.engine.nodeservice import NodeService


class Standing:
    """Registers itself with the engine."""

    def __init__(self, engine: Engine, service: NodeService) -> None:
        self._engine = engine
        self._service = service
        engine.services |= {GetStanding: self._wanted, HoldBalance: self._hold}

    def standing(self) -> NodeStanding:
        engine = self._engine
        wall_ms = engine.world.clock.wall_ms()
        sites = [
            found
            for cell in engine.system.cells("site")
            if cell.phase is Phase.RUNNING and isinstance(cell.actor, Site)
            if (found := cell.actor.coverage(wall_ms)) is not None
        ]
        digests = ",".join(f"{digest:032x}" for digest in engine.replication.machine.digests())
        return NodeStanding(
            engine.me.incarnation,
            self._service.why_not_ready(),
            hashlib.blake2b(digests.encode(), digest_size=8).hexdigest(),
            len(sites),
            sum(site.expected for site in sites),
            sum(site.present for site in sites),
        )

    def _wanted(self, envelope: Envelope) -> None:
        self._engine.reply(envelope, self.standing())

    def _hold(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, HoldBalance):
            wanted_ms = max(0, min(envelope.message.for_ms, balance_held_ms_max))
            if wanted_ms or self._engine.balance_held:
                self._engine.hold_balance(self._engine.world.clock.mono_ns() + wanted_ms * MS)


def why_not_placed(engine: Engine) -> str:
    """Which shards do not run where they belong, in words; empty when all do, as far as this node knows."""
    if not engine.sharding.region.complete():
        return "the placement is not known here"
    moving = astray = 0
    for row in engine.sharding.region.homes():
        member = engine.view.member(row.node)
        if member is None or member.incarnation != row.incarnation:
            astray += 1
        elif row.state is not ShardState.RUNNING:
            moving += 1
    found = [f"{astray} shards have no owner"] if astray else []
    return "; ".join([*found, *([f"{moving} shards are moving"] if moving else [])])
