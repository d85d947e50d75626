"""The whole simulated cluster: hosts over one network and one store, what disturbs them, and clients' way in."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from node.core.clock import MS
from node.core.ids import Ref
from node.engine.engine import Engine
from node.sim import history as h
from node.sim.disturb import disturb
from node.sim.faults import Knobs
from node.sim.host import Host
from node.sim.invariants import EveryInstant
from node.sim.network import Network
from node.sim.outcomes import REFUSED
from node.sim.plants import PLANTS
from node.sim.points import Points
from node.sim.probe import with_probes
from node.sim.process import Process
from node.sim.scheduler import HostClock, Scheduler
from node.sim.setup import Setup
from node.sim.store import SimStore
from node.sim.trace import Trace
from node.sim.verdict import Violation
from node.store.memory import MemoryStore
from node.store.port import StateStore

PATIENCE_MS = 1_000  # how much longer than its deadline a client waits before it gives a request up


class World:
    """`violation` is the first thing that must not happen; the run stops there. `shards_in_use`: of entities."""

    def __init__(self, scheduler: Scheduler, knobs: Knobs, setups: Mapping[str, Setup], plant: str = "") -> None:
        self.scheduler = scheduler
        self.knobs = knobs
        self.trace = Trace(scheduler)
        self.history = h.History()
        self.violation: Violation | None = None
        self.shards_in_use: tuple[int, ...] = (0,)
        self._asks = 0
        self._instants = EveryInstant()
        memory = MemoryStore(HostClock(scheduler))
        kept: StateStore = PLANTS[plant](memory) if plant else memory
        self.healed = False
        self.ops_left = -1  # how many requests of clients are taken yet; below 0: any number
        self.disturbed: Counter[str] = Counter()
        self.points = Points()
        self.network = Network(scheduler, self.trace, knobs, self.record)
        self.store = SimStore(scheduler, self.trace, knobs, kept, self.record, self.points)
        self.hosts: dict[str, Host] = {}
        for name, setup in setups.items():
            self.add_host(name, setup)

    def add_host(self, name: str, setup: Setup) -> Host:
        """One machine more; nothing runs on it yet."""
        setup = replace(setup, compose=partial(with_probes, self.history, self.record))
        host = Host(name, setup, self.scheduler, self.trace, self.knobs, self.network, self.store, self.points)
        self.hosts[name] = host
        return host

    def record(self, event: h.Event) -> None:
        """Add to the history and let the checkers of every instant look at it."""
        self.history.log.append(event)
        if self.violation is None:
            self.violation = self._instants.see(event)

    def violated(self) -> bool:
        return self.violation is not None

    def forget(self) -> None:
        """Of what is long over keep what the checkers of the end ask for: runs of days call it now and then."""
        self.history.log = [event for event in self.history.log if isinstance(event, h.Placed)]
        self._instants.forget()

    # ---- faults

    def begin(self, rng: random.Random) -> None:
        """Start all hosts, each at its own time, and set up what will disturb them."""
        for host in self.hosts.values():
            self.scheduler.after(rng.randrange(800) * MS, host.start)
        self.network.limit(self.knobs.rate_bytes_per_s)
        for disturbance in self.knobs.disturbances:
            self.scheduler.at(disturbance.at_ms * MS, disturb, self, disturbance)

    def heal(self) -> None:
        """The end of the fault phase: everything is whole and runs from now on."""
        self.trace.add("-- healed")
        self.healed = True
        self.ops_left = -1
        self.network.heal()
        self.store.heal()
        self.points.heal()
        for host in self.hosts.values():
            host.disk.heal()
            host.clock.set_right()
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
        refused = self.ops_left == 0
        self.ops_left -= 1
        if refused or process is None or engine is None or not engine.view.joined or not engine.drain.accepts_work:
            self.scheduler.after(0, on_outcome, REFUSED)
            return
        self._asks += 1
        answered, pauses = False, -1 if process.paused else process.pauses
        number, node, deadline_ns = self._asks, process.me, self.scheduler.now_ns + timeout_ms * MS

        def once(outcome: Any) -> None:
            nonlocal answered
            if not answered:
                answered = True
                process.answered(handed_out)
                on_outcome(outcome)

        def ended(outcome: Any) -> None:
            now_ns, excused = self.scheduler.now_ns, process.pauses != pauses
            self.record(h.Ended(now_ns, node, number, deadline_ns, never=False, excused=excused))
            once(outcome)

        def given_up() -> None:
            if not answered:
                now_ns, excused = self.scheduler.now_ns, not process.alive or process.pauses != pauses
                self.record(h.Ended(now_ns, node, -number, deadline_ns, never=True, excused=excused))
                once(None)

        handed_out = process.until_killed(lambda: once(None))
        self.scheduler.after((timeout_ms + PATIENCE_MS) * MS, given_up)
        process.run(engine.ask, to, message, timeout_ms, ended)

    def processes(self) -> list[Process]:
        """Those that run, by the order of their hosts."""
        return [host.process for host in self.hosts.values() if host.process is not None]

    def engines(self) -> list[Engine]:
        """Of all processes that have got that far."""
        return [process.engine for process in self.processes() if process.engine is not None]

    def run(self, until_ms: int, stop: Callable[[], bool] | None = None) -> None:
        with self.points:
            self.scheduler.run_until(until_ms * MS, stop or self.violated)
