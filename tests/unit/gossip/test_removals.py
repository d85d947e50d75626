"""Removals by majority, settled tombstones, and replicas that return under another tenure."""

from __future__ import annotations

import copy
from itertools import pairwise

import pytest
from replica_world import WALL_MS, World

from node.core.clock import SECOND
from node.core.hlc import COUNTER_BITS
from node.gossip.removal import NOT_KNOWN
from node.gossip.removals import Removals
from node.gossip.replica_io import ReplicationSettings, Send
from node.gossip.replica_messages import Confirmed, KeyVersion
from node.gossip.replica_roster import ReplicaRoster, joined, left
from node.gossip.replica_views import WriteToken, parse_token
from node.gossip.version import Version

AGED = ReplicationSettings(tombstone_min_age_ms=5_000)
VERSION = Version(1, WALL_MS << COUNTER_BITS, "n0")
ITEM = KeyVersion("s|k", *VERSION, 0, True)


def cluster(count: int, **settings) -> World:
    world = World(count, settings=ReplicationSettings(**settings) if settings else AGED)
    world.until(world.settled_roster, 20_000)
    return world


def outcomes(world: World, name: str = "n0") -> list[str]:
    return [news.outcome for news in world.hosts[name].removals]


# ---- the machine alone


def roster(*names: str) -> ReplicaRoster:
    found = ReplicaRoster()
    for name in names:
        found = joined(found, name, 1, WALL_MS) or found
    return found


def removal(*names: str) -> Removals:
    made = Removals("n0", ReplicationSettings())
    made.changed(roster(*names), 1, 0, WALL_MS)
    made.set_peers(frozenset(names) - {"n0"}, 0)
    made.begin("s|k", VERSION, WALL_MS, "op", 7)
    return made


def asked(effects) -> set[str]:
    return {effect.node for effect in effects if isinstance(effect, Send)}


def test_p90_nobody_is_asked_and_nothing_is_reported_before_the_own_disk_has_it():
    made = removal("n0", "n1", "n2")
    assert made.due(SECOND) == []
    assert made.answered("n1", Confirmed(1, 1, (ITEM,)), 0, WALL_MS) == []
    assert made.answered("n2", Confirmed(1, 1, (ITEM,)), 0, WALL_MS) == [], "two of three, and not here"
    (news,) = made.durable("s|k", 1, 0, WALL_MS + 9)
    assert (news.outcome, news.certificate.majority_ms, news.certificate.asked_by) == ("removed", WALL_MS + 9, "op")
    assert news.certificate.last_serve_ms == 7


def test_p90_a_late_answer_a_refusal_and_another_tenure_are_counted_right_and_named():
    made = removal("n0", "n1", "n2", "n3", "n4")
    assert made.durable("s|k", 1, 0, WALL_MS) == []
    assert asked(made.due(0)) == {"n1", "n2", "n3", "n4"}
    assert made.answered("n1", Confirmed(1, 1, (), ((ITEM, "its disk is full"),)), 0, WALL_MS) == []
    assert made.answered("n2", Confirmed(1, 2, (ITEM,)), 0, WALL_MS) == [], "of another tenure"
    assert made.answered("nx", Confirmed(1, 1, (ITEM,)), 0, WALL_MS) == [], "not on the roster"
    assert made.answered("n3", Confirmed(1, 1, (ITEM,)), 0, WALL_MS) == []
    assert made.answered("n3", Confirmed(1, 1, (ITEM,)), 0, WALL_MS) == [], "the same one again is no second vote"
    (pending,) = made.pending(9, 0)
    assert (pending.needed, pending.held_by, pending.awaited) == (3, ("n0", "n3"), ("n1", "n2", "n4"))
    assert dict(pending.refused)["n1"] == "its disk is full"
    assert "tenure 2" in dict(pending.refused)["n2"]
    (news,) = made.answered("n4", Confirmed(1, 1, (ITEM,)), 0, WALL_MS + 5)
    assert news.outcome == "removed"
    assert [held.node for held in news.certificate.held] == ["n0", "n3", "n4"]
    assert made.answered("n1", Confirmed(1, 1, (ITEM,)), 0, WALL_MS + 6) == [], "late, and kept"
    certificate = made.certificate("s|k")
    assert certificate is not None
    assert "n1" in [held.node for held in certificate.held]
    older = KeyVersion("s|k", 1, VERSION.hlc - 1, "n0", 0, True)
    made.answered("n2", Confirmed(1, 1, (older,)), 0, WALL_MS)
    assert made.counters["confirmations_late"] == 1
    assert made.awaited("s|k", VERSION) == ("n2",)


