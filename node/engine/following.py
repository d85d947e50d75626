"""What the coordinator's node does with the state store as a whole: it keeps what is derived from the log of
facts, and looks for damage.

One node does it because two would only get in each other's way; that each fact counts once does not depend on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from node.ads.projections import PROJECTIONS
from node.core.clock import MS
from node.engine.messages import FollowerReport
from node.flows.follower import Follower
from node.store.port import Request
from node.store.scrub import Scrub

if TYPE_CHECKING:
    from node.engine.engine import Engine

BEHIND = "E-LEDGER-BEHIND"
DAMAGED = "E-RECORD-DAMAGED"
_NAMED_MAX = 5


class Following:
    """Drives the followers of the log, one for each projection, and the scrub."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.followers = {name: Follower(name, projection) for name, projection in PROJECTIONS.items()}
        self.scrub = Scrub()

    def tick(self, now_ns: int) -> None:
        engine = self._engine
        if not engine.sharding.coordinator.leads:
            for name in self.followers:
                engine.faults.clear(BEHIND, name)
            engine.faults.clear(DAMAGED, "store")
            return
        for name, follower in self.followers.items():
            self._ask(follower, follower.tick(now_ns))
            engine.faults.put(BEHIND, name, follower.failure)
        request = self.scrub.tick(now_ns)
        if request is not None:
            engine.world.submit(request, self.scrub.answered)
        engine.faults.put(DAMAGED, "store", _words(self.scrub.damaged))

    def reports(self) -> tuple[FollowerReport, ...]:
        """How each projection is followed; nothing from a node that does not coordinate."""
        clock = self._engine.world.clock
        now_ns, wall_ms = clock.mono_ns(), clock.wall_ms()
        if not self._engine.sharding.coordinator.leads:
            return ()
        return tuple(
            FollowerReport(
                name,
                follower.offset,
                follower.applied,
                follower.conflicts,
                follower.failures,
                follower.last_failure,
                wall_ms - (now_ns - follower.failed_ns) // MS if follower.failures else 0,
            )
            for name, follower in self.followers.items()
        )

    def _ask(self, follower: Follower, request: Request | None) -> None:
        if request is not None:
            self._engine.world.submit(request, lambda answer: self._ask(follower, follower.answered(answer)))


def _words(damaged: tuple[str, ...]) -> str:
    more = f" and {len(damaged) - _NAMED_MAX} more" if len(damaged) > _NAMED_MAX else ""
    return f"{len(damaged)} damaged: {', '.join(damaged[:_NAMED_MAX])}{more}" if damaged else ""
