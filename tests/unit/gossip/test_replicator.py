"""One replicator, or a few on a good network: what it promises to readers, owners, the disk and the operator."""

from __future__ import annotations

import random

import pytest
from replica_world import WALL_MS, FlakyReplica, World, new_store

from node.core import limits
from node.core.clock import MS, SECOND
from node.core.errors import BadInput, OperatingError
from node.core.hashing import leaf_of, map_of
from node.core.hlc import COUNTER_BITS, hlc_wall_ms
from node.gossip.lag import PeerLag
from node.gossip.replica_io import (
    Applied,
    Commit,
    Committed,
    Damaged,
    Fault,
    FaultCleared,
    JoinRoster,
    PeersChanged,
    Received,
    ReplicationSettings,
    RosterKnown,
    Send,
    Tick,
)
from node.gossip.replica_messages import (
    Delta,
    Digests,
    Entries,
    KeyVersion,
    LeafVersions,
    Leaves,
    MapLeaves,
    Offer,
    Versions,
    Want,
    WireEntry,
)
from node.gossip.replica_roster import ReplicaRoster, joined
from node.gossip.replicator import Replicator
from node.gossip.version import Version
from node.store.replica_port import ReplicaBatch, ReplicaEntry


def alone(store: FlakyReplica | None = None) -> Replicator:
    """One that nobody is with, on the roster already: its file says so."""
    store = store or new_store()
    store.commit(ReplicaBatch((), (), {}, 0, {}, tenure=1))
    made = Replicator("a", store, ReplicationSettings(), random.Random(1))
    made.step(RosterKnown(joined(ReplicaRoster(), "a", 1, WALL_MS)), 0, WALL_MS)
    made.step(PeersChanged(frozenset()), 0, WALL_MS)
    return made


def wired(key: str, hlc_ms: int = WALL_MS, **changes) -> WireEntry:
    fields = {"epoch": 1, "hlc": hlc_ms << COUNTER_BITS, "origin": "b", "expires_at_ms": 0, "tombstone": False}
    return WireEntry(**{"key": key, **fields, "value": b"v", **changes})


# ---- reading and writing


def test_a_put_is_read_at_once_and_its_readers_are_told():
    replicator = alone()
    version, effects = replicator.put("s|k", b"v", 3, 0, 0, WALL_MS)
    assert version == Version(3, WALL_MS << COUNTER_BITS, "a")
    assert effects == [Applied(("s|k",))]
    assert replicator.get("s|k", WALL_MS) == ReplicaEntry("s|k", *version, 0, False, b"v")
    later, _ = replicator.put("s|k", b"w", 3, 0, 0, WALL_MS - 5_000)
    assert later > version, "a clock that goes back never makes a new put lose"
    assert replicator.get("s|k", WALL_MS).value == b"w"


def test_an_expired_entry_is_absent_at_once_and_forgotten_later():
    replicator = alone()
    replicator.put("s|k", b"v", 1, WALL_MS + 10, 0, WALL_MS)
    assert replicator.get("s|k", WALL_MS + 9) is not None
    assert replicator.get("s|k", WALL_MS + 10) is None
    assert replicator.entry("s|k") is not None
    forgotten_ms = WALL_MS + 10 + limits.hlc_ahead_ms_max + 60_000
    assert Applied(("s|k",)) in replicator.step(Tick(), 10 * SECOND, forgotten_ms)
    assert replicator.entry("s|k") is None
    assert replicator.digests() == [0] * 32


def test_a_removed_key_is_absent_listed_and_committed_at_once():
    replicator = alone()
    replicator.put("s|k", b"v", 1, 0, 0, WALL_MS)
    version, effects = replicator.remove("s|k", 1, MS, WALL_MS + 1)
    commits = [effect for effect in effects if isinstance(effect, Commit)]
    assert [(e.key, e.tombstone, e.value) for e in commits[0].batch.puts] == [("s|k", True, b"")]
    assert replicator.get("s|k", WALL_MS) is None
    assert replicator.entry("s|k").tombstone
    assert replicator.questions.tombstones(5, WALL_MS + 8) == [("s|k", version, 7, "a", ("a",))]
    assert [status.tombstones for status in replicator.map_status() if status.tombstones] == [1]
    again, _ = replicator.put("s|k", b"w", 1, 0, 2 * MS, WALL_MS)
    assert again > version
    assert replicator.get("s|k", WALL_MS).value == b"w"
    assert replicator.questions.tombstones(5, WALL_MS) == []


