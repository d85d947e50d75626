"""What goes wrong in a run, and when: everything here is drawn from the seed and printed with a failure.

Faults come in classes (CLASSES). Each class draws from a generator of its own, so that leaving one out changes no
other; in most runs some classes are left out by the draw as well, or the loud ones would hide what the quiet ones find
(swarm testing: Groce et al., 2012).
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from node.core.errors import BadInput
from node.core.faultpoints import POINTS

# A fault phase begins when a cluster of this age has formed, and ends some time before the run's own end.
FIRST_FAULT_MS = 7_000
# In so many runs nothing breaks: shards move and nodes drain, often, over a slow store and under more load. Only there
# may no message be lost and no ask end without an answer, whatever the reason (I6).
GENTLE_RATIO = 0.3
GENTLE_ROUNDS = 4

CLASSES: Final[dict[str, str]] = {
    "net": "loss, repeats, stragglers, delay, a limited rate",
    "cut": "partitions: one way, pairs, bridges, rings of majorities, flapping, one lane, slow links",
    "disk": "replica disks that fail, fill up, flip bits, lose what was not synced",
    "store": "a state store that is slow, away, out of reach for one node, or answers nobody knows what",
    "clock": "wall clocks that are off, drift, jump, strobe, and go back across a restart",
    "process": "crashes, crash loops, pauses short and long, wiped replicas, all nodes at once",
    "point": "a node that dies or stops at a named step of a commit, a hand-off or a drain",
    "operator": "moves, drains, two at once, taken back, rolling restarts",
}


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One thing done to the world at a time; the verbs are `node.sim.disturb`'s. `hosts` are whom it is done to (of a
    cut: one side), `for_ms` how long it lasts, `detail` and `n` what the verb says."""

    at_ms: int
    verb: str
    hosts: tuple[str, ...]
    for_ms: int
    detail: str = ""
    n: int = 0
    tag: str = ""  # its class and number there: what a replay token leaves it out by

    def __str__(self) -> str:
        detail = f" {self.detail}" if self.detail else ""
        detail += f" #{self.n}" if self.n else ""
        detail += f" [{self.tag}]" if self.tag else ""
        return f"{self.at_ms / 1000:.1f}s {self.verb}{detail} {','.join(self.hosts)} for {self.for_ms / 1000:.1f}s"


@dataclass(frozen=True, slots=True)
class Knobs:
    """Ratios are of messages, requests or operations; times in milliseconds unless the name says otherwise."""

    # Network: a message is lost, its frame comes twice, or overtakes nobody but arrives much later than its successors.
    loss_ratio: float = 0.0
    duplicate_ratio: float = 0.0
    straggle_ratio: float = 0.0
    delay_us: int = 200  # the least one-way delay
    jitter_ms: int = 2  # the most that is added to it; mostly far less
    straggle_ms: int = 1_000  # how late a straggler may be
    rate_bytes_per_s: int = 0  # what a lane of a wire carries; 0: no limit
    # Hosts: how far wall clocks are apart, how much clocks drift (parts in a million), how long a loop takes to come
    # round, how long a supervisor waits.
    wall_skew_ms: int = 5
    drift_ppm: int = 0
    turn_us: int = 100
    restart_ms: int = 1_000
    # State store: time to commit, the share of slow requests and their time, failures; `orphan_ratio`: requests that
    # are applied although their process died; `embedded`: a paused process can't have requests applied meanwhile, and
    # one that is paused inside a transaction blocks every other.
    store_us: int = 500
    store_slow_ratio: float = 0.0
    store_slow_ms: int = 500
    store_failure_ratio: float = 0.0
    orphan_ratio: float = 0.5
    embedded: bool = False
    # Replica disk. `unsynced_ms`: how often it syncs; a power cut loses what came since. 0: it syncs each commit.
    disk_ms: int = 5
    disk_failure_ratio: float = 0.0
    unsynced_ms: int = 0
    # Page classifier.
    classify_ms: int = 20
    # Workload: operations a second over all clients; entities that are made at the beginning and rest.
    serves_per_s: float = 2.0
    notes_per_s: float = 6.0  # numbered tells, see `node.sim.load`
    crowd: int = 0
    # Roles and profile: whether the last node carries none but api; the settings that nodes are started with.
    api_only_node: bool = False
    profile: str = "fast"
    disturbances: tuple[Disturbance, ...] = field(default=())

    def lines(self) -> tuple[str, ...]:
        """Each knob on a line, the disturbances last."""
        values = [f"{f.name}={getattr(self, f.name)}" for f in dataclasses.fields(self)[:-1]]
        return (*values, *(str(d) for d in self.disturbances))


