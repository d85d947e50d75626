"""What follows from a view, events in words, faults that hold, and the index over the replica."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from node.ads.view import AuctionInfo, CandidateView, ServeView
from node.core.clock import MS, ManualClock
from node.core.hashing import shard_of
from node.core.ids import NodeId
from node.core.limits import events_kept, view_bytes_max
from node.engine import topology
from node.engine.events import EventLog, NodeEvent, of_membership, of_move, of_sharding
from node.engine.faults import Faults
from node.engine.serveindex import ReplicaServeIndex
from node.gossip.events import Moved
from node.gossip.member import Member, Status
from node.gossip.replica_io import Applied, ReplicationSettings, RosterKnown, Tick
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replicator import Replicator
from node.gossip.state import build, merge, transitions
from node.gossip.view import ClusterView, Unreachability
from node.sharding.messages import CoordinatorLost, NodeCordoned, ShardFenced, ShardMoved, ShardPinned
from node.store.replica_memory import MemoryReplica
from node.store.replica_port import ReplicaIdentity
from node.wire.codec import CODEC

BOTH = ("entity", "singleton")


def member(name: str, order: int, *, roles: tuple[str, ...] = BOTH, status: Status = Status.UP, **more: Any) -> Member:
    return Member(name, more.pop("incarnation", 1), f"{name}:1", roles=roles, status=status, up_number=order, **more)


def view(*members: Member, away: tuple[str, ...] = (), leader: str = "") -> ClusterView:
    unreachable = {name: Unreachability((NodeId("n9", 1),), 0) for name in away}
    return ClusterView(NodeId("n1", 1), members={m.node: m for m in members}, unreachable=unreachable, leader=leader)


def node(name: str) -> NodeId:
    return NodeId(name, 1)


# ---- topology


def test_singletons_live_on_the_oldest_that_stays() -> None:
    three = view(member("n1", 3), member("n2", 1), member("n3", 2))
    assert topology.singleton_home(three, ()) == node("n2")
    assert topology.singleton_home(three, {node("n2")}) == node("n3")
    assert topology.singleton_home(three, {node("n1"), node("n2"), node("n3")}) == node("n2"), (
        "rather there than nowhere"
    )
    leaving = view(member("n1", 3), member("n2", 1, status=Status.LEAVING))
    assert topology.singleton_home(leaving, ()) == node("n1")
    assert topology.singleton_home(view(member("n1", 1, roles=("entity",))), ()) is None
    gone = view(member("n1", 2), member("n2", 1, status=Status.DOWN))
    assert topology.singleton_home(gone, ()) == node("n1")


def test_the_next_in_age_coordinates_for_one_that_the_store_does_not_answer() -> None:
    three = view(*(member(f"n{number}", number) for number in (1, 2, 3)))
    n1, n2, n3 = map(node, ("n1", "n2", "n3"))
    assert topology.coordinator_home(three, (), {n1}) == n2
    assert topology.coordinator_home(three, {n2}, {n1}) == n3
    assert topology.coordinator_home(three, (), {n1, n2, n3}) == n1, "where it would change nothing it stays"
    assert topology.coordinator_home(three, {n1}, {n2, n3}) == n2, "who drains has handed it over"
    assert topology.entity_nodes(three, (), storeless={n1}).coordinator == n2
    assert topology.singleton_home(three, ()) == n1, "singletons need no store"


def test_who_may_own_shards() -> None:
    members = (
        member("n1", 1, capacity=2, app_version="0.2"),
        member("n2", 2, status=Status.LEAVING),
        member("n3", 3),
        member("n4", 4, roles=("api",)),
        member("n5", 5, status=Status.DOWN),
        member("n6", 6),
        member("n7", 0, status=Status.JOINING),
    )
    nodes = topology.entity_nodes(view(*members, away=("n3",)), {node("n6")})
    found = {n.node.name: (n.takes_shards, n.reachable, n.leaving) for n in nodes.nodes}
    assert found == {
        "n1": (True, True, False),
        "n2": (False, True, True),
        "n3": (False, False, False),
        "n6": (False, True, True),
    }
    assert (nodes.nodes[0].capacity, nodes.nodes[0].version) == (2.0, "0.2")
    closing = topology.entity_nodes(view(*members), (), {node("n1")}, held=True)
    (first,) = [n for n in closing.nodes if n.node == node("n1")]
    assert (first.takes_shards, first.leaving, closing.held) == (False, False, True), "it keeps what it has for now"
    assert nodes.coordinator == node("n1")


def test_peers_and_majority() -> None:
    found = view(member("n1", 1), member("n2", 2), member("n3", 3), member("n4", 4, roles=("api",)), away=("n3",))
    assert topology.peers(found) == {"n2", "n4"}
    assert topology.entity_majority(found) == (2, 2)
    assert topology.entity_majority(view(member("n1", 1, roles=("api",)))) == (0, 0)


# ---- events


def test_differences_between_two_views_in_words() -> None:
    before = view(member("n1", 1), member("n2", 2), member("n3", 3), leader="n1")
    after = view(
        member("n1", 1),
        member("n2", 2, incarnation=2),
        member("n4", 0, status=Status.JOINING),
        away=("n1",),
        leader="n2",
    )
    topics = [(topic, about) for topic, about, _ in of_membership(before, after)]
    assert topics == [("node.unreachable", "node/n1"), ("cluster.leader", "node/n2")]
    assert of_membership(after, after) == []
    back = of_membership(after, all_in_reach(after))
    assert [topic for topic, _, _ in back] == ["node.reachable"]


def test_each_transition_of_a_member_in_words() -> None:
    was = build((member("n1", 1), member("n2", 2), member("n3", 3)), (), 3)
    gone = msgspec.structs.replace(member("n3", 3), status=Status.REMOVED, cause="at noon by operator")
    fresh = member("n2", 0, incarnation=2, status=Status.JOINING)
    after = merge(was, build((gone, fresh, member("n4", 0, status=Status.JOINING)), (), 3))
    told = [of_move(Moved(*found)) for found in transitions(was, after)]
    assert sorted(told) == [
        ("node.joined", "node/n2", "incarnation 2, joining"),
        ("node.joined", "node/n4", "incarnation 1, joining"),
        ("node.removed", "node/n2", "incarnation 1, was up: replaced by incarnation 2"),
        ("node.removed", "node/n3", "incarnation 1, was up: at noon by operator"),
    ]
    assert transitions(after, after) == []


def all_in_reach(seen: ClusterView) -> ClusterView:
    """The same members, all in reach again."""
    return ClusterView(seen.me, members=seen.members, leader=seen.leader)


def test_sharding_notes_in_words() -> None:
    words = of_sharding(ShardMoved(17, "n1", "n2", 5, "drain"))
    assert words == ("shard.moved", "shard/17", "n1 → n2, epoch 5 (drain)")
    assert (of_sharding(CoordinatorLost("n1", 3, "lease")) or ("",))[0] == "coordinator.lost"
    assert (of_sharding(ShardFenced(1, "n1", 2, 3)) or ("", "", ""))[2] == "n1 wrote under epoch 2, the store has 3"
    cordon = ("node.cordoned", "node/n2", "keeps its shards and gets no more (disk)")
    assert of_sharding(NodeCordoned("n2", True, "disk")) == cordon
    assert of_sharding(NodeCordoned("n2", False)) == ("node.uncordoned", "node/n2", "gets shards again")
    assert of_sharding(ShardPinned(3, "n2")) == ("shard.pinned", "shard/3", "belongs on n2")
    assert of_sharding(ShardPinned(3, "")) == ("shard.unpinned", "shard/3", "may be on any node")
    assert of_sharding(NodeEvent(0, "a", "b", "c", "n1")) is None


def test_the_newest_events_are_kept_and_all_are_counted() -> None:
    log = EventLog()
    for n in range(events_kept + 10):
        log.note(NodeEvent(n, "t", "o", "x", "n1"))
    assert (len(log.kept), log.kept[0].at_ms, log.count) == (events_kept, 10, events_kept + 10)


# ---- faults


def test_a_fault_keeps_its_first_time_while_it_holds() -> None:
    clock = ManualClock(wall_ms=1_000)
    faults = Faults(clock)
    faults.put("E-B", "store", "for 1 s")
    clock.advance_ns(5_000 * MS)
    faults.put("E-B", "store", "for 6 s")
    faults.put("E-A", "node/n2", "away")
    assert [(f.code, f.message, f.since_ms) for f in faults.all()] == [
        ("E-A", "away", 6_000),
        ("E-B", "for 6 s", 1_000),
    ]
    faults.put("E-B", "store", "")
    faults.clear("E-A", "node/n2")
    faults.clear("E-A", "never")
    assert faults.all() == ()
    faults.put("E-B", "store", "again")
    assert faults.all()[0].since_ms == 6_000


# ---- the index

SITE = "news.example"
KEY = f"{SITE}|top"


class Index:
    """The index over a replicator that nobody else has."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        identity = ReplicaIdentity("c", "n1", 1)
        store = MemoryReplica(identity)
        self.reads = 0
        self.machine = Replicator("n1", store, ReplicationSettings(), random.Random(1))
        self.machine.step(RosterKnown(ReplicaRoster()), 0, self.clock.wall_ms())
        real = self.machine.get

        def get(key: str, wall_ms: int) -> Any:
            self.reads += 1
            return real(key, wall_ms)

        self.machine.get = get  # type: ignore[method-assign]
        self.epoch = 3
        self.ahead_ms = 0
        self.index = ReplicaServeIndex(
            self.machine, CODEC, self.clock, self._epoch_of, self._carry_out, lambda _now_ns, _wall_ms: self.ahead_ms
        )

    def _epoch_of(self, shard: int) -> int:
        assert shard == shard_of(SITE)
        return self.epoch

    def _carry_out(self, effects: Any) -> None:
        for effect in effects:
            if isinstance(effect, Applied):
                self.index.forget(effect.keys)

    def view(self, *creatives: str, url: str = "https://a/", ttl_ms: int = 60_000) -> ServeView:
        candidates = tuple(
            CandidateView(c, "camp", "adv", url, url, "a", "image/png", 1, 1, "483", 1, 1) for c in creatives
        )
        now_ms = self.clock.wall_ms()
        return ServeView(candidates, now_ms, now_ms + ttl_ms, ("483",), (AuctionInfo("a", "t", now_ms),))