@pytest.mark.parametrize(
    ("key", "value", "epoch", "expires_at_ms", "field"),
    [
        ("", b"", 1, 0, "key"),
        ("s|" + "k" * 510, b"", 1, 0, "key"),
        ("s|k", b"x" * (limits.view_bytes_max + 1), 1, 0, "value"),
        ("s|k", b"", -1, 0, "version"),
        ("s|k", b"", 1, -1, "expiry"),
        ("s|k", b"", 1, WALL_MS, "expires_at_ms"),
    ],
)
def test_what_cannot_be_an_entry_is_refused_and_changes_nothing(key, value, epoch, expires_at_ms, field):
    replicator = alone()
    with pytest.raises(BadInput) as caught:
        replicator.put(key, value, epoch, expires_at_ms, 0, WALL_MS)
    assert caught.value.field == field
    assert replicator.digests() == [0] * 32
    assert replicator.uncommitted() == 0


def test_a_former_owner_is_told_that_it_is_fenced():
    replicator = alone()
    replicator.put("s|k", b"new", 5, 0, 0, WALL_MS)
    for write in (
        lambda: replicator.put("s|k", b"old", 4, 0, 0, WALL_MS + 99),
        lambda: replicator.remove("s|k", 4, 0, WALL_MS + 99),
    ):
        with pytest.raises(OperatingError) as caught:
            write()
        assert (caught.value.code, caught.value.definite) == ("E-FENCED", True)
    assert replicator.get("s|k", WALL_MS).value == b"new"


def test_the_epoch_beats_the_clock_between_nodes():
    world = World(2)
    world.run(500)
    world.hosts["n0"].skew_ms = 30_000
    world.put("n0", "s|k", b"late", epoch=1)
    world.put("n1", "s|k", b"owner", epoch=2)
    world.until(world.agree, 1_000)
    assert [world.get(name, "s|k") for name in world.names] == [b"owner", b"owner"]


def test_keys_of_a_site_are_known_from_the_first_moment():
    world = World(1)
    for i in range(1_200):
        world.put("n0", f"s{i % 3}|k{i:04}")
    world.run(1_000)
    replicator = alone(world.hosts["n0"].store)
    replicator.put("s0|new", b"v", 1, 0, 0, WALL_MS)
    replicator.remove("s0|k0000", 1, 0, WALL_MS)
    assert replicator.keys_of_site("s0") == tuple(sorted(["s0|new", *(f"s0|k{i:04}" for i in range(3, 1_200, 3))]))
    assert replicator.keys_of_site("nowhere") == ()
    assert replicator.sites() == ("s0", "s1", "s2")


# ---- to disk


def test_puts_are_committed_together_after_the_interval_with_digests_and_clock():
    store = new_store()
    replicator = alone(store)
    for i in range(3):
        replicator.put(f"s|{i}", b"v", 1, 0, i * MS, WALL_MS)
    assert replicator.step(Tick(), 199 * MS, WALL_MS) == []
    (effect,) = replicator.step(Tick(), 200 * MS, WALL_MS)
    assert sorted(entry.key for entry in effect.batch.puts) == ["s|0", "s|1", "s|2"]
    store.commit(effect.batch)
    replicator.step(Committed(effect.token, True), 210 * MS, WALL_MS)
    again = alone(store)
    assert again.agree(replicator.digests())
    assert again.map_status() == replicator.map_status()
    version, _ = again.put("s|0", b"w", 1, 0, 0, WALL_MS - 50_000)
    assert version.hlc > replicator.entry("s|0").hlc, "the mark is durable"
    assert hlc_wall_ms(version.hlc) <= WALL_MS + 2_000


