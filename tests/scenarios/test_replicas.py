"""Replicas of the ServeIndex, as stories of whole clusters.

The checkers of every story look on: what a replica holds was written so by somebody (X1), and no key goes back (I3).
"""

from __future__ import annotations

import pytest
from seeds import SCALE, seeds

from node.ads.view import CandidateView, ServeView
from node.core import limits
from node.core.hashing import shard_of
from node.core.ids import EntityRef
from node.engine.engine import Engine
from node.gossip.version import Version, version_of
from node.gossip.watch import Change, Gap, What
from node.sim import history as h
from node.sim.conditions import agreed, answered, converged, joined, removed, suspected, up
from node.sim.load import Load, Pending
from node.sim.probe import KIND, SHORT_LIVED, Put
from node.sim.process import Process
from node.sim.story import Condition, Story, story
from node.wire.codec import CODEC
from node.wire.envelope import Envelope, encode
from node.wire.registry import WireType

FIVE = ("n1", "n2", "n3", "n4", "n5")
HOUR_MS = 3_600_000


def puts(s: Story) -> dict[str, tuple[Version, bool]]:
    """The greatest write that was accepted of each key that does not expire; whether it was a removal."""
    found: dict[str, tuple[Version, bool]] = {}
    for event in s.world.history.log:
        if isinstance(event, h.Put) and not event.key.endswith(SHORT_LIVED):
            found[event.key] = max(
                found.get(event.key, (Version(0, 0, ""), False)), (Version(*event.version), event.removed)
            )
    return found


def accepted_everywhere(s: Story) -> str:
    """Every replica that runs holds the greatest accepted write of every key."""
    for engine in s.running():
        for key, (version, removed_) in puts(s).items():
            entry = engine.replication.machine.entry(key)
            if entry is None or version_of(entry) != version or entry.tombstone != removed_:
                return f"{engine.me} holds {entry and version_of(entry)} of {key}, written is {version}"
    return ""


def put(s: Story, site: str, slot: str, value: str, *, at: str = "", remove: bool = False) -> Pending:
    return s.ask(EntityRef(KIND, site), Put(slot, value, remove=remove), at=at, timeout_ms=2_000)


def done(s: Story, *pending: Pending) -> None:
    s.until(answered(*pending))
    assert all(isinstance(each.outcome, Put) for each in pending), [each.outcome for each in pending]


def view(value: str, engine: Engine) -> ServeView:
    wall_ms = engine.world.clock.wall_ms()
    candidate = CandidateView(
        value, "c", "a", "https://a.example/a", "https://a.example", "a.example", "image/png",
        728, 90, "150", 1_000_000, 0,
    )  # fmt: skip
    return ServeView((candidate,), wall_ms, wall_ms + HOUR_MS)


def own_sites(engine: Engine, count: int) -> list[str]:
    """Sites whose shards a node owns."""
    names = (f"own{number}" for number in range(100 * count))
    owned = engine.sharding.region.running()
    return [name for name, _ in zip((n for n in names if shard_of(n) in owned), range(count), strict=False)]


def writes_of(load: Load) -> int:
    return sum(op.verb == "put" and op.outcome is h.Outcome.OK for op in load.ops)


