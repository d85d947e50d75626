"""Stories: whole simulated clusters to which a test does one thing after the other, in virtual time.

```python
@seeds(3)                                          # tests/scenarios/seeds.py; PROMOVOLVE_TEST_SCALE multiplies it
def test_failover(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:           # profile="fast"; all hosts start by themselves (start=False: none)
        s.until(converged())
        load = s.load(asks_per_s=50, entities=20)  # unique keys, from hosts that run, each outcome written down
        s.kill("n3")
        s.until(removed("n3"), within_s=s.bound_s)
        with s.never(unreachable("n2")):           # looked at all the time, in what runs inside
            s.run(10)
        s.start("n3")
        s.until(converged())
        s.end(load)                                # nothing new; then all of it has an outcome
```

Verbs: start, kill, wipe (kill and lose the replica), stop and thaw (SIGSTOP, SIGCONT); a process that ends by itself
stays down (unless `supervised=True`); dies_at and stops_at a crash point; cut (a group from the rest, or `away_from`
others), one_way, heal; drain, move, commit (a plan), operator (any request to the coordinator); store_slow, store_down,
store_up; step_clock; setup (other settings of a host from its next start), add (a host more);
add_to and read (an effect on, and the state of, a probe: `node.sim.probe`), ask and tell (anything to any reference),
call (a node's own `/node` service). `run` lets time pass, `until` waits for conditions and fails with what they lack.
`engine(name)` is the engine itself, for what no condition says.

Conditions are in `node.sim.conditions`: functions of the story that answer why they do not hold, empty when they do;
write one more wherever that reads better. `ask` gives a `Pending`: `answered(pending)` waits for it, `outcome` is the
reply, `Failed`, REFUSED (never taken) or None (nobody will ever know).

A story ends with the checkers: those of every instant have looked at each event; what was acknowledged must be in the
store; asks must have ended in time. Everything is drawn from the seed: the same seed is the same story to the last
event, and a failure prints it with the newest lines of the trace.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from node.core.clock import MS, SECOND
from node.core.hashing import shard_of
from node.core.ids import EntityRef, Ref, ServiceRef
from node.engine.engine import Engine
from node.sharding.requests import Answer, Commit, Declined, GetPlans, PlanView, PlanViews, Request, Stage
from node.sim import faults, judgement, probe, settle, setup, verdict
from node.sim import history as h
from node.sim.host import Host
from node.sim.load import Load, Pending, Rates
from node.sim.outcomes import judge
from node.sim.points import Fate, Trap
from node.sim.scheduler import Scheduler
from node.sim.world import World

LOOK_MS = 20  # how often conditions are looked at
LOOK_DEEP_MS = 500  # and the machines' own invariants
PATIENCE_S = 60
NOT_COORDINATING = ("not_coordinator", "coordinator_lost")
SETTLE_S = 10
TAIL_LINES = 60
STAYS_DOWN_MS = 3_600_000  # until `start`, as far as a story is concerned

Condition = Callable[["Story"], str]


class StoryFailed(AssertionError):
    """A condition did not come true, or something happened that never may."""


@contextmanager
def story(
    *,
    nodes: int,
    seed: int,
    profile: str = "fast",
    start: bool = True,
    supervised: bool = False,
    min_entity_nodes: int = 0,
    **knobs: float,
) -> Iterator[Story]:
    """A cluster of hosts n1 … nN for one story. `knobs`: of the world (`node.sim.faults.Knobs`), other than calm."""
    gc.collect()
    gc.disable()  # no finaliser may run at a time of its own
    try:
        told = Story(nodes, seed, profile, supervised, min_entity_nodes, knobs)
        try:
            for name in told.world.hosts if start else ():
                told.start(name)
            yield told
            told.settle()
            told.check()
        except BaseException as error:
            error.add_note("\n".join((f"seed {seed}, {told.now_s:.3f} virtual s", *told.world.trace.tail(TAIL_LINES))))
            raise
    finally:
        gc.enable()


@dataclass(frozen=True, slots=True)
class _Watch:
    condition: Condition
    must_hold: bool


class Story:
    """See the module. Times are virtual seconds."""

    def __init__(
        self, nodes: int, seed: int, profile: str, supervised: bool, min_entity_nodes: int, knobs: dict[str, float]
    ) -> None:
        scheduler = Scheduler(seed)
        names = tuple(f"n{number}" for number in range(1, nodes + 1))
        setups = setup.of_profile(names, profile, min_entity_nodes=min_entity_nodes)
        self._scheduler = scheduler
        self._watches: list[_Watch] = []
        self._loads: list[Load] = []
        self._keys = 0
        self._looked_ms = 0
        setups = {name: replace(each, supervised=supervised) for name, each in setups.items()}
        self.world = World(scheduler, faults.calm(**knobs), setups)
        self.rng = scheduler.derive("story")

    # ---- time

    @property
    def now_s(self) -> float:
        return self._scheduler.now_ns / SECOND

    @property
    def bound_s(self) -> float:
        """How long a node's loss may take to be decided: detection, `stable_after` and 3 s."""
        membership = next(iter(self.world.hosts.values())).setup.membership
        detection_ns = membership.acceptable_pause_ns + 2 * membership.heartbeat_ns
        return (detection_ns + membership.stable_after_ns) / SECOND + 3

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.until(lambda _: "time passes", within_s=seconds, or_fail=False)

    def until(self, *conditions: Condition, within_s: float = PATIENCE_S, or_fail: bool = True) -> None:
        """Let time pass until all conditions hold at one look."""
        end_ns = self._scheduler.now_ns + round(within_s * SECOND)
        while True:
            why = next((why for condition in conditions if (why := condition(self))), "")
            if not why:
                return
            if self._scheduler.now_ns >= end_ns:
                if or_fail:
                    raise StoryFailed(f"not within {within_s:g} s: {why}")
                return
            with self.world.points:
                self._scheduler.run_until(min(end_ns, self._scheduler.now_ns + LOOK_MS * MS), self.world.violated)
            self._look()

    @contextmanager
    def never(self, *conditions: Condition) -> Iterator[None]:
        """None of them may hold at any look inside the block."""
        with self._watching([_Watch(condition, must_hold=False) for condition in conditions]):
            yield

    @contextmanager
    def always(self, *conditions: Condition) -> Iterator[None]:
        """All of them must hold at every look inside the block."""
        with self._watching([_Watch(condition, must_hold=True) for condition in conditions]):
            yield

    @contextmanager
    def _watching(self, watches: list[_Watch]) -> Iterator[None]:
        self._watches += watches
        self._look()
        yield
        for watch in watches:
            self._watches.remove(watch)

    def _look(self) -> None:
        world = self.world
        now_ms = self._scheduler.now_ns // MS
        if now_ms - self._looked_ms >= LOOK_DEEP_MS:
            self._looked_ms = now_ms
            world.violation = world.violation or settle.validate(world)
        if world.violation is not None:
            raise StoryFailed(str(world.violation))
        for watch in self._watches:
            why = watch.condition(self)
            if bool(why) == watch.must_hold:
                raise StoryFailed(f"at {self.now_s:.3f} s: {why or 'what must never hold, does'}")

    def settle(self) -> None:
        """Clients send nothing new, and what is under way ends, if it can."""
        for load in self._loads:
            load.stop()
        if self._loads:
            self.until(lambda _: self._under_way(), within_s=SETTLE_S, or_fail=False)

    def _under_way(self) -> str:
        why = next((why for load in self._loads if (why := load.why_open())), "")
        for engine in self.running():
            if engine.writing or engine.sharding.region.waiting() or engine.system.depths():
                why = why or f"{engine.me} has not come to rest"
        return why

    def check(self) -> None:
        """What must hold of a whole story."""
        world = self.world
        found = world.violation or settle.validate(world) or verdict.first(judgement.history_verdicts(world))
        if found is not None:
            raise StoryFailed(str(found))

    # ---- hosts

    def host(self, name: str) -> Host:
        return self.world.hosts[name]

    def engine(self, name: str) -> Engine:
        """The engine that runs on a host; fails where none does."""
        process = self.host(name).process
        if process is None or process.engine is None:
            raise StoryFailed(f"{name} does not run")
        return process.engine

    def running(self) -> list[Engine]:
        """The engines of all processes that run and are not stopped."""
        return [p.engine for p in self.world.processes() if p.engine is not None and not p.paused]

    def setup(self, name: str, **changes: Any) -> None:
        """Other settings (`node.sim.setup.Setup`) from the host's next start."""
        host = self.host(name)
        host.setup = replace(host.setup, **changes)

    def add(self, name: str, **changes: Any) -> None:
        """A host more, set up like the first but for `changes`; it still has to be started."""
        like = self.host("n1").setup
        self.world.add_host(name, replace(like, **changes))

    def start(self, *names: str) -> None:
        for name in names:
            host = self.host(name)
            host.held_down = 0
            host.start()

    def kill(self, *names: str) -> None:
        """kill -9; it stays down until `start`."""
        for name in names:
            host = self.host(name)
            host.held_down = 1
            host.crash()

    def wipe(self, *names: str) -> None:
        """Killed, and its replica is gone."""
        self.kill(*names)
        for name in names:
            self.host(name).disk.wipe()

    def stop(self, *names: str) -> None:
        """SIGSTOP: its clock goes on, it does not, until `thaw`."""
        for name in names:
            process = self.host(name).process
            if process is not None:
                process.pause()

    def thaw(self, *names: str) -> None:
        for name in names:
            process = self.host(name).process
            if process is not None:
                process.go_on()

    def dies_at(self, name: str, point: str, *, nth: int = 1) -> None:
        """The process is killed at the n-th reaching of a crash point (`node.core.faultpoints`); it stays down."""
        self.world.points.arm(Trap(point, frozenset((name,)), nth, Fate.DIES, STAYS_DOWN_MS))

    def stops_at(self, name: str, point: str, seconds: float, *, nth: int = 1) -> None:
        """It stands still there for so long."""
        self.world.points.arm(Trap(point, frozenset((name,)), nth, Fate.STOPS, round(seconds * 1_000)))

    def drain(self, *names: str) -> None:
        """SIGTERM."""
        for name in names:
            self.host(name).drain()

    def step_clock(self, name: str, ms: int) -> None:
        """The wall clock jumps."""
        self.host(name).clock.step_wall_ms(ms)

    # ---- network and store

    def cut(self, *names: str, away_from: Sequence[str] = ()) -> None:
        """Nothing passes between these and the others (all others, unless named)."""
        others = self._others(names, away_from)
        self.world.network.cut(names, others)
        self.world.network.cut(others, names)

    def one_way(self, *names: str, to: Sequence[str] = ()) -> None:
        """These are not heard by the others (all others, unless named); they hear."""
        self.world.network.cut(names, self._others(names, to))

    def heal(self) -> None:
        """All links are whole again; the store, stopped and dead hosts stay as they are."""
        self.world.network.heal()

    def _others(self, names: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
        return tuple(wanted) or tuple(name for name in self.world.hosts if name not in names)

    def store_slow(self, ms: int) -> None:
        """Each request takes about so long; 0: as usual."""
        self.world.store.slow_ms = ms

    def store_down(self, *names: str) -> None:
        """These hosts (all, unless named) can't reach the store until `store_up`."""
        self.world.store.away |= set(names or self.world.hosts)

    def store_up(self) -> None:
        self.world.store.away.clear()

    # ---- messages

    def ask(
        self, to: Ref, message: msgspec.Struct, *, at: str = "", timeout_ms: int = 5_000, op: h.Op | None = None
    ) -> Pending:
        """From a host that runs, drawn unless named; written into the history where `op` is begun."""
        host = self.host(at) if at else self._any_host()
        pending = Pending(self._scheduler.now_ns)

        def ended(outcome: Any) -> None:
            pending.end(outcome, self._scheduler.now_ns)
            if op is not None:
                op.node, op.ended_ns = host.name, pending.ended_ns
                op.outcome, op.detail, op.answer = judge(outcome)

        self.world.ask(host, to, message, timeout_ms, ended)
        return pending

    def tell(self, to: Ref, message: msgspec.Struct, *, at: str = "") -> None:
        process = (self.host(at) if at else self._any_host()).process
        if process is not None and process.engine is not None:
            process.run(process.engine.system.tell, to, message)
            process.run(process.wake)

    def call(self, name: str, message: msgspec.Struct, *, at: str = "", timeout_ms: int = 5_000) -> Pending:
        """Ask a node's own service, as operators do through the admin server."""
        return self.ask(ServiceRef(name, "/node"), message, at=at or name, timeout_ms=timeout_ms)

    def operator(self, request: Request, *, within_s: float = 10) -> Answer:
        """An operator's request to whoever coordinates, asked again of the next one; fails where nobody answers."""
        answers: list[Answer] = []
        asked: list[Pending] = []

        def answered(_: Story) -> str:
            last = asked[-1] if asked else None
            if last is None or last.ended:
                outcome = last.outcome if last else None
                if isinstance(outcome, Answer) and not (
                    isinstance(outcome, Declined) and outcome.reason in NOT_COORDINATING
                ):
                    answers.append(outcome)
                    return ""
                active = [e.me.name for e in self.running() if e.sharding.coordinator.status().active]
                asked.extend([self.call(active[0], request, timeout_ms=2_000)] if active else [])
            return f"no coordinator answers {type(request).__name__}"

        self.until(answered, within_s=within_s)
        return answers[0]

    def commit(self, stage: Stage) -> PlanView:
        """A plan staged and committed; fails with why where it is declined."""
        for request in (stage, Commit(stage.id, f"op-{stage.id}")):
            answer = self.operator(request)
            if not isinstance(answer, PlanView):
                raise StoryFailed(f"{type(request).__name__} {stage.id}: {answer}")
            if not answer.changed:
                return answer
        return self.plan(stage.id)

    def plan(self, id_: str) -> PlanView:
        """A plan as the coordinator sees it now."""
        found = self.operator(GetPlans(id_))
        if not isinstance(found, PlanViews):
            raise StoryFailed(f"plan {id_}: {found}")
        return found.items[0]

    def move(self, what: int | str, to: str) -> str:
        """A shard, or that of an entity, by a plan whose id is returned; it moves from now on."""
        self._keys += 1
        shard = what if isinstance(what, int) else shard_of(what)
        return self.commit(Stage(f"p-{self._keys}", "move", (shard,), to)).plan.id

    def add_to(self, entity: str, *, at: str = "", key: str = "", timeout_ms: int = 5_000) -> Pending:
        """One effect on a probe, under a key of its own unless it is named."""
        self._keys += 1
        key = key or f"k{self._keys}"
        op = self.world.history.begin("add", (entity, key), at, self._scheduler.now_ns)
        message = probe.Add(key)
        return self.ask(EntityRef(probe.KIND, entity), message, at=at, timeout_ms=timeout_ms, op=op)

    def read(self, entity: str, *, at: str = "") -> probe.ProbeState:
        """A probe's state, asked for now; fails where there is no answer."""
        pending = self.ask(EntityRef(probe.KIND, entity), probe.Read(), at=at)
        self.until(lambda _: "" if pending.ended else f"{entity} does not answer", within_s=20)
        if not isinstance(pending.outcome, probe.ProbeState):
            raise StoryFailed(f"{entity} answers {pending.outcome}")
        return pending.outcome

    def load(self, *, entities: int = 10, at: Sequence[str] = (), tries: int = 1, **per_s: float) -> Load:
        """In the background until `end`, from hosts that run, to probes e0 … eN: `asks_per_s`, `notes_per_s` and so on,
        see `node.sim.load.Rates`."""
        rates = Rates(tries=tries, **{name.removesuffix("_per_s"): rate for name, rate in per_s.items()})
        load = Load(self.world, rates, "e", entities, tuple(at))
        self._loads.append(load)
        return load

    def end(self, *loads: Load, within_s: float = 20) -> None:
        """Nothing new from these (all, unless named), and all of it has an outcome."""
        ending = loads or tuple(self._loads)
        for load in ending:
            load.stop()
        self.until(lambda _: next((why for load in ending if (why := load.why_open())), ""), within_s=within_s)

    def _any_host(self) -> Host:
        names = [engine.me.name for engine in self.running() if engine.view.joined]
        return self.host(self.rng.choice(names or list(self.world.hosts)))

    # ---- what is so

    def coordinator(self) -> str:
        """The host whose coordinator is active; fails where there is none, or there are two."""
        active = [e.me.name for e in self.running() if e.sharding.coordinator.status().active]
        if len(active) != 1:
            raise StoryFailed(f"coordinators: {active}")
        return active[0]

    def owner(self, what: int | str) -> str:
        """The host on which a shard, or that of an entity, runs; empty where none or several say so."""
        shard = what if isinstance(what, int) else shard_of(what)
        owners = [e.me.name for e in self.running() if shard in e.sharding.region.running()]
        return owners[0] if len(owners) == 1 else ""
