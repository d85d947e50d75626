"""Removals that a majority vouches for, tombstones that are settled, replicas that come and go: stories of whole
clusters."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from seeds import SCALE, seeds

from node.core.hashing import shard_of
from node.engine.engine import Engine
from node.gossip.replica_io import RemovalOutcome
from node.gossip.version import Version
from node.sim.conditions import agreed, converged, removed, up
from node.sim.story import Condition, Story, story

FIVE = ("n1", "n2", "n3", "n4", "n5")


def own_site(engine: Engine) -> str:
    """One whose shard a node owns."""
    owned = engine.sharding.region.running()
    return next(name for name in (f"own{number}" for number in range(10_000)) if shard_of(name) in owned)


def write_many(engine: Engine, keys: list[str], value: bytes = b"value") -> None:
    """Under the epoch of their shard."""
    clock, machine = engine.world.clock, engine.replication.machine
    for key in keys:
        epoch = engine.sharding.region.epoch(shard_of(key.partition("|")[0]))
        _, effects = machine.put(key, value, epoch, 0, clock.mono_ns(), clock.wall_ms())
        engine.replication.carry_out(effects)


def remove(engine: Engine, key: str) -> tuple[Version, list[RemovalOutcome]]:
    """The removal's version, and what is heard of it as time passes."""
    heard: list[RemovalOutcome] = []
    version = engine.index.remove_for(key.partition("|")[0], key, "a test")
    assert version is not None

    def hear(outcome: RemovalOutcome) -> None:
        heard.append(outcome)
        engine.replication.on_removal(key, version, hear)

    engine.replication.on_removal(key, version, hear)
    return version, heard


def outcomes(heard: list[RemovalOutcome], *wanted: str) -> Condition:
    return lambda _: "" if [each.outcome for each in heard] == list(wanted) else f"{heard}, wanted is {wanted}"


def on_roster(*names: str) -> Condition:
    """All replicas that run know of exactly these as counting."""

    def condition(s: Story) -> str:
        known = {e.me.name: sorted(e.replication.machine.replica_roster().names()) for e in s.running()}
        return "" if all(each == sorted(names) for each in known.values()) else f"{known}, wanted is {names}"

    return condition


def gone(*keys: str) -> Condition:
    """No replica that runs says anything of these but that they were removed."""

    def condition(s: Story) -> str:
        for engine in s.running():
            for key in keys:
                entry = engine.replication.machine.entry(key)
                if entry is not None and not entry.tombstone:
                    return f"{engine.me} holds {key}"
        return ""

    return condition


def tombstones(engine: Engine) -> int:
    """In memory and on disk."""
    machine, store = engine.replication.machine, engine.world.replica
    return sum(each.tombstones for each in (*machine.map_status(), *store.counts()))


@seeds(2)
def test_p76_a_removal_needs_a_majority_and_waits_for_it(seed: int) -> None:
    """P76: with one of three stopped it is done; with two it is pending and listed, until they return."""
    with story(nodes=3, seed=seed, profile="default") as s:
        s.until(converged(), on_roster("n1", "n2", "n3"), within_s=60)
        owner = s.engine("n1")
        site = own_site(owner)
        keys = [f"{site}|s{number}" for number in range(2)]
        write_many(owner, keys)
        s.until(agreed())
        s.stop("n3")
        _, first = remove(owner, keys[0])
        s.until(outcomes(first, "removed"), within_s=1)
        assert {held.node for held in first[0].certificate.held} == {"n1", "n2"}
        s.stop("n2")
        version, second = remove(owner, keys[1])
        s.until(outcomes(second, "pending"), within_s=10)
        pending = owner.replication.machine.questions.pending_removals(10, owner.world.clock.mono_ns())
        assert [(each.key, each.version, each.needed, each.held_by, each.awaited) for each in pending] == [
            (keys[1], version, 2, ("n1",), ("n2", "n3"))
        ]
        s.thaw("n2", "n3")
        s.until(outcomes(second, "pending", "removed"), gone(*keys), within_s=10)
        assert owner.replication.machine.questions.pending_removal_count() == 0
        s.until(converged(), within_s=60)


@seeds(2)
def test_p90_only_those_who_have_it_count(seed: int) -> None:
    """P90: of five one answers late, one refuses since its clock is far behind; three are needed. Nobody is asked, and
    nothing is said, before the owner's own disk has the removal."""
    with story(nodes=5, seed=seed) as s:
        s.until(converged(), on_roster(*FIVE), within_s=60)
        owner = s.engine("n1")
        key = f"{own_site(owner)}|s"
        write_many(owner, [key])
        s.until(agreed())
        s.world.network.slow(("n4",), ("n1",), 2_000)
        s.step_clock("n5", -120_000)
        s.host("n1").disk.full = True
        _, heard = remove(owner, key)
        s.run(1)
        assert heard == []
        assert owner.replication.machine.counters().get("confirmations_asked", 0) == 0
        s.host("n1").disk.full = False
        s.until(outcomes(heard, "removed"), within_s=10)
        certificate = heard[0].certificate
        assert (certificate.needed, {held.node for held in certificate.held}) == (3, {"n1", "n2", "n3"})
        s.run(4)
        known = owner.replication.machine.questions.certificate(key)
        assert known is not None
        assert {held.node for held in known.held} == {"n1", "n2", "n3", "n4"}
        s.step_clock("n5", 120_000)
        s.world.network.slow(("n4",), ("n1",), 0)
        s.until(lambda _: "" if _all_hold(owner, key) else "n5 has not confirmed", gone(key), within_s=20)
        s.until(converged(), agreed(), within_s=60)


