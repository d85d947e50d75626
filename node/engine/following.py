"""What the coordinator's node does with the state store as a whole: it keeps the ledger, and looks for damage.

One node does it because two would only get in each other's way; that the ledger counts once does not depend on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from node.ads.ledger import CONSUMER, Ledger
from node.flows.follower import Follower
from node.store.port import Request
from node.store.scrub import Scrub

if TYPE_CHECKING:
    from node.engine.engine import Engine

BEHIND = "E-LEDGER-BEHIND"
DAMAGED = "E-RECORD-DAMAGED"
_NAMED_MAX = 5


class Following:
    """Drives the ledger's follower and the scrub."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.ledger = Follower(CONSUMER, Ledger())
        self.scrub = Scrub()

    def tick(self, now_ns: int) -> None:
        engine = self._engine
        if not engine.sharding.coordinator.leads:
            engine.faults.clear(BEHIND, CONSUMER)
            engine.faults.clear(DAMAGED, "store")
            return
        self._ask(self.ledger.tick(now_ns))
        engine.faults.put(BEHIND, CONSUMER, self.ledger.failure)
        request = self.scrub.tick(now_ns)
        if request is not None:
            engine.world.submit(request, self.scrub.answered)
        engine.faults.put(DAMAGED, "store", _words(self.scrub.damaged))

    def _ask(self, request: Request | None) -> None:
        if request is not None:
            self._engine.world.submit(request, lambda answer: self._ask(self.ledger.answered(answer)))


def _words(damaged: tuple[str, ...]) -> str:
    more = f" and {len(damaged) - _NAMED_MAX} more" if len(damaged) > _NAMED_MAX else ""
    return f"{len(damaged)} damaged: {', '.join(damaged[:_NAMED_MAX])}{more}" if damaged else ""