def test_a_thousand_puts_do_not_wait_for_the_interval_and_one_commit_runs_at_a_time():
    replicator = alone()
    commits = []
    for i in range(3_000):
        _, effects = replicator.put(f"s|{i}", b"v", 1, 0, MS, WALL_MS)
        commits += [effect for effect in effects if isinstance(effect, Commit)]
    assert [len(commit.batch.puts) for commit in commits] == [1_000]
    assert replicator.uncommitted() == 2_000
    (following,) = replicator.step(Committed(commits[0].token, True), 2 * MS, WALL_MS)
    assert len(following.batch.puts) == 2_000


def test_a_disk_that_fails_is_named_once_served_around_and_recovers():
    world = World(2)
    world.run(500)
    host = world.hosts["n0"]
    host.store.failing = True
    world.put("n0", "s|k", b"v")
    world.remove("n0", "s|gone")
    world.run(20_000)
    assert [type(fault) for fault in host.faults] == [Fault]
    assert host.faults[0].code == "E-REPLICA-DEGRADED"
    assert "no space left" in host.faults[0].text
    assert 4 <= host.replicator.counters()["commits_failed"] <= 12, "with backoff"
    assert world.get("n0", "s|k") == world.get("n1", "s|k") == b"v"
    host.store.failing = False
    world.run(6_000)
    assert isinstance(host.faults[-1], FaultCleared)
    assert host.replicator.uncommitted() == 0
    before = world.contents("n0")
    world.restart("n0")
    assert world.contents("n0") == before


# ---- between nodes


def test_a_put_reaches_its_peers_within_a_batch_and_its_lag_is_known():
    world = World(3)
    world.run(500)
    world.put("n0", "s|k", b"v")
    assert world.hosts["n0"].replicator.lag(world.now_ns + 7 * MS)["n1"] == PeerLag(1, 7)
    assert world.until(lambda: world.get("n1", "s|k") and world.get("n2", "s|k"), 100, 1) <= 25
    world.run(10)
    assert world.hosts["n0"].replicator.lag(world.now_ns) == {"n1": PeerLag(0, 0), "n2": PeerLag(0, 0)}
    assert world.hosts["n2"].applied == ["s|k"]


def test_a_peer_whose_clock_is_too_far_ahead_is_refused_by_name_until_it_is_not():
    world = World(3)
    world.run(500)
    world.hosts["n0"].skew_ms = limits.hlc_ahead_ms_max + 5_000
    world.put("n0", "s|k", b"v")
    world.run(4_000)
    host = world.hosts["n1"]
    assert world.get("n1", "s|k") is None
    assert [(f.code, f.subject) for f in host.faults] == [("E-CLOCK-AHEAD", "n0")]
    assert "n0" in host.faults[0].text
    sent = world.sent["replica.entries"]
    assert host.replicator.put("s|mine", b"", 1, 0, world.now_ns, world.wall_ms("n1"))[0].hlc <= (
        world.wall_ms("n1") << COUNTER_BITS
    ), "nothing was adopted"
    assert sent == 0, "what will be refused is not fetched"
    world.run(40_000)
    assert isinstance(host.faults[-1], FaultCleared)
    assert world.get("n1", "s|k") == b"v", "the time came, and comparison brought it"


def test_t1_a_clock_that_was_ahead_leaves_no_mark_on_disk():
    """Seed 140 of five nodes: it only kept what others wrote, and stamped from the future ever after."""
    world = World(2)
    world.run(500)
    world.hosts["n1"].skew_ms = 3_600_000
    world.put("n0", "s|k", b"v")
    world.run(2_000)
    assert world.get("n1", "s|k") == b"v"
    assert world.hosts["n1"].store.hlc_mark() > 0, "it was committed"
    world.hosts["n1"].skew_ms = 0
    world.restart("n1")
    world.run(500)
    world.put("n1", "s|mine", b"v")
    world.run(2_000)
    assert world.get("n0", "s|mine") == b"v"


