"""What breaks in a market, one thing at a time, and who looks at its sites meanwhile.

No fault leaves less than a majority of the entity nodes. From each on until some time after its end every site is asked
again and again what it would serve, as a browser asks that tries the next address when one does not answer.
"""

from __future__ import annotations

from typing import Final

from node.ads import explain
from node.ads import messages as m
from node.ads.explain import ServeDecision
from node.core.clock import MS
from node.core.ids import EntityRef
from node.engine.engine import Engine
from node.sim.disturb import disturb
from node.sim.faults import Disturbance
from node.sim.host import Host
from node.sim.market.edge import Edge
from node.sim.market.plan import SLOTS, Plan, SitePlan
from node.sim.market.record import Fault, Look, Record
from node.sim.outcomes import judge

# How long each may last, in seconds.
KINDS: Final[dict[str, tuple[float, float]]] = {
    "crash": (1, 120),
    "wipe": (1, 20),
    "power": (1, 20),
    "pause": (2, 40),
    "cut": (5, 90),
    "cut_one_way": (5, 60),
    "store_cut": (5, 40),
    "drain": (1, 1),
}
WATCHED_S: Final = 100  # beyond a fault's end, and longer than any darkness that is excused
LOOK_S: Final = 3.0
AGAIN_S: Final = 0.5
LOOK_TIMEOUT_MS: Final = 1_500
WHOLE_S: Final = 20  # a fault waits so long for a cluster that is not whole yet, again and again


class Trouble:
    def __init__(self, edge: Edge, plan: Plan, record: Record) -> None:
        self._edge = edge
        self._plan = plan
        self._record = record
        self._rng = edge.world.scheduler.derive("market/trouble")
        self._kinds: list[str] = []

    def begin(self) -> None:
        if self._plan.size.fault_every_s:
            self._edge.after(self._plan.size.fault_every_s * self._rng.uniform(0.2, 0.6), self._strike)

    def _strike(self) -> None:
        edge, rng = self._edge, self._rng
        if not all(map(self._whole, edge.world.hosts.values())):
            edge.after(WHOLE_S, self._strike)
            return
        if not self._kinds:  # each kind once, then all of them in another order
            self._kinds = rng.sample(list(KINDS), len(KINDS))
        kind = self._kinds.pop()
        shortest_s, longest_s = KINDS[kind]
        host, for_ms = rng.choice(list(edge.world.hosts)), round(1_000 * rng.uniform(shortest_s, longest_s))
        until_ms = edge.now_ms + for_ms
        fault = Fault(edge.now_ms, until_ms, until_ms + WATCHED_S * 1_000, kind, host)
        self._record.faults.append(fault)
        disturb(edge.world, Disturbance(edge.world.scheduler.now_ns // MS, kind, (host,), for_ms))
        for site in self._plan.sites:
            self._look(site, fault, rng.randrange(len(edge.world.hosts)))
        edge.after(self._plan.size.fault_every_s * rng.uniform(0.8, 1.2), self._strike)

    def _whole(self, host: Host) -> bool:
        engine: Engine | None = host.process.engine if host.process is not None and not host.process.paused else None
        if engine is None:
            return False
        view = engine.view
        members = view.joined and view.converged and len(view.members) == len(self._edge.world.hosts)
        ready = engine.replication.ready and engine.sharding.region.complete() and engine.drain.accepts_work
        return members and ready

    # ---- looking

    def _look(self, site: SitePlan, fault: Fault, turn: int) -> None:
        edge = self._edge
        if edge.now_ms >= fault.watched_ms:
            return
        hosts = list(edge.world.hosts.values())
        url, _ = site.pages[turn % len(site.pages)]
        slot = SLOTS[0]
        probe = m.Probe(url, site.site, m.SlotRequest(slot.slot, slot.width, slot.height))

        def answered(outcome: object) -> None:
            decision = outcome.decision if isinstance(outcome, m.Probed) else None
            lit = decision is not None and (bool(decision.winner) or _penniless(decision))
            why = "" if lit else decision.reason if decision is not None else judge(outcome)[1] or "not served"
            self._record.looks.append(Look(edge.now_ms, site.site, lit, why))
            edge.after(LOOK_S if lit else AGAIN_S, self._look, site, fault, turn + 1)

        to = EntityRef("adserver", site.site)
        edge.world.ask(hosts[turn % len(hosts)], to, probe, LOOK_TIMEOUT_MS, answered)


def _penniless(decision: ServeDecision) -> bool:
    """Whether nobody has money for the page today, which is no fault of the cluster's."""
    refused = [each.reason for each in decision.candidates if each.outcome == explain.REFUSED]
    return bool(refused) and decision.reason == "all_refused" and set(refused) == {explain.BUDGET}