def test_of_a_removal_that_an_earlier_start_was_told_of_nobody_says_whose_it_was():
    made = removal("n0", "n1", "n2")
    made.adopt({"s|k": VERSION, "s|before": VERSION}, 0, WALL_MS)
    found = {certificate.key: certificate.asked_by for certificate in made.certificates(9)}
    assert found == {"s|k": "op", "s|before": NOT_KNOWN}


def test_it_is_asked_for_again_with_a_growing_pause_and_reported_pending_after_five_times():
    made = removal("n0", "n1", "n2")
    made.durable("s|k", 1, 0, WALL_MS)
    times, told, now_ns = [], [], 0
    while len(times) < 9:
        now_ns = made.due_ns()
        effects = made.due(now_ns)
        times.append(now_ns // 1_000_000)
        told += [(len(times), effect.outcome) for effect in effects if not isinstance(effect, Send)]
    assert [b - a for a, b in pairwise(times)] == [200, 400, 800, 1600, 3200, 5000, 5000, 5000]
    assert told == [(6, "pending")], "once, when the wait after the fifth time is over"
    (news,) = made.answered("n1", Confirmed(1, 1, (ITEM,)), now_ns, WALL_MS)
    assert news.outcome == "removed", "and once more when it is done"


def test_a_success_leaves_no_retry_armed_and_a_later_put_cancels_what_is_left():
    made = removal("n0", "n1", "n2")
    made.durable("s|k", 1, 0, WALL_MS)
    for name in ("n1", "n2"):
        made.answered(name, Confirmed(1, 1, (ITEM,)), 0, WALL_MS)
    assert made.due_ns() is None
    assert made.pending(9, 0) == []
    made.begin("s|j", VERSION, WALL_MS, "", 0)
    made.durable("s|j", 1, 0, WALL_MS)
    assert [news.outcome for news in made.put("s|j")] == ["cancelled"]
    assert (made.due(60 * SECOND), made.due_ns()) == ([], None)


def test_who_left_the_roster_has_no_vote_and_who_joins_is_asked_too():
    made = removal("n0", "n1", "n2", "n3", "n4")
    made.durable("s|k", 1, 0, WALL_MS)
    made.answered("n1", Confirmed(1, 1, (ITEM,)), 0, WALL_MS)
    four = left(roster("n0", "n1", "n2", "n3", "n4"), "n1", WALL_MS, "down")
    assert made.changed(four, 1, 0, WALL_MS) == [], "one of four"
    three = left(left(four, "n2", WALL_MS, "down"), "n3", WALL_MS, "down")
    assert made.changed(three, 1, 0, WALL_MS) == [], "one of two"
    (news,) = made.answered("n4", Confirmed(1, 1, (ITEM,)), 0, WALL_MS)
    assert news.outcome == "removed"
    assert made.awaited("s|k", VERSION) == ()
    made.changed(joined(three, "n1", 2, WALL_MS), 1, 0, WALL_MS)
    assert made.awaited("s|k", VERSION) == ("n1",), "its vote was that of its former stay"
    assert made.pending(9, 0) == []
    assert asked(made.due(0)) == {"n1"}


# ---- replicas


def test_p76_a_majority_is_enough_and_without_one_it_is_pending_until_it_has_it():
    world = cluster(3)
    world.put("n0", "s|a")
    world.put("n0", "s|b")
    world.until(world.agree, 2_000)
    n2 = world.stop("n2")
    world.remove("n0", "s|a")
    world.until(lambda: outcomes(world) == ["removed"], 1_000)
    n1 = world.stop("n1")
    version = world.remove("n0", "s|b")
    world.until(lambda: outcomes(world)[1:] == ["pending"], 7_000)
    (pending,) = world.hosts["n0"].replicator.questions.pending_removals(9, world.now_ns)
    assert (pending.key, pending.version, pending.held_by, pending.awaited) == ("s|b", version, ("n0",), ("n1", "n2"))
    world.restart("n0")
    world.until(lambda: world.hosts["n0"].replicator.questions.pending_removals(9, world.now_ns) != [], 7_000)
    world.start("n1", n1)
    world.start("n2", n2)
    world.tell_peers()
    world.until(lambda: world.hosts["n0"].replicator.questions.pending_removals(9, world.now_ns) == [], 10_000)
    world.until(world.agree, 10_000)
    assert all(world.get(name, "s|b") is None for name in world.names)


@pytest.mark.parametrize("restarted", [False, True])
def test_settled_tombstones_leave_memory_gossip_and_disk_and_do_not_come_back(restarted):
    """Also those of an earlier start of the node that wrote them, under the same roster."""
    world = cluster(3)
    for i in range(300):
        world.put("n0", f"s|{i}")
    world.until(world.agree, 3_000)
    for i in range(300):
        world.remove("n0", f"s|{i}")
    world.until(lambda: outcomes(world).count("removed") == 300, 3_000)
    tombstones = lambda: [sum(m.tombstones for m in h.replicator.map_status()) for h in world.hosts.values()]  # noqa: E731
    assert tombstones() == [300, 300, 300]
    if restarted:
        world.restart("n0")
    world.run(3_500)
    assert tombstones() == [300, 300, 300], "not before they are old enough"
    world.until(lambda: tombstones() == [0, 0, 0], 10_000)
    world.run(2_000)
    assert world.agree()
    for host in world.hosts.values():
        assert list(host.store.scan_all("", 999)) == []
        assert host.replicator.questions.tombstones(9, WALL_MS) == []
    world.put("n0", "s|1", b"again")
    world.until(world.agree, 2_000)
    assert [world.get(name, "s|1") for name in world.names] == [b"again"] * 3, "P86: present with the higher version"


def test_a_tombstone_is_kept_while_one_of_the_roster_lacks_it_however_old_it_is():
    world = cluster(3)
    world.put("n0", "s|k")
    world.until(world.agree, 2_000)
    world.run(500)
    n2 = world.stop("n2")
    world.remove("n0", "s|k")
    world.run(60_000)
    (age,) = world.hosts["n0"].replicator.questions.tombstones(9, WALL_MS)
    assert (age.caretaker, age.awaited) == ("n0", ("n2",))
    world.start("n2", n2)
    world.tell_peers()
    assert world.get("n2", "s|k") == b"v", "it counts: nothing that it holds was forgotten by the others"
    world.until(lambda: world.get("n2", "s|k") is None, 3_000)
    world.until(lambda: sum(m.tombstones for m in world.hosts["n2"].replicator.map_status()) == 0, 20_000)
    world.run(3_000)
    assert world.agree()
    assert world.get("n0", "s|k") is None


def test_one_that_has_not_forgotten_yet_does_not_bring_a_settled_tombstone_back():
    world = cluster(3)
    world.until(lambda: world.hosts["n0"].replicator.questions.why_not_settling(world.now_ns) == "", 30_000)
    world.put("n0", "s|k")
    world.until(world.agree, 2_000)
    world.remove("n0", "s|k")
    world.until(lambda: world.hosts["n0"].replicator.questions.tombstones(9, WALL_MS)[0].awaited == (), 3_000)
    world.partition({"n0", "n1"}, {"n2"})
    world.until(lambda: world.hosts["n1"].replicator.entry("s|k") is None, 20_000)
    assert world.hosts["n2"].replicator.entry("s|k").tombstone
    world.restart("n1")  # its marks are gone with it
    world.heal()
    world.until(lambda: world.hosts["n2"].replicator.entry("s|k") is None, 20_000)
    world.until(lambda: world.hosts["n1"].replicator.entry("s|k") is None, 20_000)
    world.run(5_000)
    assert world.agree()
    assert all(world.contents(name) == {} for name in world.names)


@pytest.mark.parametrize("settled", [False, True])
def test_what_returns_under_another_tenure_brings_nothing_back_and_serves_nothing_before_it_took_over(settled):
    world = cluster(3)
    for i in range(40):
        world.put("n0", f"s|{i}")
    world.until(world.agree, 2_000)
    world.run(500)
    n2 = world.stop("n2")
    world.take_off("n2")
    world.remove("n0", "s|1")
    world.put("n0", "s|2", b"newer")
    if settled:
        world.until(lambda: world.hosts["n0"].replicator.entry("s|1") is None, 30_000)
    world.start("n2", n2)
    world.partition({"n0", "n1"}, {"n2"})
    world.run(5_000)
    replicator = world.hosts["n2"].replicator
    assert (world.get("n2", "s|3"), replicator.ready, replicator.tenure) == (None, False, 0)
    assert replicator.questions.streaming().phase == "awaiting"
    assert world.hosts["n2"].faults[-1].code == "E-REPLICA-AWAITED"
    before = dict(world.sent)
    world.heal()
    world.until(world.settled_roster, 10_000)
    world.run(3_000)
    assert world.agree()
    assert [world.get(name, "s|1") for name in world.names] == [None] * 3
    assert [world.get(name, "s|2") for name in world.names] == [b"newer"] * 3
    assert world.get("n2", "s|3") == b"v"
    discarded = replicator.questions.streaming().discarded
    assert discarded == (1 if settled else 0), "its tombstone does it while there is one"
    assert world.roster.tenure_of("n2") == 2
    assert world.sent["replica.entries"] - before.get("replica.entries", 0) <= 4, "only what differed has moved"


def test_who_is_taken_off_while_it_is_cut_off_keeps_what_is_newer_than_its_sources_have_and_never_goes_back():
    """Seed 1143: its newest put was discarded, and an older version of the same key taken over instead."""
    world = cluster(3)
    world.put("n2", "s|k", b"old")
    world.until(world.agree, 2_000)
    world.partition({"n0", "n1"}, {"n2"})
    world.put("n2", "s|k", b"newer")
    world.put("n2", "s|alone")
    world.take_off("n2")
    world.run(500)
    stay = world.hosts["n2"].replicator.replica_roster().version
    held: list[bytes | None] = []
    world.heal()

    def joined_anew() -> bool:
        held.append(world.get("n2", "s|k"))
        return world.hosts["n2"].replicator.replica_roster().version > stay and world.settled_roster()

    world.until(joined_anew, 10_000, step_ms=1)
    world.until(world.agree, 5_000)
    assert set(held) <= {b"newer", None}, "it is hidden while it is suspect, and never old"
    assert [world.get(name, "s|k") for name in world.names] == [b"newer"] * 3
    assert [world.get(name, "s|alone") for name in world.names] == [None] * 3, "it may have been removed meanwhile"
    assert world.hosts["n2"].replicator.questions.streaming().discarded == 1
    put, gone = world.hosts["n2"].replicator.questions.history("s|alone")
    assert (put.version, put.source, put.discarded) == (gone.version, "n2", False)
    assert (gone.source in {"n0", "n1"}, gone.discarded) == (True, True), "an operator sees why it is gone"


def test_a_replica_that_is_copied_from_an_old_backup_keeps_no_vote_d17():
    world = cluster(3)
    world.put("n0", "s|k")
    world.until(world.agree, 2_000)
    world.run(500)
    backup = copy.deepcopy(world.hosts["n2"].store)
    world.stop("n2")
    world.take_off("n2")
    world.remove("n0", "s|k")
    world.until(lambda: world.hosts["n0"].replicator.entry("s|k") is None, 30_000)
    fresh = copy.deepcopy(backup)
    world.start("n2", fresh)
    world.tell_peers()
    world.until(world.settled_roster, 10_000)
    world.run(2_000)
    assert world.agree()
    assert all(world.get(name, "s|k") is None for name in world.names)


def test_a_replica_restored_from_a_backup_of_its_own_stay_takes_over_anew_d17():
    """It acknowledged what was removed since, so that the tombstone is gone everywhere, and the roster still has it."""
    world = cluster(3)
    world.put("n0", "s|k")
    world.put("n0", "s|a")
    world.until(world.agree, 2_000)
    world.run(500)
    backup = copy.deepcopy(world.hosts["n2"].store)
    world.restart("n2")
    world.remove("n0", "s|k")
    world.until(lambda: all(host.replicator.entry("s|k") is None for host in world.hosts.values()), 30_000)
    world.stop("n2")
    world.start("n2", backup)
    replicator = world.hosts["n2"].replicator
    assert world.roster.tenure_of("n2") == 1
    assert (replicator.tenure, replicator.ready, world.get("n2", "s|k")) == (0, False, None)
    world.tell_peers()
    world.until(world.settled_roster, 10_000)
    world.run(2_000)
    assert world.agree()
    assert replicator.questions.streaming().discarded == 1
    assert [(world.get(name, "s|k"), world.get(name, "s|a")) for name in world.names] == [(None, b"v")] * 3
    assert world.roster.tenure_of("n2") == 2


def test_when_all_start_again_the_replicas_of_the_roster_merge_by_version():
    world = cluster(3)
    world.put("n0", "s|a")
    world.until(world.agree, 2_000)
    world.run(500)
    stores = {name: world.stop(name) for name in world.names}
    for name, store in stores.items():
        world.start(name, store)
    world.tell_peers()
    world.until(world.ready, 5_000)
    assert [world.get(name, "s|a") for name in world.names] == [b"v"] * 3
    assert {r.tenure for r in world.roster.replicas} == {1}


def test_when_all_disks_are_lost_nobody_waits_for_what_does_not_exist_any_more():
    world = cluster(3)
    for name in list(world.names):
        world.restart(name, wipe=True)
    world.until(world.settled_roster, 20_000)
    assert world.ready()
    assert {r.tenure for r in world.roster.replicas} == {2}


def test_an_empty_replica_is_filled_with_progress_over_a_cut_and_joins_only_when_complete():
    world = World(2, settings=ReplicationSettings(stream_bytes_per_s=200_000))
    world.until(world.settled_roster, 20_000)
    for i in range(1_500):
        world.put("n0", f"s{i % 40}|{i}", b"x" * 300)
    world.until(world.agree, 20_000)
    world.restart("n1", wipe=True)
    n1 = world.hosts["n1"].replicator
    seen = []
    world.until(lambda: seen.append(n1.questions.streaming().ratio) or n1.questions.streaming().ratio > 0.4, 20_000)
    entries = n1.questions.streaming().entries
    assert not n1.ready
    assert world.roster.tenure_of("n1") == 1, "its former stay: it lost its vote with its file"
    assert n1.tenure == 0
    world.partition({"n0"}, {"n1"})
    world.run(3_000)
    assert not n1.ready
    world.heal()
    world.until(lambda: seen.append(n1.questions.streaming().ratio) or n1.ready, 20_000)
    assert seen == sorted(seen)
    assert entries > 300
    assert n1.questions.streaming().entries < 1_700, "what had come before the cut has not come again"
    world.until(world.settled_roster, 10_000)
    assert world.roster.tenure_of("n1") == 2
    assert n1.questions.streaming().phase == "complete"


# ---- what operators ask


def test_a_token_is_seen_where_the_write_or_something_newer_has_arrived():
    world = cluster(2)
    world.partition({"n0"}, {"n1"})
    world.put("n0", "s|k")
    token = world.hosts["n0"].replicator.token
    assert token is not None
    assert parse_token(str(token)) == token
    n1 = world.hosts["n1"].replicator
    assert not n1.seen(token)
    world.heal()
    world.until(lambda: n1.seen(token), 2_000)
    world.remove("n0", "s|k")
    world.until(lambda: n1.entry("s|k") is None, 30_000)
    gone = world.hosts["n0"].replicator.token
    assert n1.seen(gone), "settled: every replica had it"
    assert not n1.seen(WriteToken("s|other", Version(1, WALL_MS << 20, "n0")))


def test_the_stable_time_stands_still_while_a_replica_lacks_something_and_names_it():
    world = cluster(3)
    world.run(5_000)
    n0 = world.hosts["n0"].replicator
    now = lambda: (world.now_ns, world.wall_ms("n0"))  # noqa: E731
    assert n0.watermark(*now()) == (now()[1], ())
    world.partition({"n0", "n1"}, {"n2"})
    written_ms = now()[1]
    world.put("n0", "s|k")
    world.run(4_000)
    stable_ms, held = n0.watermark(*now())
    assert stable_ms <= written_ms
    assert [(h.node, h.entries) for h in held] == [("n2", 1)]
    world.heal()
    world.until(lambda: n0.watermark(*now()).held_back_by == (), 10_000)


def test_the_last_eight_versions_of_a_key_are_remembered_with_where_they_came_from():
    world = cluster(2)
    versions = []
    for i in range(10):
        versions.append(world.put("n0", "s|k", bytes(i)))
        world.run(50)
    seen = world.hosts["n1"].replicator.questions.history("s|k")
    assert [v.version for v in seen] == versions[2:]
    assert {v.source for v in seen} == {"n0"}
    assert [v.bytes for v in seen] == list(range(2, 10))