def test_replicas_that_differ_by_collection_alone_agree_without_moving_an_entry():
    world = World(2)
    world.run(500)
    for i in range(50):
        world.put("n0", f"s|{i}", b"v", ttl_ms=1_000)
    world.until(world.agree, 1_000)
    # n1's clock runs ahead: it forgets first, at the end of the minute of expiry; n0 holds them for a while yet.
    world.hosts["n1"].skew_ms = 50_000
    world.until(lambda: world.hosts["n1"].replicator.entry("s|1") is None, limits.hlc_ahead_ms_max, 500)
    n1 = world.hosts["n1"].replicator
    assert n1.entry("s|1") is None
    assert world.hosts["n0"].replicator.entry("s|1") is not None
    assert not world.agree()
    began = dict(world.sent)
    world.run(5_000)
    assert world.sent["replica.want"] == began.get("replica.want", 0)
    assert world.sent["replica.versions"] > began.get("replica.versions", 0)
    world.hosts["n1"].skew_ms = 0
    world.run(60_000)
    assert world.agree()
    assert world.contents("n0") == world.contents("n1") == {}
    began = dict(world.sent)
    world.run(10_000)
    assert {name for name in world.sent if world.sent[name] != began[name]} <= {
        "replica.digests",
        "replica.leaves",
        "replica.roster_news",
    }


def test_an_entry_that_the_disk_damaged_comes_back_from_a_peer():
    world = World(2)
    world.run(500)
    world.put("n0", "s|k", b"v")
    world.run(1_000)
    host = world.hosts["n0"]
    del host.store._leaves[map_of("s|k"), leaf_of("s|k")]["s|k"]
    assert world.get("n0", "s|k") is None
    world.step(host, Damaged(frozenset({"s|k"})))
    assert world.until(lambda: world.get("n0", "s|k") == b"v", 500) <= 200
    assert world.agree()


def test_a_lapsed_entry_that_comes_late_is_not_taken_in():
    replicator = alone()
    late = wired("s|k", expires_at_ms=WALL_MS - limits.hlc_ahead_ms_max)
    replicator.step(Received("b", Delta(1, 0, 1, (late,))), 0, WALL_MS)
    assert replicator.entry("s|k") is None
    assert replicator.counters()["ignored_lapsed"] == 1


@pytest.mark.parametrize(
    ("message", "counter"),
    [
        (Delta(1, 0, 1, (wired("", 1),)), "refused_key"),
        (Delta(1, 0, 1, (wired("s|k", hlc=0),)), "refused_version"),
        (Delta(1, 0, 1, (wired("s|k", hlc=1 << 64),)), "refused_version"),
        (Delta(1, 0, 1, (wired("s|k", origin=""),)), "refused_version"),
        (Delta(1, 0, 1, (wired("s|k", expires_at_ms=-1),)), "refused_expiry"),
        (Delta(1, 0, 1, (wired("s|k", tombstone=True),)), "refused_value"),
        (Delta(1, 0, 1, ()), "refused_delta"),
        (Delta(1, 3, 3, (wired("s|k"),)), "refused_delta"),
        (Delta(1, -1, 1, (wired("s|k"),)), "refused_delta"),
        (Digests(1, b"short"), "invalid"),
        (Versions(1, (LeafVersions(32, 0, ()),)), "invalid"),
        (Versions(1, (LeafVersions(0, -1, ()),)), "invalid"),
        (Leaves(77, True), "answers_late"),
        (Offer(77, 1), "answers_late"),
    ],
)
def test_a_message_that_breaks_a_rule_is_counted_and_changes_nothing(message, counter):
    replicator = alone()
    effects = replicator.step(Received("b", message), 0, WALL_MS)
    assert replicator.counters()[counter] == 1
    assert replicator.digests() == [0] * 32
    assert not any(isinstance(effect, Applied | Commit) for effect in effects)


