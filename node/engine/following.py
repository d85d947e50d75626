"""The projections that this node keeps up to date: the ledger, while it is the coordinator.

One node does it because two would only get in each other's way; that it is exactly once does not depend on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from node.ads.ledger import CONSUMER, Ledger
from node.flows.follower import Follower
from node.store.port import Request

if TYPE_CHECKING:
    from node.engine.engine import Engine

FAULT = "E-LEDGER-BEHIND"


class Following:
    """Drives the ledger's follower."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.ledger = Follower(CONSUMER, Ledger())

    def tick(self, now_ns: int) -> None:
        engine = self._engine
        if not engine.sharding.coordinator.leads:
            engine.faults.clear(FAULT, CONSUMER)
            return
        self._ask(self.ledger.tick(now_ns))
        engine.faults.put(FAULT, CONSUMER, self.ledger.failure)

    def _ask(self, request: Request | None) -> None:
        if request is not None:
            self._engine.world.submit(request, lambda answer: self._ask(self.ledger.answered(answer)))