@seeds(3)
def test_p75_writes_on_both_sides_of_a_cut_meet(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        s.cut("n1", "n2")
        sides = [s.load(puts_per_s=30, entities=20, at=side) for side in (("n1", "n2"), ("n3", "n4", "n5"))]
        s.run(3)
        for side in sides:
            side.stop()
        assert all(writes_of(side) for side in sides), "one side wrote nothing"
        assert agreed()(s), "nothing was different"
        s.heal()
        s.until(agreed(), accepted_everywhere, within_s=5)
        s.until(converged())


@seeds(1)
def test_p77_every_accepted_put_of_a_cut_cluster_is_everywhere(seed: int) -> None:
    """P77: five nodes put 200 keys each; in the middle, 3 | 2 are cut for 5 s."""
    with story(nodes=5, seed=seed, profile="default") as s:
        s.until(converged())
        asked: list[Pending] = []

        def round_(numbers: range) -> None:
            for number in numbers:
                for name in FIVE:
                    asked.append(put(s, f"e{number % 50}", f"{name}-{number}", f"v{number}", at=name))
                s.run(0.05)

        round_(range(50))
        s.cut("n4", "n5")
        round_(range(50, 150))
        s.heal()
        round_(range(150, 200))
        s.until(answered(*asked))
        accepted = [each for each in asked if isinstance(each.outcome, Put)]
        assert 500 < len(accepted) < len(asked) == 1_000, "nothing was asked across the cut"
        assert len(puts(s)) >= len(accepted)
        s.until(accepted_everywhere, agreed(), up(*FIVE), within_s=15)
        s.until(converged())


@seeds(2)
def test_p78_both_sides_write_one_removes_and_a_node_dies(seed: int) -> None:
    """P78: 2 | 3 until the two stop; the three remove what both wrote; one of them is killed. All come back: digests
    are equal, what was removed stays removed, and counters hold what was accepted (X2 judges them)."""
    with story(nodes=5, seed=seed, supervised=True) as s:
        s.until(converged())
        sites = [f"e{number}" for number in range(20)]
        done(s, *(put(s, site, "top", "before") for site in sites))
        s.until(accepted_everywhere, within_s=5)
        s.cut("n4", "n5")
        load = s.load(asks_per_s=30, entities=20, tries=5)
        small = s.load(puts_per_s=30, entities=20, at=("n4", "n5"))
        s.until(removed("n4", seen_by=("n1",)), removed("n5", seen_by=("n1",)), within_s=2 * s.bound_s)
        s.end(small)
        s.until(up("n1", "n2", "n3", seen_by=("n1", "n2", "n3")))
        s.until(lambda s: "" if all(s.owner(site) in FIVE[:3] for site in sites) else "shards wait for an owner")
        done(s, *(put(s, site, "top", "", at="n1", remove=True) for site in sites))
        s.until(lambda s: _vouched(s, sites), agreed("n1", "n2", "n3"), within_s=10)
        s.kill("n3")
        s.run(1)
        s.heal()
        s.start("n3")
        s.end(load)
        s.until(converged(), agreed(), within_s=60)
        for engine in s.running():
            assert [site for site in sites if engine.index.read(f"{site}|top") is not None] == []


def scripted(s: Story) -> None:
    """40 random operations at each node on keys of its own, 10 ms apart, which is how they are stamped."""
    draw = s.world.scheduler.derive("operations")
    keys = {name: [f"{site}|s{n}" for site in own_sites(s.engine(name), 2) for n in range(5)] for name in FIVE[:4]}
    for number in range(160):
        engine = s.engine(FIVE[number % 4])
        key = draw.choice(keys[engine.me.name])
        site = key.partition("|")[0]
        if draw.random() < 0.3:
            engine.index.remove(site, key)
        else:
            engine.index.put(site, key, view(f"v{number}", engine))
        assert engine.index.puts_refused == 0
        s.run(0.01)


def _vouched(s: Story, sites: list[str]) -> str:
    """A majority has the newest removal of each on disk."""
    lacking = [
        site
        for site in sites
        if s.world.history.vouched.get(f"{site}|top", h.NEVER) < s.world.history.keys[f"{site}|top"]
    ]
    return f"no majority has removed {lacking}" if lacking else ""


@seeds(2)
def test_p79_without_deltas_the_same_comes_of_it(seed: int) -> None:
    """P79: the same 40 operations at each of 4 nodes; once every delta is lost."""
    digests = []
    for swallowed in ((), ("replica.delta",)):
        with story(nodes=4, seed=seed, wall_skew_ms=0) as s:
            s.until(converged())
            s.run(20 - s.now_s)
            s.world.network.swallowed.update(swallowed)
            scripted(s)
            assert sum(len(e.replication.machine.sites()) for e in s.running()) >= 8
            s.until(agreed(), within_s=20)
            assert (s.world.network.lost_types["replica.delta"] > 0) == bool(swallowed)
            digests.append(s.engine("n1").replication.machine.digests())
            s.world.network.swallowed.clear()
    assert digests[0] == digests[1]
    assert any(digests[0])


@seeds(1)
def test_p83_a_put_and_a_removal_within_a_millisecond(seed: int) -> None:
    """P83: 1,000 keys, one of two sides of a cut each: all replicas choose the greater version. Two owners of one
    epoch are what no cluster has; the replicas must not mind."""
    with story(nodes=4, seed=seed, wall_skew_ms=0) as s:
        s.until(converged())
        s.cut("n1", "n2")
        written: dict[str, list[Version]] = {}
        for number in range(1_000):
            key = f"site{number % 40}|s{number}"
            sides = (("n1", False), ("n3", True)) if number % 2 else (("n3", True), ("n1", False))
            written[key] = []
            for name, remove in sides:
                written[key].append(write(s.engine(name), key, value=None if remove else b"value"))
                s.run(s.rng.choice((0, 0.001)))
        s.heal()
        s.until(agreed(), within_s=20)
        won = [max(versions) for versions in written.values()]
        for engine in s.running():
            held = [engine.replication.machine.entry(key) for key in written]
            assert [version_of(entry) for entry in held if entry is not None] == won
        kept = [entry for entry in held if entry is not None and not entry.tombstone]
        assert 0 < len(kept) < len(won), "one side won always: nothing was decided"


def write(engine: Engine, key: str, *, value: bytes | None, ttl_ms: int = 0) -> Version:
    """Under epoch 1, by whichever node; None removes."""
    machine, clock = engine.replication.machine, engine.world.clock
    now_ns, wall_ms = clock.mono_ns(), clock.wall_ms()
    if value is None:
        version, effects = machine.remove(key, 1, now_ns, wall_ms)
    else:
        version, effects = machine.put(key, value, 1, wall_ms + ttl_ms if ttl_ms else 0, now_ns, wall_ms)
    engine.replication.carry_out(effects)
    return version


@seeds(2)
def test_p84_a_watch_tells_each_change_of_a_site_once(seed: int) -> None:
    """P84: at another node than the writer's; equal re-puts are no news, expiry is, and what a slow reader lost is a
    gap."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        site = own_sites(s.engine("n1"), 1)[0]
        key, reader = f"{site}|top", s.engine("n2")
        watch, others = reader.index.watch(site), reader.index.watch("another")
        wall_ms = reader.world.clock.wall_ms
        written: list[tuple[What, Version]] = []
        for value, news in ((b"a", True), (b"a", False), (b"b", True), (None, True), (b"b", True)):
            version = write(s.engine("n1"), key, value=value)
            written += [(What.REMOVED if value is None else What.PUT, version)] if news else []
            s.run(0.2)
        version = write(s.engine("n1"), key, value=b"c", ttl_ms=1_000)
        s.run(0.5)
        written.append((What.PUT, version))
        assert watch.take(wall_ms()) == [Change(key, *each) for each in written]
        s.run(1)
        assert watch.take(wall_ms()) == [Change(key, What.EXPIRED, version)]
        for number in range(limits.watch_changes_max + 7):
            write(s.engine("n1"), f"{site}|s{number}", value=b"a")
        s.until(agreed(), within_s=5)
        gap, *rest = watch.take(wall_ms())
        assert (gap, len(rest)) == (Gap(7), limits.watch_changes_max)
        assert others.take(wall_ms()) == []


@seeds(3)
def test_p86_a_removed_key_can_be_put_again(seed: int) -> None:
    """P86: by its owner, and by the next owner too."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        versions: list[Version] = []
        for value in ("first", "second", "third"):
            done(s, put(s, "e1", "top", value))
            s.until(accepted_everywhere, shows("e1|top", value), within_s=5)
            versions.append(puts(s)["e1|top"][0])
            done(s, put(s, "e1", "top", "", remove=True))
            s.until(accepted_everywhere, shows("e1|top", ""), within_s=5)
            versions.append(puts(s)["e1|top"][0])
            if value == "second":
                s.kill(s.owner("e1"))
                s.until(lambda s: "" if s.owner("e1") else "e1 has no owner", within_s=2 * s.bound_s)
        assert versions == sorted(versions)
        assert len(set(versions)) == len(versions)
        s.start("n1", "n2", "n3")
        s.until(converged(), shows("e1|top", ""), within_s=60)


def shows(key: str, value: str) -> Condition:
    """What every node would serve; "": nothing."""

    def condition(s: Story) -> str:
        views = {engine.me.name: engine.index.read(key) for engine in s.running()}
        seen = {name: each.candidates[0].creative_id if each else "" for name, each in views.items()}
        return "" if set(seen.values()) == {value} else f"{key}: {seen}, wanted is {value!r}"

    return condition


@seeds(2)
def test_what_a_campaign_says_of_its_budget_is_known_everywhere(seed: int) -> None:
    """A registry rides on the replicas: what its owner wrote is read at every node, also by one that was cut off."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        owner = s.owner("camp7")
        away = next(name for name in ("n1", "n2", "n3") if name != owner)
        s.cut(away)
        registry = s.engine(owner).index.exhausted
        registry.set("camp7", 250, s.engine(owner).world.clock.wall_ms() + HOUR_MS)
        s.run(1)
        assert s.engine(away).index.exhausted.get("camp7") is None
        s.heal()
        s.until(lambda s: _left(s, "camp7", 250), within_s=5)
        registry.clear("camp7")
        s.until(lambda s: _left(s, "camp7", None), agreed(), within_s=5)
        s.until(converged())


def _left(s: Story, campaign: str, wanted: int | None) -> str:
    seen = {engine.me.name: engine.index.exhausted.get(campaign) for engine in s.running()}
    return "" if set(seen.values()) == {wanted} else f"{seen}, wanted is {wanted}"


@seeds(2)
def test_s09_what_one_side_removed_the_other_does_not_bring_back(seed: int) -> None:
    """S09: a and b are on both sides; cut; b is removed on one side, c is put on the other; heal."""
    with story(nodes=2, seed=seed) as s:
        s.until(converged())
        mine, others = (own_sites(s.engine(name), 3) for name in ("n1", "n2"))
        a, c, b = f"{mine[0]}|s", f"{mine[1]}|s", f"{others[0]}|s"
        for key, name in ((a, "n1"), (b, "n2")):
            s.engine(name).index.put(key.partition("|")[0], key, view("v", s.engine(name)))
        s.until(shows(a, "v"), shows(b, "v"), within_s=5)
        s.cut("n1")
        s.engine("n2").index.remove(others[0], b)
        s.engine("n1").index.put(mine[1], c, view("v", s.engine("n1")))
        s.run(1)
        assert s.engine("n1").index.read(b) is not None, "the cut did not hold"
        s.heal()
        s.until(shows(b, ""), shows(a, "v"), shows(c, "v"), agreed(), within_s=5)
        s.until(converged())


@seeds(3)
def test_p87_what_was_put_is_served_from_disk_alone(seed: int) -> None:
    """P87: its own writes and what came by gossip, 300 ms after them; all are killed, one starts again alone."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        keys = {name: f"{own_sites(s.engine(name), 1)[0]}|s" for name in ("n1", "n2")}
        for name, key in keys.items():
            s.engine(name).index.put(key.partition("|")[0], key, view(name, s.engine(name)))
        s.run(0.3)
        s.kill("n1", "n2", "n3")
        s.start("n1")
        s.until(lambda s: "" if s.running() else "n1 has not started")
        assert not s.engine("n1").view.joined, "what follows is to come from disk"
        s.until(*(shows(key, name) for name, key in keys.items()), within_s=0)
        s.start("n2", "n3")
        s.until(converged(), within_s=60)


def frame_sizes(s: Story, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of each replication frame from now on, largest entries included."""
    sizes: list[int] = []
    network = s.world.network
    send = network.send

    def weighed(source: Process, target: str, envelope: Envelope, wire_type: WireType) -> None:
        if wire_type.name.startswith("replica."):
            sizes.append(len(encode(envelope, CODEC, 0)))
        send(source, target, envelope, wire_type)

    monkeypatch.setattr(network, "send", weighed)
    return sizes


def write_many(engine: Engine, count: int, value: bytes, *, first: int = 0) -> None:
    clock, machine = engine.world.clock, engine.replication.machine
    for number in range(first, first + count):
        _, effects = machine.put(f"site{number % 9}|s{number}", value, 1, 0, clock.mono_ns(), clock.wall_ms())
        engine.replication.carry_out(effects)


@seeds(1)
def test_p80_five_thousand_puts_a_second(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """P80: of 2 to 20 KiB, for as many seconds as PROMOVOLVE_TEST_SCALE says (60 are the scenario's)."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        sizes = frame_sizes(s, monkeypatch)
        writer = s.engine("n1")
        lags_ms: list[int] = []
        sender = writer.replication.machine._sender
        with s.never(suspected()):
            for step in range(100 * SCALE):
                write_many(writer, 50, bytes(s.rng.randrange(2 << 10, 20 << 10)), first=50 * step % 10_000)
                assert sender.log.bytes <= limits.delta_log_bytes_max
                s.run(0.01)
                lags_ms += writer.replication.lag_ms(writer.world.clock.mono_ns()).values()
        assert len(lags_ms) == 200 * SCALE
        assert sorted(lags_ms)[len(lags_ms) * 99 // 100] < 100
        assert max(sizes) <= limits.frame_data_bytes_max
        s.until(agreed(), within_s=5)


@seeds(2)
def test_p81_large_entries_reach_a_node_that_joins(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """P81, with the largest entries that there may be: 500 small keys and 15 of 255 KiB are complete within 10 s of the
    joiner's start, none missing, and not in one frame."""
    large = b"x" * (255 << 10)
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        write_many(s.engine("n1"), 500, b"small")
        for number in range(15):
            write_many(s.engine("n1"), 1, large, first=500 + number)
            s.run(0.05)
        s.until(agreed(), within_s=20)
        sizes = frame_sizes(s, monkeypatch)
        s.add("n4")
        s.start("n4")
        s.until(joined("n4"), within_s=10)
        s.until(agreed(), within_s=10 - 5)
        engine = s.engine("n4")
        assert engine.replication.ready
        assert sum(each.keys for each in engine.replication.machine.map_status()) == 515
        assert len(large) < max(sizes) <= limits.frame_data_bytes_max
        assert sum(size > len(large) for size in sizes) >= 4, "so many frames of 1 MiB it takes"