@pytest.fixture
def index() -> Index:
    return Index()


def test_t1_a_node_whose_clock_is_ahead_refuses_its_own_puts(index: Index) -> None:
    index.ahead_ms = 3_600_000
    index.index.put(SITE, KEY, index.view("c1"))
    assert (index.index.read(KEY), index.index.puts_refused) == (None, 1)


def test_t1_a_node_whose_clock_is_ahead_removes_under_the_others_time(index: Index) -> None:
    index.index.put(SITE, KEY, index.view("c1"))
    put = index.machine.entry(KEY)
    index.ahead_ms = 3_600_000
    index.index.remove(SITE, KEY)
    removal = index.machine.entry(KEY)
    assert put is not None
    assert removal is not None
    assert removal.tombstone
    assert put.hlc < removal.hlc < put.hlc + (1 << 16), "under the others' time"
    index.ahead_ms = 0
    index.index.put(SITE, KEY, index.view("c1"))
    assert index.index.read(KEY) is not None


def test_what_is_put_is_read_and_decoded_once(index: Index) -> None:
    assert index.index.read(KEY) is None
    assert index.index.version(KEY) is None
    index.index.put(SITE, KEY, index.view("c1"))
    first = index.index.read(KEY)
    assert first is not None
    assert first.candidates[0].creative_id == "c1"
    version = index.index.version(KEY)
    assert version is not None
    assert (version.epoch, version.origin) == (3, "n1")
    reads = index.reads
    for _ in range(5):
        assert index.index.read(KEY) is first
        assert index.index.version(KEY) == version
    assert index.reads == reads, "serving asks the replica once for each version of a view"
    index.index.put(SITE, KEY, index.view("c2"))
    second = index.index.read(KEY)
    assert second is not None
    assert second.candidates[0].creative_id == "c2"
    assert index.index.version(KEY) != version