def test_an_answer_to_a_comparison_is_checked_before_it_is_followed():
    replicator = Replicator("a", new_store(), ReplicationSettings(), random.Random(1))
    replicator.step(RosterKnown(ReplicaRoster()), 0, WALL_MS)
    (sent,) = replicator.step(PeersChanged(frozenset({"b"})), 0, WALL_MS)
    number = sent.message.round
    for bad in (MapLeaves(32, bytes(4096)), MapLeaves(0, bytes(4095))):
        assert replicator.step(Received("b", Leaves(number, True, (bad,))), 0, WALL_MS) == []
    (asked,) = replicator.step(Received("b", Leaves(number, True, (MapLeaves(0, b"\1" * 4096),))), 0, WALL_MS)
    assert len(asked.message.leaves) == 256
    for done in (0, 257):
        assert replicator.step(Received("b", Offer(number, done)), 0, WALL_MS) == []
    assert replicator.counters()["invalid"] == 4
    item = KeyVersion("s|k", 1, WALL_MS << COUNTER_BITS, "b", 0, False)
    (want,) = replicator.step(Received("b", Offer(number, 256, (item,))), 0, WALL_MS)
    assert want == Send("b", Want(want.message.number, ("s|k",)))
    assert not replicator.ready
    replicator.step(Received("b", Entries(want.message.number, (wired("s|k"),))), 0, WALL_MS)
    assert replicator.ready
    assert replicator.get("s|k", WALL_MS) is not None


def test_ready_without_peers_and_not_before_they_are_known():
    replicator = Replicator("a", new_store(), ReplicationSettings(), random.Random(1))
    replicator.step(RosterKnown(ReplicaRoster()), 0, WALL_MS)
    replicator.step(Tick(), 0, WALL_MS)
    assert not replicator.ready
    replicator.step(PeersChanged(frozenset({"a"})), 0, WALL_MS)
    assert replicator.ready
    assert replicator.synchronising == 1.0


def test_its_own_name_among_the_peers_is_not_a_peer():
    replicator = Replicator("a", new_store(), ReplicationSettings(), random.Random(1))
    replicator.step(RosterKnown(ReplicaRoster()), 0, WALL_MS)
    replicator.step(PeersChanged(frozenset({"a"})), 0, WALL_MS)
    replicator.put("s|k", b"v", 1, 0, 0, WALL_MS)
    effects = replicator.step(Tick(), SECOND, WALL_MS)
    assert {type(effect) for effect in effects} <= {Commit, JoinRoster}
    assert replicator.lag(SECOND) == {}


def test_the_end_of_a_commit_that_was_not_asked_for_is_counted_and_changes_nothing():
    replicator = alone()
    replicator.put("s|k", b"v", 1, 0, 0, WALL_MS)
    (commit,) = replicator.step(Tick(), SECOND, WALL_MS)
    assert replicator.step(Committed(commit.token + 1, False, "late"), SECOND, WALL_MS) == []
    assert replicator.uncommitted() == 0, "the real one is still under way"
    replicator.step(Committed(commit.token, False, "full"), SECOND, WALL_MS)
    assert replicator.uncommitted() == 1
    assert replicator.counters()["commits_unknown"] == 1


def test_a_peer_that_never_sends_what_it_offered_leaves_the_replica_not_ready():
    replicator = Replicator("a", new_store(), ReplicationSettings(), random.Random(1))
    replicator.step(RosterKnown(ReplicaRoster()), 0, WALL_MS)
    (sent,) = replicator.step(PeersChanged(frozenset({"b"})), 0, WALL_MS)
    number = sent.message.round
    replicator.step(Received("b", Leaves(number, True, (MapLeaves(0, b"\1" * 4096),))), 0, WALL_MS)
    item = KeyVersion("s|k", 1, WALL_MS << COUNTER_BITS, "b", 0, False)
    replicator.step(Received("b", Offer(number, 256, (item,))), 0, WALL_MS)
    sends = []
    for now_ms in range(0, 8_000, 50):
        sends += [e.message for e in replicator.step(Tick(), now_ms * MS, WALL_MS) if isinstance(e, Send)]
    assert [message.keys for message in sends if isinstance(message, Want)] == [("s|k",)] * 2, "three with the first"
    assert any(isinstance(message, Digests) for message in sends), "and it compares anew"
    assert not replicator.ready
