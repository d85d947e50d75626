"""Replicas that take over from those of the roster, and what was removed meanwhile (I3)."""

from __future__ import annotations

import pytest
from replica_world import Link, World

from node.core import limits
from node.core.clock import MS
from node.gossip.replica_io import ReplicationSettings

AGED = ReplicationSettings(tombstone_min_age_ms=20_000)
FRESH_MS = AGED.fresh_ns // 1_000_000


def cluster(count: int) -> World:
    world = World(count, settings=AGED)
    world.until(world.settled_roster, 20_000)
    return world


def holders(world: World, key: str) -> list[str]:
    return [name for name, host in world.hosts.items() if world.get(name, key) is not None]


def settled(world: World, key: str) -> bool:
    """Whether the first host has forgotten the tombstone."""
    return world.hosts["n0"].replicator.entry(key) is None


def test_a_removal_that_its_source_never_heard_of_is_not_discarded_with_the_rest():
    """A majority acknowledged it, and then left the roster; of two sources one lacks the key, the other holds the old
    value. The key's writer never comes back."""
    world = cluster(5)
    world.partition({"n0", "n1", "n2", "n4"}, {"n3"})
    world.put("n0", "s|k")
    world.until(lambda: len(holders(world, "s|k")) == 4, 2_000)
    world.run(500)
    world.partition({"n0", "n1", "n2"}, {"n3"}, {"n4"})
    world.remove("n0", "s|k")
    world.until(lambda: [news.outcome for news in world.hosts["n0"].removals] == ["removed"], 2_000)
    n1 = world.stop("n1")
    world.stop("n2")
    world.stop("n0")
    for name in ("n0", "n1", "n2"):
        world.take_off(name)
    world.start("n1", n1)
    world.partition({"n1", "n3"}, {"n4"})
    world.until(lambda: world.hosts["n1"].replicator.tenure > 0, 20_000)
    world.heal()
    world.until(lambda: holders(world, "s|k") == [], 10_000)
    world.run(5_000)
    assert holders(world, "s|k") == []
    assert world.agree()


def test_who_took_over_and_was_then_away_for_long_takes_over_again():
    """It is on no roster yet, so that nobody waits for it before what was removed is settled and forgotten."""
    world = cluster(3)
    world.put("n0", "s|k")
    world.put("n0", "s|other")
    world.until(world.agree, 2_000)
    world.run(500)
    n2 = world.stop("n2")
    world.take_off("n2")
    world.coordinating = False
    world.start("n2", n2)
    world.tell_peers()
    world.until(lambda: world.hosts["n2"].replicator.ready, 10_000)
    assert world.get("n2", "s|k") == b"v"
    world.partition({"n0", "n1"}, {"n2"})
    world.remove("n0", "s|k")
    for _ in range(60):
        if settled(world, "s|k"):
            break
        world.tell_roster()
        world.run(1_000)
    assert settled(world, "s|k")
    world.heal()
    world.coordinating = True
    served: set[str] = set()
    world.until(lambda: served.update(holders(world, "s|k")) or world.settled_roster(), 20_000)
    world.until(world.agree, 10_000)
    world.run(5_000)
    assert served == set()
    assert holders(world, "s|k") == []
    assert holders(world, "s|other") == world.names


def test_a_removal_that_the_roster_heard_of_late_is_kept_for_whoever_took_over_from_it_before():
    """Nobody on the roster lacks it any more, and it is old enough: but who has just taken over from one that did
    lack it is about to join."""
    world = cluster(3)
    world.put("n0", "s|k")
    world.until(world.agree, 2_000)
    world.run(500)
    n2 = world.stop("n2")
    world.take_off("n2")
    world.partition({"n0"}, {"n1"})
    world.remove("n0", "s|k")
    world.run(AGED.tombstone_min_age_ms + 1_000)
    world.start("n2", n2)
    world.coordinating = False
    world.partition({"n0"}, {"n1", "n2"})
    world.until(lambda: world.hosts["n2"].replicator.ready, 10_000)
    world.partition({"n0", "n1"}, set(), told=False)
    world.cut = {frozenset(("n0", "n2")), frozenset(("n1", "n2"))}
    world.tell_peers()
    for _ in range(FRESH_MS // 500 - 2):
        world.tell_roster()
        world.run(500)
    assert world.hosts["n0"].replicator.questions.tombstones(9, world.wall_ms("n0"))[0].awaited == (), "all have it"
    world.cut = set()
    world.tell_peers()
    world.coordinating = True
    world.until(world.settled_roster, 20_000)
    world.until(world.agree, 10_000)
    world.run(5_000)
    assert holders(world, "s|k") == []


@pytest.mark.parametrize(("keys", "stream_bytes_per_s", "delay_ms"), [(6_000, 4_000_000, 100), (800, 40_000, 1)])
def test_who_streams_fetches_from_one_source_and_says_how_far_it_is(keys: int, stream_bytes_per_s: int, delay_ms: int):
    """Its peers compare themselves with it meanwhile: what it lacks of theirs would take the rate from its own round.
    And a rate that makes an answer's worth wait for longer than an answer may take is no silence of its source."""
    world = World(5, settings=ReplicationSettings(antientropy_ns=200 * MS, stream_bytes_per_s=stream_bytes_per_s))
    world.until(world.settled_roster, 20_000)
    for number in range(keys):
        world.put("n0", f"s{number % 40}|{number}", b"x" * 700)
        if number % 500 == 0:
            world.run(100)
    world.until(world.agree, 20_000)
    world.link = Link(delay_ms_min=delay_ms, delay_ms_max=2 * delay_ms)
    world.restart("n1", wipe=True)
    n1 = world.hosts["n1"].replicator
    seen: list[tuple[float, float]] = []

    def looked() -> bool:
        seen.append((n1.questions.streaming().ratio, sum(each.keys for each in n1.map_status()) / keys))
        return n1.ready

    world.until(looked, 120_000)
    one_answer = limits.reconcile_batch_bytes / (700 * keys)
    assert len({held for _, held in seen}) > 2
    assert max(abs(said - held) for said, held in seen) < one_answer + 0.05
    assert n1.counters().get("rounds_timed_out", 0) == 0
