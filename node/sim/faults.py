"""What goes wrong in a run, and when: everything here is drawn from the seed and printed with a failure."""

from __future__ import annotations

import dataclasses
import random
from dataclasses import dataclass, field
from typing import Any

# A fault phase begins when a cluster of this age has formed, and ends some time before the run's own end.
FIRST_FAULT_MS = 7_000


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One thing done to the world at a time. `verb`: crash, wipe (a crash that loses the replica), pause, drain, cut,
    cut_one_way, step_clock, move (the shard of an entity that is in use, to that host). `hosts` are whom it is done to
    (of a cut: one side), `for_ms` how long it lasts."""

    at_ms: int
    verb: str
    hosts: tuple[str, ...]
    for_ms: int

    def __str__(self) -> str:
        return f"{self.at_ms / 1000:.1f}s {self.verb} {','.join(self.hosts)} for {self.for_ms / 1000:.1f}s"


@dataclass(frozen=True, slots=True)
class Knobs:
    """Ratios are of messages, requests or operations; times in milliseconds unless the name says otherwise."""

    # Network: a message is lost, comes twice, or overtakes nobody but arrives much later than its successors.
    loss_ratio: float
    duplicate_ratio: float
    straggle_ratio: float
    delay_us: int  # the least one-way delay
    jitter_ms: int  # the most that is added to it; mostly far less
    straggle_ms: int  # how late a straggler may be
    # Hosts: how far wall clocks are apart, how long a loop takes to come round, how long a supervisor waits.
    wall_skew_ms: int
    turn_us: int
    restart_ms: int
    # State store: time to commit, the share of slow requests and their time, failures; `orphan_ratio`: requests that
    # are applied although their process died; `embedded`: a paused process can't have requests applied meanwhile.
    store_us: int
    store_slow_ratio: float
    store_slow_ms: int
    store_failure_ratio: float
    orphan_ratio: float
    embedded: bool
    # Replica disk.
    disk_ms: int
    disk_failure_ratio: float
    # Page classifier.
    classify_ms: int
    # Workload: operations a second over all clients.
    serves_per_s: float
    # Roles: whether the last node carries none but api.
    api_only_node: bool
    disturbances: tuple[Disturbance, ...] = field(default=())

    def lines(self) -> tuple[str, ...]:
        """Each knob on a line, the disturbances last."""
        values = [f"{f.name}={getattr(self, f.name)}" for f in dataclasses.fields(self)[:-1]]
        return (*values, *(str(d) for d in self.disturbances))


def calm(**changes: Any) -> Knobs:
    """A network, a store and disks that only take their time: what stories begin with. `changes`: other knobs."""
    quiet = Knobs(
        loss_ratio=0.0,
        duplicate_ratio=0.0,
        straggle_ratio=0.0,
        delay_us=200,
        jitter_ms=2,
        straggle_ms=1_000,
        wall_skew_ms=5,
        turn_us=100,
        restart_ms=1_000,
        store_us=500,
        store_slow_ratio=0.0,
        store_slow_ms=500,
        store_failure_ratio=0.0,
        orphan_ratio=0.5,
        embedded=False,
        disk_ms=5,
        disk_failure_ratio=0.0,
        classify_ms=20,
        serves_per_s=2.0,
        api_only_node=False,
    )
    return dataclasses.replace(quiet, **changes)


def draw(rng: random.Random, hosts: tuple[str, ...], seconds: int) -> Knobs:
    """The knobs of one run. Loss, delay, duplication, a partition and a crash are in each; the rest in some."""

    def some(chance: float, most: float) -> float:
        """Whole classes of faults are on or off, so that one does not always hide the other."""
        return rng.random() * most if rng.random() < chance else 0.0

    return Knobs(
        loss_ratio=0.001 + rng.random() * 0.03,
        duplicate_ratio=0.001 + rng.random() * 0.02,
        straggle_ratio=some(0.5, 0.01),
        delay_us=rng.randrange(50, 2_000),
        jitter_ms=rng.randrange(1, 60),
        straggle_ms=rng.randrange(100, 3_000),
        wall_skew_ms=rng.choice((0, 5, 300)),
        turn_us=rng.randrange(20, 2_000),
        restart_ms=rng.randrange(300, 4_000),
        store_us=rng.randrange(100, 5_000),
        store_slow_ratio=some(0.4, 0.03),
        store_slow_ms=rng.randrange(50, 1_500),
        store_failure_ratio=some(0.3, 0.02),
        orphan_ratio=rng.choice((0.0, 0.5, 1.0)),
        embedded=rng.random() < 0.5,
        disk_ms=rng.randrange(1, 50),
        disk_failure_ratio=some(0.2, 0.2),
        classify_ms=rng.randrange(5, 500),
        serves_per_s=1.0 + rng.random() * 5.0,
        api_only_node=len(hosts) >= 4 and rng.random() < 0.3,
        disturbances=_disturbances(rng, hosts, seconds),
    )


def _disturbances(rng: random.Random, hosts: tuple[str, ...], seconds: int) -> tuple[Disturbance, ...]:
    last_ms = max(FIRST_FAULT_MS + 1_000, seconds * 1_000 - 5_000)

    def when() -> int:
        return rng.randrange(FIRST_FAULT_MS, last_ms)

    side = tuple(sorted(rng.sample(hosts, rng.randrange(1, max(2, len(hosts) // 2 + 1)))))
    found = [
        Disturbance(when(), rng.choice(("cut", "cut", "cut_one_way")), side, rng.randrange(500, 20_000)),
        Disturbance(when(), rng.choice(("crash", "crash", "wipe")), (rng.choice(hosts),), rng.randrange(200, 15_000)),
    ]
    for verb, chance, longest_ms in (
        ("pause", 0.5, 15_000),
        ("pause", 0.2, 3_000),
        ("drain", 0.3, 5_000),
        ("crash", 0.3, 10_000),
        ("step_clock", 0.2, 2_000),
        *(("move", 0.4, 1),) * 6,
    ):
        if rng.random() < chance:
            found.append(Disturbance(when(), verb, (rng.choice(hosts),), rng.randrange(1, longest_ms + 1)))
    if rng.random() < 0.1:
        found.append(Disturbance(when(), "crash", hosts, rng.randrange(200, 8_000)))
    return tuple(sorted(found, key=lambda d: (d.at_ms, d.verb, d.hosts)))
