"""I3 and I4 under faults: whatever was lost, doubled, overtaken, cut, killed or wiped, replicas become equal."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replica_world import Link, World

from node.core import limits
from node.core.clock import SECOND
from node.gossip.lww import merge
from node.gossip.replica_io import ReplicationSettings
from node.store.replica_port import ReplicaEntry

# A comparison every 2 s and a timeout of 2 s for each that fails: five nodes meet within these many.
ROUNDS_MAX = 15
CONVERGE_MS = ROUNDS_MAX * 2_000


class Owners:
    """Writes as owners do: each site has one owner at a time, a take-over raises its epoch, a restart too."""

    def __init__(self, world: World, rng: random.Random):
        self.world, self.rng = world, rng
        self.sites = {f"s{i}": [rng.choice(world.names), 1] for i in range(6)}
        self.written: dict[str, list[ReplicaEntry]] = {}

    def write(self) -> None:
        site = self.rng.choice(sorted(self.sites))
        if self.rng.random() < 0.1:
            self.sites[site] = [self.rng.choice(self.world.names), self.sites[site][1] + 1]
        name, epoch = self.sites[site]
        host = self.world.hosts.get(name)
        key = f"{site}|{self.rng.randrange(8)}"
        held = host.replicator.entry(key) if host is not None else None
        if host is None or (held is not None and held.epoch > epoch):
            return
        if self.rng.random() < 0.25:
            self.world.remove(name, key, epoch)
        else:
            self.world.put(name, key, self.rng.randbytes(self.rng.choice([3, 900])), epoch)
        self.written.setdefault(key, []).append(host.replicator.entry(key))

    def new_epochs(self, name: str) -> None:
        for site, (owner, epoch) in self.sites.items():
            if owner == name:
                self.sites[site] = [owner, epoch + 1]


def disturb(world: World, owners: Owners, rng: random.Random) -> None:
    name = rng.choice(sorted(world.hosts))
    match rng.randrange(6):
        case 0:
            world.restart(name)
            owners.new_epochs(name)
        case 1:
            world.restart(name, wipe=True)
            owners.new_epochs(name)
        case 2:
            side = set(rng.sample(world.names, rng.randrange(1, len(world.names))))
            world.partition(side, set(world.names) - side, told=rng.random() < 0.5)
        case 3:
            world.heal()
        case 4:
            world.hosts[name].store.failing = rng.random() < 0.7
        case 5:
            world.link = Link(rng.random() * 0.4, rng.random() * 0.4, 1, rng.choice([3, 60]))


@given(st.integers(0, 1 << 32), st.integers(3, 5))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_replicas_converge_after_any_faults(seed, count):
    world = World(count, seed, log_bytes=20_000)
    rng = random.Random(seed)
    owners = Owners(world, rng)
    world.run(500)
    for _ in range(60):
        for _ in range(rng.randrange(6)):
            owners.write()
        world.run(rng.randrange(1, 400))
        if rng.random() < 0.3:
            disturb(world, owners, rng)
    world.heal()
    for host in world.hosts.values():
        host.store.failing = False
    world.until(lambda: world.agree() and world.ready(), CONVERGE_MS)
    reference, *others = [world.contents(name) for name in world.names]
    assert all(other == reference for other in others)
    for host in world.hosts.values():
        assert host.replicator.counters()["digests_repaired"] == 0
    for key, found in reference.items():
        # Nothing but what was written, and nothing that some surviving write of its key beats.
        versions = [(e.epoch, e.hlc, e.origin, e.tombstone, e.value) for e in owners.written[key]]
        assert found in versions
    world.run(7_000)
    assert all(host.replicator.uncommitted() == 0 for host in world.hosts.values())
    assert all(entries == 0 for h in world.hosts.values() for entries, _ in h.replicator.lag(world.now_ns).values())
    for name in world.names:
        world.restart(name)
    assert [world.contents(name) for name in world.names] == [reference] * count, "and all of it was on disk"


@pytest.mark.parametrize("seed", range(4))
def test_without_crashes_the_greatest_version_of_every_key_wins(seed):
    rng = random.Random(seed)
    world = World(4, seed, log_bytes=5_000)
    owners = Owners(world, rng)
    world.link = Link(0.3, 0.3, 1, 50)
    for turn in range(150):
        owners.write()
        world.run(rng.randrange(1, 60))
        if turn % 40 == 20:
            world.partition({"n0", "n1"}, {"n2", "n3"})
        if turn % 40 == 35:
            world.heal()
            world.link = Link(0.3, 0.3, 1, 50)
    world.heal()
    world.until(world.agree, CONVERGE_MS)
    expected = {}
    for key, entries in owners.written.items():
        winner = entries[0]
        for entry in entries:
            winner = merge(winner, entry)
        expected[key] = (winner.epoch, winner.hlc, winner.origin, winner.tombstone, winner.value)
    assert world.contents("n3") == expected


def test_a_removed_key_stays_removed_whoever_was_away():
    world = World(3)
    world.run(500)
    world.put("n0", "s|k", b"v")
    world.until(lambda: world.get("n2", "s|k"), 200)
    world.run(400)
    store = world.stop("n2")
    world.remove("n0", "s|k")
    world.run(5_000)
    world.start("n2", store)
    world.tell_peers()
    assert world.get("n2", "s|k") == b"v"
    world.until(world.agree, CONVERGE_MS)
    assert [world.get(name, "s|k") for name in world.names] == [None, None, None]
    world.restart("n1", wipe=True)
    world.until(lambda: world.agree() and world.ready(), CONVERGE_MS)
    assert world.hosts["n1"].replicator.entry("s|k").tombstone


def test_what_a_crash_loses_comes_back_from_the_peers():
    world = World(2)
    world.run(500)
    world.commit_ms = 10_000
    for i in range(20):
        world.put("n0", f"s|{i}")
    world.until(world.agree, 1_000)
    world.restart("n0")
    assert world.get("n0", "s|7") is None
    assert not world.hosts["n0"].replicator.ready
    world.until(world.ready, 1_000)
    assert world.get("n0", "s|7") == b"v"
    assert world.agree()


def test_a_wiped_replica_is_filled_in_bounded_pieces_with_progress():
    world = World(3, settings=ReplicationSettings(commit_entries=100_000))
    world.run(500)
    value = b"x" * 1_000
    for i in range(3_000):
        world.put("n0", f"s{i % 9}|{i}", value)
        if i % 200 == 0:
            world.run(20)
    world.until(world.agree, 5_000)
    world.run(1_000)
    sent = world.sent_bytes
    world.restart("n1", wipe=True)
    replicator = world.hosts["n1"].replicator
    seen = []
    while not replicator.ready:
        world.run(5)
        seen.append(replicator.synchronising)
    assert seen == sorted(seen)
    assert len([fraction for fraction in seen if 0 < fraction < 1]) >= 3
    assert world.agree()
    assert len(replicator.keys_of_site("s1")) == 334
    assert world.sent_bytes - sent < 2 * 3_000 * 1_100, "each entry once, with its version lists"


def test_a_replica_that_could_not_queue_all_it_lacks_is_not_ready_before_a_later_round(monkeypatch):
    world = World(2)
    world.run(500)
    for i in range(300):
        world.put("n0", f"s|{i}")
    world.until(world.agree, 1_000)
    monkeypatch.setattr(limits, "replica_wants_max", 40)
    world.restart("n1", wipe=True)
    world.until(lambda: world.hosts["n1"].replicator.ready, CONVERGE_MS, 1)
    assert world.agree()


def test_an_empty_cluster_is_ready_and_an_empty_pair_beside_a_full_node_waits_for_it():
    world = World(3)
    world.until(world.ready, 2_000)
    for i in range(500):
        world.put("n0", f"s|{i}", b"x" * 500)
    world.run(1_000)
    world.restart("n1", wipe=True)
    world.restart("n2", wipe=True)
    world.partition({"n1", "n2"}, {"n0"}, told=False)
    world.run(1_900)
    assert world.hosts["n1"].replicator.counters()["rounds_completed"] >= 1, "the empty ones have compared"
    assert not world.hosts["n1"].replicator.ready
    assert not world.hosts["n2"].replicator.ready
    world.heal()
    world.until(world.ready, CONVERGE_MS)
    assert world.agree()


def test_a_peer_behind_the_log_is_brought_up_by_comparison():
    world = World(2, log_bytes=10_000)
    world.run(500)
    world.partition({"n0"}, {"n1"}, told=False)
    for i in range(300):
        world.put("n0", f"s|{i}", b"x" * 100)
        world.run(1)
    entries, ms = world.hosts["n0"].replicator.lag(world.now_ns)["n1"]
    assert entries == 300
    assert ms == 300
    assert world.hosts["n0"].replicator.counters()["log_overflows"] == 1
    world.heal()
    world.until(world.agree, 5_000)
    world.run(1_000)
    assert world.hosts["n0"].replicator.lag(world.now_ns)["n1"] == (0, 0)


def test_a_small_difference_costs_little_to_find_and_nothing_when_there_is_none():
    world = World(2, settings=ReplicationSettings(commit_entries=100_000))
    world.run(500)
    value = b"x" * 3_000
    for i in range(3_000):
        world.put("n0", f"s{i % 9}|{i}", value)
        if i % 100 == 0:
            world.run(20)
    world.until(world.agree, 10_000)
    world.run(2_500)
    before = world.sent_bytes
    world.run(20_000)
    idle = world.sent_bytes - before
    assert idle <= 25 * 700, "half a kilobyte for each of both nodes' rounds"
    world.partition({"n0"}, {"n1"})
    for i in range(0, 3_000, 100):
        world.put("n0", f"s{i % 9}|{i}", b"y" * 3_000)
    world.run(500)
    world.restart("n0")  # its log is gone, so that comparison alone must find the 1 %
    began = world.sent_bytes
    world.heal()
    world.until(world.agree, 5_000)
    moved = world.sent_bytes - began
    changed = 30 * 3_100
    assert moved < changed + 32 * 4_200 + 40_000, "the changes, the leaf digests, short version lists"


def test_entries_of_the_largest_size_travel():
    world = World(2)
    world.run(500)
    big = bytes(limits.view_bytes_max)
    for i in range(6):
        world.put("n0", f"s|{i}", big)
    world.until(world.agree, 1_000)
    world.run(500)
    world.restart("n1", wipe=True)
    world.until(lambda: world.agree() and world.ready(), 3_000)
    assert world.get("n1", "s|5") == big


def test_one_silent_peer_does_not_keep_a_node_from_the_others():
    world = World(4, log_bytes=2_000)
    world.run(500)
    world.cut = {frozenset(("n0", "n3"))}
    world.link = Link(loss=0.0)
    for i in range(100):
        world.put("n0", f"s|{i}")
        world.run(5)
    rounds = world.hosts["n0"].replicator.counters()["rounds_completed"]
    world.run(20_000)
    assert world.hosts["n0"].replicator.counters()["rounds_completed"] >= rounds + 3
    assert world.now_ns < 60 * SECOND
    assert world.agree(), "n3 got the writes of n0 from the others"
