"""One run: a fault phase in which nothing wrong may happen, then a whole world in which the cluster must converge."""

from __future__ import annotations

import dataclasses
import gc
import traceback
from collections import Counter
from dataclasses import dataclass

from node.ads import messages as m
from node.core.clock import MS
from node.core.ids import EntityRef
from node.sim import faults, judgement, settle, setup, verdict
from node.sim.convergence import LOOK_MS, Convergence
from node.sim.faults import Knobs
from node.sim.history import CounterRead, Outcome
from node.sim.probe import KIND, ProbeState, Read
from node.sim.recipe import NODES, SECONDS, Recipe
from node.sim.scheduler import Scheduler
from node.sim.shape import shape
from node.sim.topology import Topology
from node.sim.traps import sealed
from node.sim.verdict import Verdict, Violation
from node.sim.workload import Workload
from node.sim.world import World

SETTLE_MS_MAX = 30_000  # from agreement until every page is covered again
QUIET_MS = 1_500  # after the last answer: what was told last, and asks nobody, is written too
VALIDATE_EVERY_MS = 2_000
PROBE_TIMEOUT_MS = 5_000  # what the store failed last may wait for so long before it starts again
TAIL_LINES = 50


@dataclass(frozen=True, slots=True)
class Result:
    """`violation` is None when all invariants held. `converged_ms`: how long after the heal; `rounds`: gossip rounds
    that each kind of agreement took. What the run has tried: disturbances by verb, crash points by name, shapes of the
    cluster. `unknown`: what checkers of the end could not decide, and why."""

    recipe: Recipe
    knobs: Knobs
    violation: Violation | None
    converged_ms: int
    rounds: dict[str, int]
    virtual_ms: int
    steps: int
    trace_hash: str
    tail: tuple[str, ...]
    ops: dict[str, int]
    counters: dict[str, int]
    disturbed: dict[str, int]
    points_reached: dict[str, int]
    points_fired: dict[str, int]
    shapes: frozenset[int]
    unknown: dict[str, str]

    @property
    def seed(self) -> int:
        return self.recipe.seed

    @property
    def ok(self) -> bool:
        return self.violation is None


def run_seed(seed: int, *, nodes: int = NODES, seconds: int = SECONDS, plant: str = "") -> Result:
    """One run from its seed."""
    return run(Recipe(seed, nodes, seconds, plant=plant))


def run(recipe: Recipe, topology: Topology | None = None, drawn: Knobs | None = None) -> Result:
    """One run. `topology`: the hosts, instead of so many as the recipe says; `drawn`: knobs, instead of the seed's.
    Garbage is collected between runs only, so that no finaliser runs at a time of its own."""
    scheduler = Scheduler(recipe.seed)
    names = topology.names if topology else tuple(f"n{number}" for number in range(1, recipe.nodes + 1))
    knobs = _without(recipe, drawn or faults.draw(scheduler.derive, names, recipe.seconds, recipe.classes))
    setups = (
        topology.setups() if topology else setup.drawn(names, api_only_node=knobs.api_only_node, profile=knobs.profile)
    )
    kept = {name: each for name, each in setups.items() if name not in recipe.without_hosts}
    gc.collect()
    gc.disable()
    try:
        with sealed():
            return _Run(World(scheduler, knobs, kept, recipe.plant), recipe).result()
    finally:
        gc.enable()


def _without(recipe: Recipe, knobs: Knobs) -> Knobs:
    kept = [
        dataclasses.replace(d, hosts=tuple(host for host in d.hosts if host not in recipe.without_hosts))
        for d in knobs.disturbances
        if d.tag not in recipe.without and d.at_ms < recipe.healed_ms
    ]
    # One whose hosts are all left out does nothing; `store_away` names none from the beginning.
    return dataclasses.replace(knobs, disturbances=tuple(d for d in kept if d.hosts or d.verb == "store_away"))


