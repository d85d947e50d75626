"""One run: a fault phase in which nothing wrong may happen, then a whole world in which the cluster must converge."""

from __future__ import annotations

import gc
import traceback
from collections import Counter
from dataclasses import dataclass

from node.ads import messages as m
from node.core.clock import MS
from node.core.ids import EntityRef
from node.sim import faults, judgement, settle, setup, verdict
from node.sim.faults import Knobs
from node.sim.history import Outcome
from node.sim.scheduler import Scheduler
from node.sim.verdict import Verdict, Violation
from node.sim.workload import Workload
from node.sim.world import World

CONVERGE_MS_MAX = 30_000
LOOK_EVERY_MS = 500
VALIDATE_EVERY_MS = 2_000
PROBE_TIMEOUT_MS = 3_000
TAIL_LINES = 40


@dataclass(frozen=True, slots=True)
class Result:
    """`violation` is None when all invariants held. `converged_ms`: how long after the heal.
    `unknown`: what checkers of the end could not decide, and why."""

    seed: int
    knobs: Knobs
    violation: Violation | None
    converged_ms: int
    virtual_ms: int
    steps: int
    trace_hash: str
    tail: tuple[str, ...]
    ops: dict[str, int]
    counters: dict[str, int]
    unknown: dict[str, str]

    @property
    def ok(self) -> bool:
        return self.violation is None


def run_seed(seed: int, *, nodes: int = 4, seconds: int = 60, plant: str = "") -> Result:
    """One run from its seed. Garbage is collected between runs only, so that no finaliser runs at a time of its own."""
    names = tuple(f"n{number}" for number in range(1, nodes + 1))
    scheduler = Scheduler(seed)
    knobs = faults.draw(scheduler.derive, names, seconds)
    setups = setup.drawn(names, api_only_node=knobs.api_only_node)
    gc.collect()
    gc.disable()
    try:
        return _Run(World(scheduler, knobs, setups, plant), seconds).result()
    finally:
        gc.enable()


class _Run:
    def __init__(self, world: World, seconds: int) -> None:
        self._world = world
        self._seconds = seconds
        self._converged_ms = -1
        self._verdicts: list[Verdict] = []

    def result(self) -> Result:
        world = self._world
        try:
            violation = self._violation()
        except Exception:
            # A machine that raises would end its process: a fault of ours, to be seen again by its seed like any other.
            last = " / ".join(line.strip() for line in traceback.format_exc().splitlines()[-6:])
            violation = Violation("raised", world.scheduler.now_ns, last)
        if violation is not None:
            world.trace.add(f"!! {violation}")
        counters = Counter(world.network.counters)
        counters["sent"] = world.network.sent
        counters["store_requests"] = world.store.requests
        counters["starts"] = sum(host.starts for host in world.hosts.values())
        counters["exits"] = sum(len(host.exits) for host in world.hosts.values())
        for engine in world.engines():
            counters.update({k: v for k, v in engine.system.stats().items() if k.startswith("writes_")})
        return Result(
            world.scheduler.seed,
            world.knobs,
            violation,
            self._converged_ms,
            world.scheduler.now_ns // MS,
            world.scheduler.steps,
            world.trace.digest(),
            world.trace.tail(TAIL_LINES),
            world.history.tally(),
            dict(sorted(counters.items())),
            {each.invariant: each.unknown for each in self._verdicts if each.unknown},
        )

    def _violation(self) -> Violation | None:
        """Safety, then liveness, then what must be there at the end; the first that does not hold."""
        world = self._world
        workload = Workload(world)
        world.begin(world.scheduler.derive("world"))
        workload.begin()
        for at_ms in range(VALIDATE_EVERY_MS, self._seconds * 1_000 + VALIDATE_EVERY_MS, VALIDATE_EVERY_MS):
            world.run(min(at_ms, self._seconds * 1_000))
            world.violation = world.violation or settle.validate(world)
            if world.violation is not None:
                return world.violation
        workload.stop()
        world.heal()
        self._converge()
        if world.violation is None:
            self._probe()
        if world.violation is None:
            self._verdicts = judgement.history_verdicts(world)
            world.violation = verdict.first(self._verdicts)
        return world.violation

    def _converge(self) -> None:
        world = self._world
        healed_ms = self._seconds * 1_000
        why = ""
        for at_ms in range(healed_ms + LOOK_EVERY_MS, healed_ms + CONVERGE_MS_MAX + 1, LOOK_EVERY_MS):
            world.run(at_ms)
            world.violation = world.violation or settle.validate(world)
            if world.violation is not None:
                return
            why = settle.why_not_converged(world, world.hosts)
            if not why:
                self._converged_ms = at_ms - healed_ms
                # At this instant, since auctions that go on may write again at the next.
                world.violation = verdict.first([judgement.ownership(world), judgement.agreement(world)])
                return
        words = f"not converged {CONVERGE_MS_MAX / 1_000:.0f} s after the heal: {why}"
        world.violation = Violation("I5", world.scheduler.now_ns, words)

    def _probe(self) -> None:
        """Every node must bring a question to every site, and get the answer that the acknowledged approvals demand."""
        world = self._world
        made = sorted({op.key[0] for op in world.history.acknowledged("create_site")})
        open_probes = 0

        def probe(host: str, site: str) -> None:
            nonlocal open_probes
            open_probes += 1
            approved = {
                op.key[1]
                for op in world.history.ops
                if op.verb == "approve" and op.key[0] == site and op.outcome is Outcome.OK
            }

            def answered(outcome: object) -> None:
                nonlocal open_probes
                open_probes -= 1
                lacking = approved - set(outcome.approved) if isinstance(outcome, m.SiteInfo) else approved
                if world.violation is None and (lacking or not isinstance(outcome, m.SiteInfo)):
                    words = f"{host} asked {site}: {outcome!r:.200}; lacks {sorted(lacking)}"
                    world.violation = Violation("I2", world.scheduler.now_ns, words)

            world.ask(world.hosts[host], EntityRef("site", site), m.GetSite(), PROBE_TIMEOUT_MS, answered)

        for host in world.hosts:
            for site in made:
                probe(host, site)
        world.run(world.scheduler.now_ns // MS + 2 * PROBE_TIMEOUT_MS, lambda: world.violated() or not open_probes)