def test_a_view_that_was_collected_leaves_nothing_behind(index: Index) -> None:
    index.index.put(SITE, KEY, index.view("c1", ttl_ms=1_000))
    assert index.index.read(KEY) is not None
    index.clock.advance_ns(3_600_000 * MS)
    assert index.index.read(KEY) is None
    for _ in range(3):  # the index of a start is built a page at a time
        index.clock.advance_ns(10_000 * MS)
        index._carry_out(index.machine.step(Tick(), index.clock.mono_ns(), index.clock.wall_ms()))
    assert index.machine.entry(KEY) is None
    assert index.index.keys_of(SITE).keys == ()
    assert not index.index._decoded, "what is gone is not kept decoded either"


def test_a_view_expires_also_when_it_was_decoded(index: Index) -> None:
    index.index.put(SITE, KEY, index.view("c1"))
    assert index.index.read(KEY) is not None
    index.clock.advance_ns(60_001 * MS)
    assert index.index.read(KEY) is None
    assert index.index.version(KEY) is None


def test_a_node_that_lost_the_shard_writes_nothing(index: Index) -> None:
    index.index.put(SITE, KEY, index.view("c1"))
    index.epoch = 2
    index.index.put(SITE, KEY, index.view("c2"))
    index.index.remove(SITE, KEY)
    index.epoch = 0
    index.index.put(SITE, KEY, index.view("c3"))
    index.index.remove(SITE, KEY)
    found = index.index.read(KEY)
    assert found is not None
    assert found.candidates[0].creative_id == "c1"
    assert index.index.puts_refused == 4
    index.epoch = 4
    index.index.remove(SITE, KEY)
    assert index.index.read(KEY) is None
    entry = index.machine.entry(KEY)
    assert entry is not None
    assert (entry.tombstone, entry.epoch) == (True, 4)


def test_a_view_that_is_too_large_is_cut_at_its_end(index: Index) -> None:
    names = tuple(f"c{n}" for n in range(500))
    index.index.put(SITE, KEY, index.view(*names, url="https://a/" + "x" * 2_000))
    found = index.index.read(KEY)
    assert found is not None
    kept = [c.creative_id for c in found.candidates]
    assert kept == list(names[: len(kept)])
    assert 10 < len(kept) < 500
    assert len(CODEC.encode(found)) <= view_bytes_max
    assert (index.index.puts_refused, index.index.views_cut > 0) == (0, True)


def test_a_value_that_can_not_be_read_is_counted_and_absent(index: Index) -> None:
    now_ns, wall_ms = index.clock.mono_ns(), index.clock.wall_ms()
    for number, value in enumerate((b"", b"\xff\x00", CODEC.encode(AuctionInfo("a", "t", 1)))):
        index.machine.put(f"{SITE}|s{number}", value, 1, 0, now_ns, wall_ms)
        assert index.index.read(f"{SITE}|s{number}") is None
    assert index.index.undecodable == 3
