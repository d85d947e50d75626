"""The whole simulated cluster: hosts over one network and one store, what disturbs them, and clients' way in."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from node.core.clock import MS
from node.core.ids import Ref, ServiceRef
from node.flows.messages import MoveShard
from node.sim import history as h
from node.sim.faults import Disturbance, Knobs
from node.sim.host import Host
from node.sim.invariants import EveryInstant, Violation
from node.sim.network import Network
from node.sim.outcomes import REFUSED
from node.sim.plants import PLANTS
from node.sim.process import Process
from node.sim.scheduler import HostClock, Scheduler
from node.sim.setup import Setup
from node.sim.store import SimStore
from node.sim.trace import Trace
from node.store.memory import MemoryStore
from node.store.port import StateStore

PATIENCE_MS = 1_000  # how much longer than its deadline a client waits before it gives a request up


class World:
    """`violation` is the first thing that must not happen; the run stops there. `shards_in_use`: of entities."""

    def __init__(
        self, scheduler: Scheduler, knobs: Knobs, setups: Mapping[str, Setup], history: h.History, plant: str = ""
    ) -> None:
        self.scheduler = scheduler
        self.knobs = knobs
        self.trace = Trace(scheduler)
        self.history = history
        self.violation: Violation | None = None
        self.shards_in_use: tuple[int, ...] = (0,)
        self._instants = EveryInstant()
        memory = MemoryStore(HostClock(scheduler))
        kept: StateStore = PLANTS[plant](memory) if plant else memory
        self.network = Network(scheduler, self.trace, knobs)
        self.store = SimStore(scheduler, self.trace, knobs, kept, self.record)
        self.hosts: dict[str, Host] = {}
        for name, setup in setups.items():
            self.add_host(name, setup)

    def add_host(self, name: str, setup: Setup) -> Host:
        """One machine more; nothing runs on it yet."""
        host = Host(name, setup, self.scheduler, self.trace, self.knobs, self.network, self.store)
        self.hosts[name] = host
        return host

    def record(self, event: h.Event) -> None:
        """Add to the history and let the checkers of every instant look at it."""
        self.history.log.append(event)
        if self.violation is None:
            self.violation = self._instants.see(event)

    def violated(self) -> bool:
        return self.violation is not None

    # ---- faults

    def begin(self, rng: random.Random) -> None:
        """Start all hosts, each at its own time, and set up what will disturb them."""
        for host in self.hosts.values():
            self.scheduler.after(rng.randrange(800) * MS, host.start)
        for disturbance in self.knobs.disturbances:
            self.scheduler.at(disturbance.at_ms * MS, self._disturb, disturbance, rng)

    def _disturb(self, disturbance: Disturbance, rng: random.Random) -> None:
        self.trace.add(f"-- {disturbance}")
        hosts, for_ms = disturbance.hosts, disturbance.for_ms
        others = tuple(name for name in self.hosts if name not in hosts)
        match disturbance.verb:
            case "cut" | "cut_one_way":
                ways = [(hosts, others)] if disturbance.verb == "cut_one_way" else [(hosts, others), (others, hosts)]
                for way in ways:
                    self.network.cut(*way)
                    self.scheduler.after(for_ms * MS, self.network.mend, *way)
            case "step_clock":
                self.hosts[hosts[0]].clock.step_wall_ms(rng.choice((-for_ms, for_ms)))
            case "move":
                self._move(rng.choice(self.shards_in_use), hosts[0])
            case verb:
                for name in hosts:
                    self._down(verb, self.hosts[name], for_ms)

    def _down(self, verb: str, host: Host, for_ms: int) -> None:
        match verb:
            case "crash" | "wipe":
                host.down_for(for_ms, wipe=verb == "wipe")
            case "pause":
                host.pause_for(for_ms)
            case "drain":
                host.drain()
            case _:
                raise ValueError(verb)

    def _move(self, shard: int, to: str) -> None:
        for host in self.hosts.values():
            engine = host.process.engine if host.process else None
            if engine is not None and engine.sharding.coordinator.status().active:
                self.ask(host, ServiceRef(host.name, "/node"), MoveShard(shard, to), 10_000, lambda _: None)

    def heal(self) -> None:
        """The end of the fault phase: everything is whole and runs from now on."""
        self.trace.add("-- healed")
        self.network.heal()
        self.store.heal()
        for host in self.hosts.values():
            host.disk.heal()
            host.held_down = 0
            if host.process is not None and host.process.paused:
                host.process.go_on()
            host.start()

    # ---- clients

    def ask(
        self, host: Host, to: Ref, message: msgspec.Struct, timeout_ms: int, on_outcome: Callable[[Any], object]
    ) -> None:
        """A request to one host, as over HTTP: `on_outcome` once, with the reply, `Failed`, or None where the client
        will never know. A host that isn't there, or has not joined, refuses at once: REFUSED."""
        process = host.process
        engine = process.engine if process else None
        if process is None or engine is None or not engine.view.joined or not engine.drain.accepts_work:
            self.scheduler.after(0, on_outcome, REFUSED)
            return
        answered = False

        def once(outcome: Any) -> None:
            nonlocal answered
            if not answered:
                answered = True
                on_outcome(outcome)

        process.until_killed(lambda: once(None))
        self.scheduler.after((timeout_ms + PATIENCE_MS) * MS, once, None)
        process.run(engine.ask, to, message, timeout_ms, once)

    def processes(self) -> list[Process]:
        """Those that run, by the order of their hosts."""
        return [host.process for host in self.hosts.values() if host.process is not None]

    def run(self, until_ms: int, stop: Callable[[], bool] | None = None) -> None:
        self.scheduler.run_until(until_ms * MS, stop or self.violated)