class _Run:
    def __init__(self, world: World, recipe: Recipe) -> None:
        self._world = world
        self._recipe = recipe
        self._converged_ms = -1
        self._rounds: dict[str, int] = {}
        self._shapes: set[int] = set()
        self._verdicts: list[Verdict] = []
        world.ops_left = recipe.ops_max or -1

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
            recipe=self._recipe,
            knobs=world.knobs,
            violation=violation,
            converged_ms=self._converged_ms,
            rounds=self._rounds,
            virtual_ms=world.scheduler.now_ns // MS,
            steps=world.scheduler.steps,
            trace_hash=world.trace.digest(),
            tail=world.trace.tail(TAIL_LINES),
            ops=world.history.tally(),
            counters=dict(sorted(counters.items())),
            disturbed=dict(sorted(world.disturbed.items())),
            points_reached=dict(sorted(world.points.reached.items())),
            points_fired=dict(sorted(world.points.fired.items())),
            shapes=frozenset(self._shapes),
            unknown={each.invariant: each.unknown for each in self._verdicts if each.unknown},
        )

    def _violation(self) -> Violation | None:
        """Safety, then liveness, then what must be there at the end; the first that does not hold."""
        world = self._world
        workload = Workload(world)
        world.begin(world.scheduler.derive("world"))
        workload.begin()
        healed_ms = self._recipe.healed_ms
        for at_ms in range(VALIDATE_EVERY_MS, healed_ms + VALIDATE_EVERY_MS, VALIDATE_EVERY_MS):
            world.run(min(at_ms, healed_ms))
            self._shapes.add(shape(world))
            world.violation = world.violation or settle.validate(world)
            if world.violation is not None:
                return world.violation
        workload.stop()
        world.heal()
        world.violation = self._from_the_future()
        if world.violation is None:
            self._converge()
        if world.violation is None:
            self._probe()
        if world.violation is None:
            world.run(world.scheduler.now_ns // MS + QUIET_MS)
            self._verdicts = judgement.history_verdicts(world)
            world.violation = verdict.first(self._verdicts)
        return world.violation

    def _from_the_future(self) -> Violation | None:
        """T1, before agreement spreads what a clock wrote that was ahead."""
        found = judgement.agreement(self._world)
        return verdict.first([found]) if found.invariant == "T1" else None

    def _converge(self) -> None:
        """Agreement within its rounds, then every page covered."""
        world = self._world
        healed_ns = world.scheduler.now_ns
        agreement = Convergence(world, healed_ns)
        agreed_ns = -1
        while not self._looked_wrong(agreement):
            if not agreement.agreed:
                continue
            now_ns = world.scheduler.now_ns
            agreed_ns = now_ns if agreed_ns < 0 else agreed_ns
            why = settle.why_not_converged(world, world.hosts)
            if not why:
                self._converged_ms = (now_ns - healed_ns) // MS
                # At this instant, since auctions that go on may write again at the next.
                world.violation = verdict.first([judgement.ownership(world), judgement.agreement(world)])
                return
            if now_ns - agreed_ns > SETTLE_MS_MAX * MS:
                words = f"{SETTLE_MS_MAX / 1_000:.0f} s after all agree: {why}"
                world.violation = Violation("I5", now_ns, words)

    def _looked_wrong(self, agreement: Convergence) -> bool:
        """Let a moment pass; whether a checker of every instant, a machine's own, or the agreement says no."""
        world = self._world
        world.run(world.scheduler.now_ns // MS + LOOK_MS)
        world.violation = world.violation or settle.validate(world) or agreement.look()
        self._rounds = agreement.rounds
        return world.violation is not None

    def _probe(self) -> None:
        """Every node must bring a question to every site and counter, and get the answer that what was acknowledged
        demands."""
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

        def read(host: str, entity: str) -> None:
            nonlocal open_probes
            open_probes += 1
            asked_ns = world.scheduler.now_ns

            def answered(outcome: object) -> None:
                nonlocal open_probes
                open_probes -= 1
                total = outcome.total if isinstance(outcome, ProbeState) else None
                ended_ns = world.scheduler.now_ns
                world.history.reads.append(CounterRead(asked_ns, ended_ns, host, entity, total))

            world.ask(world.hosts[host], EntityRef(KIND, entity), Read(), PROBE_TIMEOUT_MS, answered)

        counters = sorted({op.key[0] for op in world.history.ops if op.verb == "add"})
        for host in world.hosts:
            for site in made:
                probe(host, site)
            for entity in counters:
                read(host, entity)
        world.run(world.scheduler.now_ns // MS + 2 * PROBE_TIMEOUT_MS, lambda: world.violated() or not open_probes)