def calm(**changes: Any) -> Knobs:
    """A network, a store and disks that only take their time: what stories begin with. `changes`: other knobs."""
    return dataclasses.replace(Knobs(), **changes)


def parse_classes(text: str) -> frozenset[str]:
    """`net,disk` as classes, `none` as none, `all` as all. Raises BadInput."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if words in (["all"], ["none"]):
        return frozenset(CLASSES) if words == ["all"] else frozenset()
    unknown = [word for word in words if word not in CLASSES]
    if unknown or not words:
        raise BadInput("faults", f"{', '.join(unknown) or 'nothing'} is not of: {', '.join(CLASSES)}, all, none")
    return frozenset(words)


Derive = Callable[[str], random.Random]


def draw(derive: Derive, hosts: tuple[str, ...], seconds: int, classes: Iterable[str] = CLASSES) -> Knobs:
    """The knobs of one run. `derive` makes a generator for a name, from the seed."""
    wanted = frozenset(classes)
    swarm = derive("knobs/swarm")
    left_out = {name for name in CLASSES if swarm.random() < 0.15}
    on = wanted - left_out
    gentle = swarm.random() < GENTLE_RATIO
    if gentle:
        on = wanted & {"operator"}
    base = derive("knobs/base")
    values: dict[str, object] = {
        "turn_us": base.randrange(20, 2_000),
        "restart_ms": base.randrange(300, 4_000),
        "delay_us": base.randrange(50, 2_000),
        "store_us": base.randrange(100, 5_000),
        "disk_ms": base.randrange(1, 50),
        "classify_ms": base.randrange(5, 500),
        "orphan_ratio": base.choice((0.0, 0.5, 1.0)),
        "embedded": base.random() < 0.5,
        "serves_per_s": 1.0 + base.random() * 5.0,
        "crowd": base.choice((0, 0, 0, 20, 60)),
        "api_only_node": len(hosts) >= 4 and base.random() < 0.3,
        "profile": "default" if seconds >= 100 and base.random() < 0.3 else "fast",
    }
    for name in CLASSES:
        if name in on and name in _RATIOS:
            values |= _RATIOS[name](derive(f"knobs/{name}"))
    if gentle:
        repeated = {"duplicate_ratio": _some(base, 0.5, 0.1), "jitter_ms": base.randrange(1, 60)}
        values |= {"store_us": base.choice((1_000, 20_000, 60_000)), "notes_per_s": 40.0, **repeated}
    disturbances: list[Disturbance] = []
    for name in CLASSES:
        if name in on and name in _DISTURBANCES:
            rounds = max(1, seconds // 60) * (GENTLE_ROUNDS if gentle else 1)
            found = _DISTURBANCES[name](_Draw(derive(f"disturbances/{name}"), hosts, seconds, rounds))
            disturbances += [dataclasses.replace(d, tag=f"{name}{number}") for number, d in enumerate(found)]
    disturbances.sort(key=lambda d: (d.at_ms, d.verb, d.hosts, d.detail, d.n))
    return Knobs(**values, disturbances=tuple(disturbances))  # type: ignore[arg-type]  # each by its field's name


# ---- what holds for a whole run


def _some(rng: random.Random, chance: float, most: float) -> float:
    return rng.random() * most if rng.random() < chance else 0.0


def _net(rng: random.Random) -> dict[str, object]:
    loud = rng.random() < 0.1
    return {
        "loss_ratio": 0.001 + rng.random() * (0.3 if loud else 0.03),
        "duplicate_ratio": 0.001 + rng.random() * (0.2 if loud else 0.02),
        "straggle_ratio": _some(rng, 0.5, 0.01),
        "jitter_ms": rng.randrange(1, 60),
        "straggle_ms": rng.randrange(100, 3_000),
        "rate_bytes_per_s": rng.choice((0, 0, 0, 0, 32_000, 8_000)),
    }


def _disk(rng: random.Random) -> dict[str, object]:
    return {
        "disk_failure_ratio": _some(rng, 0.3, 0.2),
        "unsynced_ms": rng.randrange(100, 5_000) if rng.random() < 0.5 else 0,
    }


def _store(rng: random.Random) -> dict[str, object]:
    return {
        "store_slow_ratio": _some(rng, 0.5, 0.03),
        "store_slow_ms": rng.randrange(50, 1_500),
        "store_failure_ratio": _some(rng, 0.4, 0.02),
    }


def _clock(rng: random.Random) -> dict[str, object]:
    return {"wall_skew_ms": rng.choice((0, 5, 300)), "drift_ppm": rng.choice((0, 0, 200, 20_000))}


_RATIOS: Final[dict[str, Callable[[random.Random], dict[str, object]]]] = {
    "net": _net,
    "disk": _disk,
    "store": _store,
    "clock": _clock,
}


# ---- what happens once


class _Draw:
    """Chooses hosts and times for the disturbances of one class."""

    def __init__(self, rng: random.Random, hosts: tuple[str, ...], seconds: int, rounds: int) -> None:
        self.rng = rng
        self.hosts = hosts
        self._last_ms = max(FIRST_FAULT_MS + 1_000, seconds * 1_000 - 5_000)
        # A longer run has more of everything.
        self.rounds = rounds

    def when(self) -> int:
        return self.rng.randrange(FIRST_FAULT_MS, self._last_ms)

    def one(self) -> tuple[str, ...]:
        return (self.rng.choice(self.hosts),)

    def side(self) -> tuple[str, ...]:
        most = max(2, len(self.hosts) // 2 + 1)
        return tuple(sorted(self.rng.sample(self.hosts, min(len(self.hosts), self.rng.randrange(1, most)))))

    def pair(self) -> tuple[str, ...]:
        return tuple(self.rng.sample(self.hosts, min(2, len(self.hosts))))

    def shuffled(self) -> tuple[str, ...]:
        return tuple(self.rng.sample(self.hosts, len(self.hosts)))

    def each(self, *rows: tuple[str, float, Callable[[], tuple[str, ...]], int]) -> list[Disturbance]:
        """Of rows `verb, chance, whom, the longest in ms`, those that chance lets happen."""
        found: list[Disturbance] = []
        for verb, chance, whom, longest_ms in rows * self.rounds:
            if self.rng.random() < chance:
                found.append(Disturbance(self.when(), verb, whom(), self.rng.randrange(1, longest_ms + 1)))
        return found


def _cuts(d: _Draw) -> list[Disturbance]:
    found = [Disturbance(d.when(), d.rng.choice(("cut", "cut", "cut_one_way")), d.side(), d.rng.randrange(500, 20_000))]
    found += d.each(
        ("cut", 0.3, d.one, 20_000),
        ("cut_one_way", 0.3, d.one, 15_000),
        ("cut_pair", 0.4, d.pair, 15_000),
        ("bridge", 0.15, d.shuffled, 12_000),
        ("ring", 0.15, d.shuffled, 12_000),
        ("flap", 0.2, d.one, 20_000),
        ("swizzle", 0.2, d.shuffled, 12_000),
        ("slow_link", 0.2, d.pair, 10_000),
    )
    if d.rng.random() < 0.2:
        lane = d.rng.choice(("control", "data"))
        found.append(Disturbance(d.when(), "cut_lane", d.one(), d.rng.randrange(500, 10_000), lane))
    return found


def _disks(d: _Draw) -> list[Disturbance]:
    found = d.each(("disk_full", 0.3, d.one, 15_000), ("power", 0.4, d.one, 8_000))
    if d.rng.random() < 0.3:
        found.append(Disturbance(d.when(), "flip", d.one(), 1, n=d.rng.randrange(1, 21)))
    return found


def _stores(d: _Draw) -> list[Disturbance]:
    return d.each(("store_away", 0.25, lambda: (), 8_000), ("store_cut", 0.4, d.one, 12_000))


def _clocks(d: _Draw) -> list[Disturbance]:
    found = d.each(
        ("step_clock", 0.3, d.one, 2_000),
        ("strobe", 0.2, d.one, 8_000),
        ("step_restart", 0.2, d.one, 40_000),
    )
    if d.rng.random() < 0.15:  # far beyond what peers accept
        found.append(Disturbance(d.when(), "clock_ahead", d.one(), d.rng.randrange(500, 10_000), n=3_600))
    return found


_UNWRITTEN: Final = ("store.before_begin", "store.in_transaction", "store.before_commit")


def _processes(d: _Draw) -> list[Disturbance]:
    found = [
        Disturbance(d.when(), d.rng.choice(("crash", "crash", "wipe")), d.one(), d.rng.randrange(200, 15_000)),
    ]
    found += d.each(
        ("pause", 0.5, d.one, 15_000),
        ("pause", 0.2, d.one, 3_000),
        ("hiccups", 0.2, d.one, 15_000),
        ("crash", 0.3, d.one, 10_000),
        ("crash_loop", 0.15, d.one, 15_000),
        ("crash", 0.07, lambda: d.hosts, 8_000),
        ("all_down_one_up", 0.05, d.shuffled, 8_000),
    )
    # Stopped with a write in hand, for so long that its shards are another's when it goes on.
    for _ in range(d.rounds):
        if d.rng.random() < 0.5:
            point, for_ms = d.rng.choice(_UNWRITTEN), d.rng.randrange(6_000, 15_000)
            found.append(Disturbance(d.when(), "point_pause", d.one(), for_ms, point, 1))
    return found


# Where a run's nodes may be ended or stopped; how often a point is passed over first.
_PASSED: Final = {"store": 60, "handoff": 8, "drain": 1}


def _points(d: _Draw) -> list[Disturbance]:

    names = sorted(POINTS)
    found: list[Disturbance] = []
    for _ in range(d.rng.choice((1, 2, 3)) * d.rounds):
        point = d.rng.choice(names)
        verb = "point_pause" if d.rng.random() < 0.3 else "point_kill"
        passed = d.rng.randrange(1, _PASSED.get(point.partition(".")[0], 4) + 1)
        # Half of them wait for a certain node, half take whoever comes there first.
        hosts = d.one() if d.rng.random() < 0.5 else d.hosts
        found.append(Disturbance(d.when(), verb, hosts, d.rng.randrange(200, 12_000), point, passed))
        if point.startswith("drain."):
            found.append(Disturbance(d.when(), "drain", d.one(), 1))
    return found


def _operators(d: _Draw) -> list[Disturbance]:
    return d.each(
        ("drain", 0.3, d.one, 5_000),
        ("drain", 0.1, d.pair, 5_000),
        ("rolling", 0.1, d.shuffled, 4_000),
        *((("move", 0.4, d.one, 1),) * 6),
    )


_DISTURBANCES: Final[dict[str, Callable[[_Draw], list[Disturbance]]]] = {
    "cut": _cuts,
    "disk": _disks,
    "store": _stores,
    "clock": _clocks,
    "process": _processes,
    "point": _points,
    "operator": _operators,
}