def _all_hold(engine: Engine, key: str) -> bool:
    certificate = engine.replication.machine.questions.certificate(key)
    return certificate is not None and {held.node for held in certificate.held} == set(FIVE)


def aged(s: Story, *names: str, **changes: int) -> None:
    """Other settings of replication from the start."""
    for name in names:
        s.setup(name, replication=replace(s.host(name).setup.replication, **changes))


@seeds(1)
def test_p85_no_tombstone_is_left(seed: int) -> None:
    """P85: 2,000 removals times PROMOVOLVE_TEST_SCALE (10,000 are the scenario's), all of them acknowledged; the least
    age of 5 s passes: none in memory, none on disk, and none comes back by comparison."""
    with story(nodes=3, seed=seed, start=False) as s:
        aged(s, "n1", "n2", "n3", tombstone_min_age_ms=5_000)
        s.start("n1", "n2", "n3")
        s.until(converged(), on_roster("n1", "n2", "n3"), within_s=60)
        owner = s.engine("n1")
        site = own_site(owner)
        keys = [f"{site}|s{number}" for number in range(2_000 * SCALE)]
        write_many(owner, keys)
        s.until(agreed(), within_s=20)
        for key in keys:
            owner.index.remove(site, key)
        held = sum(tombstones(engine) for engine in s.running())
        assert held >= len(keys)
        s.until(lambda s: "" if not _tombstones(s) else f"{_tombstones(s)} tombstones", within_s=40)
        s.run(5)
        assert not _tombstones(s), "some came back"
        s.until(gone(*keys), agreed(), within_s=5)
        assert all(engine.replication.machine.entry(key) is None for engine in s.running() for key in keys)


def _tombstones(s: Story) -> int:
    return sum(tombstones(engine) for engine in s.running())


@seeds(2)
def test_p82_a_node_that_joins_takes_over_what_there_is(seed: int) -> None:
    """P82: 3,000 entries times PROMOVOLVE_TEST_SCALE, up to the scenario's 100,000. The node is not ready before it has
    all; its progress grows, and goes on where it was after it was cut off in the middle."""
    count = min(3_000 * SCALE, 100_000)
    with story(nodes=3, seed=seed) as s:
        s.until(converged(), on_roster("n1", "n2", "n3"), within_s=60)
        owner = s.engine("n1")
        site = own_site(owner)
        for first in range(0, count, 1_000):
            write_many(owner, [f"{site}|s{number}" for number in range(first, first + 1_000)], bytes(1_000))
            s.run(0.1)
        s.until(agreed(), within_s=30)
        s.add("n4")
        aged(s, "n4", stream_bytes_per_s=count * 200)
        seen: list[tuple[float, int]] = []
        s.start("n4")
        with s.never(ready_before_complete("n4", count, seen)):
            s.until(lambda _: "" if seen and seen[-1][1] >= count // 2 else f"{seen[-1:]} is not half", within_s=60)
            s.cut("n4")
            s.run(2)
            before = s.engine("n4").replication.machine.questions.streaming()
            s.heal()
            s.until(lambda s: "" if s.engine("n4").replication.ready else "n4 is not ready", within_s=60)
        after = s.engine("n4").replication.machine.questions.streaming()
        assert all(a <= b for one, two in pairwise(seen) for a, b in zip(one, two, strict=True)), "progress went back"
        assert len(set(seen)) > 5, "nobody would call that progress"
        assert before.entries < after.entries <= count * 1.1, "what was there already came again"
        s.until(on_roster("n1", "n2", "n3", "n4"), agreed(), converged(), within_s=60)


def ready_before_complete(name: str, count: int, seen: list[tuple[float, int]]) -> Condition:
    """Writes its progress down on the way."""

    def condition(s: Story) -> str:
        process = s.host(name).process
        if process is None or process.engine is None:
            return "it has not started"
        replication = process.engine.replication
        streaming = replication.machine.questions.streaming()
        seen.append((streaming.ratio, streaming.entries))
        keys = sum(each.keys for each in replication.machine.map_status())
        return "" if replication.ready and keys < count else f"{keys} keys, ready: {replication.ready}"

    return condition


@seeds(3)
def test_i3_a_replica_of_an_old_tenure_brings_nothing_back(seed: int) -> None:
    """A node is gone for so long that it is taken off the roster; what it holds is removed meanwhile, and the removals
    are forgotten. It returns with its old file: what only it has is discarded, and nothing of it is ever served."""
    with story(nodes=3, seed=seed, start=False) as s:
        aged(s, "n1", "n2", "n3", tombstone_min_age_ms=5_000)
        s.start("n1", "n2", "n3")
        s.until(converged(), on_roster("n1", "n2", "n3"), within_s=60)
        owner = s.engine("n1")
        site = own_site(owner)
        keys = [f"{site}|s{number}" for number in range(50)]
        write_many(owner, keys)
        s.until(agreed())
        s.run(1)
        s.kill("n3")
        s.until(removed("n3"), on_roster("n1", "n2"), within_s=2 * s.bound_s)
        for key in keys:
            owner.index.remove(site, key)
        s.until(lambda s: "" if not _tombstones(s) else f"{_tombstones(s)} tombstones", within_s=40)
        s.start("n3")
        with s.never(lambda s: "" if gone(*keys)(s) and s.engine("n3").index.read(keys[0]) else "nothing is served"):
            s.until(up("n1", "n2", "n3"), on_roster("n1", "n2", "n3"), within_s=30)
        assert s.engine("n3").replication.machine.questions.streaming().discarded >= len(keys)
        s.until(gone(*keys), agreed(), converged(), within_s=30)
        s.run(10)
        s.until(gone(*keys), within_s=0)
