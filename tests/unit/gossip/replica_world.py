"""A world of replicators for tests: virtual time, a lossy network, disks whose last commits a crash may lose.

Everything is drawn from one seed. Messages go through the codec, so that what is tested is what can travel.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from dataclasses import dataclass, field

from node.core.clock import MS
from node.core.errors import OperatingError
from node.gossip.replica_io import (
    Applied,
    Commit,
    Committed,
    Effect,
    Fault,
    FaultCleared,
    JoinRoster,
    PeersChanged,
    Received,
    RemovalOutcome,
    ReplicationSettings,
    RosterKnown,
    Send,
    Tick,
)
from node.gossip.replica_roster import ReplicaRoster, joined, left
from node.gossip.replicator import Replicator
from node.store.replica_memory import MemoryReplica
from node.store.replica_port import ReplicaIdentity
from node.wire.codec import CODEC, dumps

WALL_MS = 1_700_000_000_000


class FlakyReplica(MemoryReplica):
    """A replica whose commits fail while `failing` is set."""

    failing = False

    def commit(self, batch):
        if self.failing:
            raise OperatingError("E-STORE", "no space left")
        super().commit(batch)


@dataclass
class Link:
    """How messages travel: `loss` and `twice` are probabilities, delays in milliseconds."""

    loss: float = 0.0
    twice: float = 0.0
    delay_ms_min: int = 1
    delay_ms_max: int = 3


@dataclass
class Host:
    name: str
    store: FlakyReplica
    replicator: Replicator
    start: int
    skew_ms: int = 0
    applied: list[str] = field(default_factory=list)
    faults: list[Effect] = field(default_factory=list)
    removals: list[RemovalOutcome] = field(default_factory=list)
    batches: list = field(default_factory=list)


class World:
    """Hosts `n0`, `n1`, … that all know each other."""

    def __init__(self, count: int, seed: int = 1, *, settings: ReplicationSettings | None = None, log_bytes=16 << 20):
        self.rng = random.Random(seed)
        self.settings = settings or ReplicationSettings()
        self.log_bytes = log_bytes
        self.now_ns = 0
        self.link = Link()
        self.cut: set[frozenset[str]] = set()
        self.sent: Counter[str] = Counter()
        self.sent_bytes = 0
        self.commit_ms = 5
        self.roster = ReplicaRoster()
        self.coordinating = True  # whether wishes to join the roster are heard, and the roster told
        self._say_ns = 0
        self._queue: list = []
        self._serial = 0
        self._starts = 0
        self._starts_of: Counter[str] = Counter()
        self.hosts: dict[str, Host] = {}
        self.names = [f"n{i}" for i in range(count)]
        for name in self.names:
            self.start(name, new_store())
        self.tell_peers()

    # ---- hosts

    def start(self, name: str, store: FlakyReplica, skew_ms: int = 0) -> None:
        self._starts += 1
        self._starts_of[name] += 1
        store.begin(self._starts_of[name])
        rng = random.Random(self.rng.getrandbits(64))
        replicator = Replicator(name, store, self.settings, rng, log_bytes_max=self.log_bytes)
        host = self.hosts[name] = Host(name, store, replicator, self._starts, skew_ms)
        self.step(host, RosterKnown(self.roster))

    def restart(self, name: str, *, wipe: bool = False) -> None:
        """kill -9 and start again: what was not committed is gone, and with `wipe` the file too."""
        host = self.hosts.pop(name)
        self.start(name, new_store() if wipe else host.store, host.skew_ms)
        self.tell_peers()

    def stop(self, name: str) -> FlakyReplica:
        store = self.hosts.pop(name).store
        self.tell_peers()
        return store

    def tell_peers(self) -> None:
        for host in list(self.hosts.values()):
            peers = frozenset(
                other for other in self.hosts if other != host.name and frozenset((other, host.name)) not in self.cut
            )
            self.step(host, PeersChanged(peers))

    def partition(self, *sides: set[str], told: bool = True) -> None:
        self.cut = {
            frozenset((a, b)) for side in sides for a in side for other in sides if other is not side for b in other
        }
        if told:
            self.tell_peers()

    def heal(self) -> None:
        self.cut = set()
        self.link = Link()
        self.tell_peers()

    def wall_ms(self, name: str) -> int:
        return WALL_MS + self.now_ns // MS + self.hosts[name].skew_ms

    # ---- the roster, as a coordinator at the first host keeps it

    def take_off(self, name: str) -> None:
        self._write_roster(left(self.roster, name, WALL_MS + self.now_ns // MS, "test"))

    def _write_roster(self, changed: ReplicaRoster | None) -> None:
        self.roster = changed or self.roster
        self.tell_roster()

    def tell_roster(self) -> None:
        host = next(iter(self.hosts.values()), None)
        if host is not None:
            self.step(host, RosterKnown(self.roster))

    def settled_roster(self) -> bool:
        """Whether every host's replica is on the roster and knows it."""
        return all(host.replicator.tenure for host in self.hosts.values())

    # ---- work

    def put(self, name: str, key: str, value: bytes = b"v", epoch: int = 1, ttl_ms: int = 0):
        host = self.hosts[name]
        wall_ms = self.wall_ms(name)
        expires = wall_ms + ttl_ms if ttl_ms else 0
        version, effects = host.replicator.put(key, value, epoch, expires, self.now_ns, wall_ms)
        self._carry_out(host, effects)
        return version

    def remove(self, name: str, key: str, epoch: int = 1):
        host = self.hosts[name]
        version, effects = host.replicator.remove(key, epoch, self.now_ns, self.wall_ms(name))
        self._carry_out(host, effects)
        return version

    def get(self, name: str, key: str) -> bytes | None:
        entry = self.hosts[name].replicator.get(key, self.wall_ms(name))
        return None if entry is None else entry.value

    def step(self, host: Host, event) -> list[Effect]:
        effects = host.replicator.step(event, self.now_ns, self.wall_ms(host.name))
        self._carry_out(host, effects)
        return effects

    # ---- time

    def run(self, ms: int) -> None:
        """Lets that much virtual time pass."""
        end_ns = self.now_ns + ms * MS
        while True:
            if self.coordinating and self.now_ns >= self._say_ns:
                self._say_ns = self.now_ns + self.settings.roster_say_ns
                self.tell_roster()
            wakes = [(max(h.replicator.next_wake_ns(), self.now_ns), h.name) for h in self.hosts.values()]
            wake_ns, name = min(wakes)
            if self._queue and self._queue[0][0] <= wake_ns:
                if self._queue[0][0] > end_ns:
                    break
                at_ns, _, target, start, event = heapq.heappop(self._queue)
                self.now_ns = max(self.now_ns, at_ns)
                host = self.hosts.get(target)
                if host is not None and (start is None or host.start == start):
                    self._deliver(host, event)
                continue
            if wake_ns > end_ns:
                break
            self.now_ns = wake_ns
            self.step(self.hosts[name], Tick())
            after_ns = self.hosts[name].replicator.next_wake_ns()
            assert after_ns > self.now_ns, f"{name} wakes again at once"
        self.now_ns = end_ns

    def until(self, holds, ms_max: int, step_ms: int = 20) -> int:
        """Runs until `holds()`; the milliseconds it took. Fails after `ms_max`."""
        began_ns = self.now_ns
        while not holds():
            assert self.now_ns - began_ns <= ms_max * MS, f"not within {ms_max} ms: {self.describe()}"
            self.run(step_ms)
        return (self.now_ns - began_ns) // MS

    def _deliver(self, host: Host, event) -> None:
        if callable(event):
            event = event()
        if isinstance(event, Received) and frozenset((event.sender, host.name)) in self.cut:
            return
        self.step(host, event)

    def _carry_out(self, host: Host, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send():
                    self._send(host, effect)
                case Commit(token, batch):
                    host.batches.append(batch)
                    self._at(self.commit_ms, host.name, host.start, lambda b=batch, t=token, h=host: commit(h, t, b))
                case Applied(keys):
                    host.applied.extend(keys)
                case Fault() | FaultCleared():
                    host.faults.append(effect)
                case RemovalOutcome():
                    host.removals.append(effect)
                case JoinRoster(tenure):
                    if self.coordinating:
                        wall_ms = WALL_MS + self.now_ns // MS
                        self._at(1, host.name, host.start, lambda h=host, t=tenure, w=wall_ms: self._join(h.name, t, w))

    def _join(self, name: str, tenure: int, wall_ms: int) -> RosterKnown:
        self.roster = joined(self.roster, name, tenure, wall_ms) or self.roster
        return RosterKnown(self.roster)

    def _send(self, host: Host, effect: Send) -> None:
        assert effect.node != host.name
        name, version, body = CODEC.body_of(effect.message)
        size = len(dumps(body))
        assert size < 1 << 20
        self.sent[name] += 1
        self.sent_bytes += size
        if frozenset((host.name, effect.node)) in self.cut:
            return
        for _ in range(2 if self.rng.random() < self.link.twice else 1):
            if self.rng.random() >= self.link.loss:
                delay = self.rng.randint(self.link.delay_ms_min, self.link.delay_ms_max)
                message = CODEC.message_of(name, version, body)
                self._at(delay, effect.node, None, Received(host.name, message))

    def _at(self, delay_ms: int, target: str, start: int | None, event) -> None:
        self._serial += 1
        heapq.heappush(self._queue, (self.now_ns + delay_ms * MS, self._serial, target, start, event))

    # ---- what is compared

    def contents(self, name: str) -> dict[str, tuple]:
        """All entries of a replica, read leaf by leaf past every index."""
        held = self.hosts[name].replicator._contents
        return {
            key: (e.epoch, e.hlc, e.origin, e.tombstone, e.value)
            for map_ in range(32)
            for leaf in range(256)
            if held.digests.leaf(map_, leaf)
            for key, e in held.leaf_entries((map_, leaf)).items()
        }

    def agree(self) -> bool:
        first, *others = self.hosts.values()
        return all(first.replicator.agree(other.replicator.digests()) for other in others)

    def ready(self) -> bool:
        return all(host.replicator.ready for host in self.hosts.values())

    def describe(self) -> str:
        return "; ".join(
            f"{n}: {sum(s.keys for s in h.replicator.map_status())} keys, ready {h.replicator.ready}, "
            f"{h.replicator.counters()}"
            for n, h in self.hosts.items()
        )


def new_store() -> FlakyReplica:
    return FlakyReplica(ReplicaIdentity("c1", "n", 0))


def commit(host: Host, token: int, batch) -> Committed:
    try:
        host.store.commit(batch)
    except OperatingError as error:
        return Committed(token, False, error.message)
    return Committed(token, True)
