"""A machine of the simulated cluster: its clocks, its disk, one process at most, and what restarts that."""

from __future__ import annotations

from collections import Counter
from functools import partial

from node.core import limits
from node.core.clock import MS, SECOND
from node.core.ids import NodeId
from node.engine.config import Exit
from node.sim.disk import SimDisk
from node.sim.faults import Knobs
from node.sim.network import Network
from node.sim.points import Points
from node.sim.process import Process
from node.sim.scheduler import HostClock, Scheduler
from node.sim.setup import Setup
from node.sim.store import SimStore
from node.sim.trace import Trace
from node.store.journal import MemoryJournal


class Host:
    """`process` is None while it is down. `held_down` keeps the supervisor from restarting it."""

    def __init__(
        self,
        name: str,
        setup: Setup,
        scheduler: Scheduler,
        trace: Trace,
        knobs: Knobs,
        network: Network,
        store: SimStore,
        points: Points,
    ) -> None:
        self.name = name
        self.setup = setup
        self.scheduler = scheduler
        self.trace = trace
        self.knobs = knobs
        self.network = network
        self.store = store
        self.points = points
        self.disk = SimDisk(scheduler, knobs, name)
        draw = scheduler.derive(f"host/{name}")
        skew_ms, drift_ppm = knobs.wall_skew_ms, knobs.drift_ppm
        self.clock = HostClock(
            scheduler,
            draw.randrange(10**6) * SECOND,
            draw.randrange(-skew_ms, skew_ms + 1),
            draw.randrange(-drift_ppm, drift_ppm + 1),
        )
        self.journal = MemoryJournal(limits.decisions_kept_max)
        self.process: Process | None = None
        self.held_down = 0
        self.exits: list[str] = []
        self.crashes = 0
        self.removals = 0  # by the cluster's decision
        self.cut_short = 0  # drains that did not wait for everything
        self.pauses = 0
        self.deaths_ns: list[int] = []  # of processes that may have had messages in them
        # Of processes that are gone: dead letters by reason and type, and what arrived and was dropped, by type.
        self.dead_letters: Counter[tuple[str, str]] = Counter()
        self.dropped: Counter[str] = Counter()
        self.ended_ns: dict[NodeId, int] = {}  # by process that is gone
        # By process that is gone: writes that it counted as fenced, shards of which it said so.
        self.fenced: dict[NodeId, tuple[int, int]] = {}
        self.starts = 0

    def start(self) -> None:
        """Unless it runs, or must not."""
        if self.process is None and not self.held_down:
            self.starts += 1
            self.process = Process(self, self._exited)
            self.process.boot()

    def crash(self) -> None:
        """kill -9."""
        process, self.process = self.process, None
        if process is not None:
            self.crashes += 1
            self.deaths_ns.append(self.scheduler.now_ns)
            self.trace.add(f"{process.me} crashes")
            process.kill()

    def down_for(self, ms: int, *, wipe: bool = False, power: bool = False) -> None:
        """Crash, and start again after a while. `wipe`: without its replica; `power`: without what was not synced."""
        self.crash()
        self.held_down += 1
        if wipe:
            self.disk.wipe()
        if power:
            self.trace.add(f"{self.name} loses {self.disk.power_cut()} commits of its replica")

        def up() -> None:
            self.held_down = max(0, self.held_down - 1)  # the heal may have let go of it before
            self.start()

        self.scheduler.after(ms * MS, up)

    def pause_for(self, ms: int) -> None:
        process = self.process
        if process is None or process.paused:
            return
        self.trace.add(f"{process.me} is paused")
        process.pause()

        def resume() -> None:
            if process.alive:
                self.trace.add(f"{process.me} goes on")
                process.go_on()

        self.scheduler.after(ms * MS, resume)

    def drain(self) -> None:
        """As by SIGTERM; its supervisor starts it again afterwards."""
        process = self.process
        if process is not None and process.service is not None:
            self.trace.add(f"{process.me} is told to drain")
            process.run(partial(process.service.stop, drain=True))

    def _exited(self, process: Process, reason: Exit) -> None:
        self.exits.append(reason.reason)
        self.removals += reason.removed
        overran = process.engine is not None and process.engine.drain.overran
        self.cut_short += overran
        if overran or reason.removed:
            self.deaths_ns.append(self.scheduler.now_ns)
        self.trace.add(f"{process.me} exits: {reason.reason[:120]}")
        process.kill()
        if self.process is process:
            self.process = None
            if self.setup.supervised:
                self.scheduler.after(self.knobs.restart_ms * MS, self.start)
