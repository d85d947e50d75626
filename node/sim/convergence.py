"""How a healed cluster comes together: first everybody must be there, then all must agree, in so many gossip rounds.

The bound of 4 * ceil(log2 N) rounds is about dissemination. Detection, decisions and restarts have limits of their own
(`GATHER_MS_MAX`), so rounds are counted from the instant at which every node runs, has joined and is reached by all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from node.core.clock import MS
from node.gossip.member import Status
from node.sim.verdict import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from node.engine.engine import Engine
    from node.sim.world import World

LOOK_MS: Final = 100
AGREEMENTS: Final = ("membership", "placement", "replicas")
# Profile `fast`: pause and decision of a loss (about 6 s), a restart, forming anew (3 s), and one of these again. Other
# profiles in proportion to their longest wait.
GATHER_MS_MAX: Final = 30_000


def rounds_max(nodes: int) -> int:
    """4 * ceil(log2 N): basis in `docs/faults.md`; a cluster of one agrees at once."""
    return 4 * max(1, (nodes - 1).bit_length())


@dataclass(slots=True)
class Convergence:
    """`rounds`: how many gossip rounds each kind of agreement took, by its name; filled as `look` is called."""

    world: World
    began_ns: int
    gathered_ns: int = -1
    rounds: dict[str, int] = field(default_factory=dict)

    def look(self) -> Violation | None:
        """Call every LOOK_MS after the heal, until `done`."""
        now_ns = self.world.scheduler.now_ns
        engines = self.world.engines()
        if self.gathered_ns < 0:
            why = _not_gathered(self.world, engines)
            if not why:
                self.gathered_ns = now_ns
            elif now_ns - self.began_ns > self.gather_ns_max:
                return Violation("I5", now_ns, f"{self.gather_ns_max // MS} ms after the heal: {why}")
            else:
                return None
        for name, (agree, interval_ns) in self._agreements(engines).items():
            if name in self.rounds:
                continue
            rounds = (now_ns - self.gathered_ns) // interval_ns
            if agree():
                self.rounds[name] = rounds
            elif rounds > rounds_max(len(self.world.hosts)):
                words = f"{name} does not agree after {rounds} gossip rounds of {interval_ns // MS} ms"
                return Violation("I4", now_ns, words)
        return None

    @property
    def agreed(self) -> bool:
        """Everybody is there and of one mind."""
        return len(self.rounds) == len(AGREEMENTS)

    @property
    def gather_ns_max(self) -> int:
        membership = next(iter(self.world.hosts.values())).setup.membership
        slower = max(1, membership.stable_after_ns // (2_000 * MS))
        return GATHER_MS_MAX * MS * slower

    def _agreements(self, engines: list[Engine]) -> dict[str, tuple[Callable[[], bool], int]]:
        config = engines[0].config
        return {
            "membership": (lambda: _equal(e.membership.state.digest for e in engines), config.membership.gossip_ns),
            "placement": (lambda: _placed(engines), config.sharding.digest_ms * MS),
            "replicas": (lambda: _replicas(engines), config.replication.antientropy_ns),
        }


def _not_gathered(world: World, engines: list[Engine]) -> str:
    if len(engines) < len(world.hosts):
        return f"{len(engines)} of {len(world.hosts)} nodes run"
    for engine in engines:
        view = engine.view
        if not view.joined:
            return f"{engine.me} has not joined: {engine.membership.why_not_joined}"
        if engine.drain.active:
            return f"{engine.me} still drains"
        here = {member.id for member in view.members.values() if member.status is Status.UP}
        if here != {other.me for other in engines}:
            return f"{engine.me} sees {sorted(map(str, here))}"
        if view.unreachable:
            return f"{engine.me} does not reach {sorted(view.unreachable)}"
        if not engine.replication.ready:
            return f"{engine.me}'s replica is not complete"
    return ""


def _equal(values: Iterable[str]) -> bool:
    return len(set(values)) == 1


def _placed(engines: list[Engine]) -> bool:
    regions = [engine.sharding.region for engine in engines]
    return all(region.complete() for region in regions) and len({region.version for region in regions}) == 1


def _replicas(engines: list[Engine]) -> bool:
    digests = [tuple(engine.replication.machine.digests()) for engine in engines]
    return all(other == digests[0] for other in digests)
