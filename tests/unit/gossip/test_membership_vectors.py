"""Vectors and measurements of the small rules: who watches whom, whom gossip goes to, who comes first, which version is
newer; the transition table; and that every setting does something."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import fields, replace

import msgspec
import pytest
from sim_membership import World, ident

from node.core import limits
from node.core.clock import MS, SECOND
from node.core.ids import NodeId
from node.gossip.admission import sound
from node.gossip.member import TRANSITIONS, Member, Status, address_order, moved
from node.gossip.membership import Phase
from node.gossip.messages import StateMessage
from node.gossip.ring import next_on, ring_of, watched_by
from node.gossip.settings import DEFAULT, FAST, MembershipSettings
from node.gossip.skew import Skew
from node.gossip.state import Row, build
from node.gossip.strategies import age_order
from node.gossip.target import candidates, choose
from node.gossip.view import ClusterView, Unreachability, look

N = [NodeId(f"n{i}", 1) for i in range(1, 11)]


def state_of(count: int, *rows: Row):  # type: ignore[no-untyped-def]
    return build([Member(n.name, 1, f"h:{i}", status=Status.UP) for i, n in enumerate(N[:count])], rows, 0)


# ---- transitions: exactly these, every other pair is refused (M1)

ALLOWED = {
    "joining": "weakly_up up leaving down removed",
    "weakly_up": "up leaving down removed",
    "up": "leaving down removed",
    "leaving": "exiting down removed",
    "exiting": "down removed",
    "down": "removed",
    "removed": "",
}


@pytest.mark.parametrize("before", Status)
@pytest.mark.parametrize("after", Status)
def test_m1_only_listed_transitions_happen(before: Status, after: Status) -> None:
    record = Member("n1", 1, "h:1", status=before, cause="why")
    if after.word in ALLOWED[before.word].split():
        assert moved(record, after).status is after
        return
    with pytest.raises(ValueError, match=f"{before.word} to {after.word} is no transition"):
        moved(record, after)
    assert after not in TRANSITIONS[before]


def test_a_cause_stays_short_enough_to_be_gossiped_and_a_longer_one_is_not_taken_in() -> None:
    long = moved(Member("n1", 1, "h:1", status=Status.UP), Status.DOWN, cause="x" * 1_000)
    assert len(long.cause) == limits.member_cause_chars_max
    message = StateMessage("f", "c", (long,), (), 0, (), False)
    assert sound(message)
    worse = msgspec.structs.replace(long, cause="x" * (limits.member_cause_chars_max + 1))
    assert not sound(msgspec.structs.replace(message, members=(worse,)))


# ---- the ring (HeartbeatNodeRing)


def test_each_watches_the_next_five_and_all_agree_on_it() -> None:
    state = state_of(10)
    ring = ring_of(state)
    assert sorted(ring) == sorted(N)
    for place, node in enumerate(ring):
        expected = [ring[(place + step) % 10] for step in range(1, 6)]
        assert watched_by(state, ring, node, 5) == next_on(ring, node, 5) == expected
    assert ring_of(build(reversed(list(state.members.values())), (), 0)) == ring, "whatever the order they came in"


@pytest.mark.parametrize(("count", "watched"), [(1, 0), (2, 1), (5, 4), (6, 5), (7, 5)])
def test_a_ring_of_few_watches_all(count: int, watched: int) -> None:
    state = state_of(count)
    assert [len(watched_by(state, ring_of(state), node, 5)) for node in N[:count]] == [watched] * count


def test_one_that_fails_stays_watched_and_the_next_is_watched_too() -> None:
    whole = state_of(10)
    ring = ring_of(whole)
    me, next_one = ring[0], ring[1]
    failing = state_of(10, Row(me, next_one, False, 1))
    assert watched_by(failing, ring, me, 5) == ring[1:7]
    assert watched_by(whole, ring, NodeId("stranger", 1), 5) == next_on(ring, NodeId("stranger", 1), 5) == []


# ---- gossip's targets (GossipTargetSelector), the bias measured


def test_gossip_goes_mostly_to_those_with_another_view() -> None:
    """Two of eight are behind: 0.8 of the rounds choose among them, the rest among all eight."""
    rng, drawn = random.Random(1), 10_000
    behind = set(N[:2])
    hits = Counter(choose(N[:8], set(N[2:]), rng) for _ in range(drawn))
    share = sum(hits[node] for node in behind) / drawn
    assert share == pytest.approx(0.8 + 0.2 * 2 / 8, abs=0.02)
    assert min(hits.values()) > 0.2 / 8 * drawn * 0.7, "nobody is left out"
    even = Counter(choose(N[:8], frozenset(N), rng) for _ in range(drawn))
    assert all(count / drawn == pytest.approx(1 / 8, abs=0.02) for count in even.values())
    assert choose([], frozenset(), rng) is None


def test_never_one_that_this_node_does_not_see_but_one_that_only_others_do_not() -> None:
    state = state_of(4, Row(N[0], N[1], False, 1), Row(N[3], N[2], False, 1))
    view = look(state, N[0], frozenset(N), 5, before=ClusterView(N[0]), now_ns=0)
    assert candidates(view, state) == [N[2], N[3]]
    alone = replace(view, unreachable={"n3": Unreachability((), 0), "n4": Unreachability((), 0)})
    assert candidates(alone, state) == [N[1]], "better a bad link than nobody"


# ---- clocks


def test_t1_a_node_is_ahead_when_most_others_say_so() -> None:
    skew = Skew()
    hour_ms = 3_600_000
    at = (5 * SECOND, 10 * hour_ms)  # by this node's clocks
    assert skew.ahead_ms(*at) == 0
    for number, (ahead_ms, says) in enumerate(
        ((hour_ms, hour_ms), (0, 0), (hour_ms, hour_ms), (-hour_ms, 0), (hour_ms, hour_ms))
    ):
        skew.heard(N[number], 10 * hour_ms - ahead_ms, at[0])
        assert skew.ahead_ms(*at) == says, number
    assert (skew.news(*at), skew.news(*at)) == (hour_ms, None)
    skew.heard(N[9], 0, at[0])
    skew.forget(N[1:2])
    assert (skew.ahead_ms(*at), skew.news(*at), skew.news(*at)) == (0, 0, None)
    later_ns, later_ms = 65 * SECOND, 10 * hour_ms + 60_000
    assert skew.ahead_ms(later_ns, later_ms) == 0
    assert skew.ahead_ms(later_ns, later_ms + hour_ms) == hour_ms, "set ahead, and nobody was heard since"
    assert skew.ahead_ms(later_ns, later_ms + 60_000) == 0, "others accept that"
    skew.forget([])
    assert skew.ahead_ms(later_ns, later_ms + hour_ms) == hour_ms, "all others were started again, none was heard yet"
    skew.heard(N[5], later_ms + hour_ms, later_ns)
    skew.forget(N[5:6])
    assert skew.ahead_ms(later_ns, later_ms + hour_ms) == 0


# ---- orders (MemberOrdering)


def test_addresses_are_ordered_by_host_then_port_as_a_number() -> None:
    controls = ["a:10", "b:1", "a:9", "a:9"]
    names = ["n3", "n4", "n2", "n1"]
    members = [Member(name, 1, control) for name, control in zip(names, controls, strict=True)]
    assert [m.node for m in sorted(members, key=address_order)] == ["n1", "n2", "n3", "n4"]


def test_age_is_the_up_number_and_those_that_join_come_last() -> None:
    members = [Member(f"n{i}", 1, f"h:{i}", up_number=up) for i, up in ((1, 0), (2, 3), (3, 2))]
    assert [m.node for m in sorted(members, key=age_order)] == ["n3", "n2", "n1"]


# ---- every setting does something


def requests(world: World) -> int:
    return sum("JoinRequest" in line for line in world.trace)


def time_of(settings: MembershipSettings, what: str) -> float:
    """Virtual seconds until something happens to a cluster of three with these settings."""
    world = World(3, settings=settings)
    world.start_all(3)
    names = ("n1", "n2", "n3")
    assert world.run(60, lambda: world.one_cluster(*names))
    world.run(10)
    at = world.seconds
    match what:
        case "unreachable":
            world.crash("n3")
            assert world.run(90, lambda: bool(world.processes["n1"].machine.view.unreachable))
        case "decided":
            world.crash("n3")
            assert world.run(90, lambda: bool(world.decided))
        case "left":
            world.partition({"n3"}, {"n1", "n2"})
            world.leave("n3")
            assert world.run(90, lambda: bool(world.removed))
        case "weakly":
            world.pause("n3")
            world.start("n4")
            in_status = (Status.WEAKLY_UP, Status.UP)
            assert world.run(90, lambda: (m := world.processes["n1"].machine.view.members.get("n4")) is not None
                             and m.status in in_status)  # fmt: skip
    return world.seconds - at


def messages_of(settings: MembershipSettings, kind: str, seconds: float = 60) -> int:
    world = World(3, settings=settings)
    world.start_all(5)
    assert world.run(60, lambda: world.one_cluster("n1", "n2", "n3", "n4", "n5"))
    world.trace.clear()
    world.run(seconds)
    return sum(f"message={kind}(" in line for line in world.trace)


def agreed_after(settings: MembershipSettings) -> float:
    world = World(3, settings=settings)
    world.start_all(9)
    assert world.run(90, lambda: world.one_cluster(*(f"n{i}" for i in range(1, 10))))
    world.run(5)
    at = world.seconds
    world.leave("n9")
    assert world.run(90, lambda: world.one_cluster(*(f"n{i}" for i in range(1, 9))))
    return world.seconds - at


def asked(settings: MembershipSettings, seconds: float) -> int:
    world = World(settings=settings)
    world.start("n2")
    world.run(seconds)
    return requests(world)


def formed_after(settings: MembershipSettings) -> float:
    world = World(settings=settings)
    world.start("n1", existed=True)
    assert world.run(60, lambda: world.one_cluster("n1"))
    return world.seconds


TIMES = {"stable_after_ns": 20 * SECOND, "weakly_up_after_ns": 20 * SECOND}
CHANGES = {
    "heartbeat_ns": lambda s: messages_of(replace(s, heartbeat_ns=400 * MS), "Heartbeat") * 1.5
    < messages_of(s, "Heartbeat"),
    "threshold": lambda s: time_of(replace(s, threshold=60.0), "unreachable") > time_of(s, "unreachable"),
    "acceptable_pause_ns": lambda s: time_of(replace(s, acceptable_pause_ns=4 * SECOND, **TIMES), "unreachable")
    > time_of(s, "unreachable") + 2,
    "deviation_min_ns": lambda s: time_of(replace(s, deviation_min_ns=500 * MS), "unreachable")
    > time_of(s, "unreachable") + 1,
    "deviation_max_ns": lambda s: time_of(replace(s, deviation_min_ns=MS, deviation_max_ns=2 * MS), "unreachable")
    < time_of(replace(s, deviation_min_ns=MS), "unreachable"),
    "stable_after_ns": lambda s: time_of(replace(s, stable_after_ns=6 * SECOND), "decided")
    > time_of(s, "decided") + 3,
    "gossip_ns": lambda s: messages_of(replace(s, gossip_ns=5 * SECOND), "Digest") * 3 < messages_of(s, "Digest"),
    "gossip_behind_ns": lambda s: agreed_after(replace(s, gossip_behind_ns=SECOND)) > agreed_after(s),
    "neighbours": lambda s: messages_of(replace(s, neighbours=1), "Heartbeat") * 3 < messages_of(s, "Heartbeat"),
    "join_retry_ns": lambda s: asked(replace(s, join_retry_ns=2 * SECOND), 3) < asked(s, 3),
    "join_retry_max_ns": lambda s: asked(replace(s, join_retry_max_ns=20 * SECOND), 300) * 3 < asked(s, 300),
    "form_wait_ns": lambda s: formed_after(replace(s, form_wait_ns=9 * SECOND)) > formed_after(s) + 5,
    "leave_wait_ns": lambda s: time_of(replace(s, leave_wait_ns=SECOND, **TIMES), "left")
    < time_of(replace(s, **TIMES), "left") - 2,
    "weakly_up_after_ns": lambda s: time_of(replace(s, **(TIMES | {"weakly_up_after_ns": 9 * SECOND})), "weakly")
    > time_of(replace(s, stable_after_ns=20 * SECOND), "weakly") + 4,
}  # fmt: skip
IN_SPLIT_BRAIN = {"strategy", "quorum", "majority_role"}  # the table of test_splitbrain.py changes each of these


@pytest.mark.parametrize("name", [f.name for f in fields(MembershipSettings) if f.name not in IN_SPLIT_BRAIN])
def test_every_setting_changes_what_happens(name: str) -> None:
    assert CHANGES[name](FAST)


# ---- P07, and growth


def test_p07_a_node_of_another_cluster_is_refused_with_both_ids_and_nobodys_list_changes() -> None:
    b = World(1)
    b.start_all(2)
    assert b.run(20, lambda: b.one_cluster("n1", "n2"))
    digest = b.processes["n1"].machine.view.digest
    stray = b.start("n3", cluster=ident(cluster_id="c-of-A"), existed=True).machine
    b.run(10)
    assert "cluster.id is 'c-of-A' here and 'c1' there" in stray.why_not_joined
    assert b.turned_away[0] == "cluster.id is 'c-of-A' there and 'c1' here"
    assert b.processes["n1"].machine.view.digest == digest
    assert not stray.view.members
    assert stray.phase is Phase.OUT


def test_a_joiner_does_not_give_up_because_another_joiner_is_wrong() -> None:
    """Only the cluster's word ends it: here n2, which was set up wrongly, refuses n3 while n1 is still away."""
    world = World(1)
    wrong = world.start("n2", cluster=ident(shard_count="128"), existed=True).machine
    world.start("n3", existed=True)
    world.run(5)
    assert wrong.phase is world.processes["n3"].machine.phase is Phase.JOINING
    assert "n2 (127.0.0.1:7002) refuses this node: shard_count" in world.processes["n3"].machine.why_not_joined
    world.start("n1", existed=True)
    assert world.run(20, lambda: world.one_cluster("n1", "n3"))
    world.run(5)
    assert wrong.phase is Phase.OUT


def test_heartbeats_of_an_idle_cluster_cost_one_message_each_way() -> None:
    """Where two watch each other the acknowledgement rides on the other's heartbeat: for 60 s, five nodes, 200 ms."""
    assert messages_of(FAST, "HeartbeatAck") == 0
    assert messages_of(FAST, "Heartbeat") == pytest.approx(5 * 4 * 300, rel=0.01)
    assert messages_of(DEFAULT, "Digest") == pytest.approx(5 * 60, rel=0.05)


def test_a_joiner_is_no_admission_for_more_than_two_quorums_can_share() -> None:
    world = World(1, settings=replace(FAST, strategy="static-quorum", quorum=2))
    world.start_all(3)
    assert world.run(20, lambda: world.one_cluster("n1", "n2", "n3"))
    world.start("n4")
    world.start("n5", roles=("api",))
    world.run(10)
    assert set(world.processes["n1"].machine.view.members) == {"n1", "n2", "n3", "n5"}
    assert "counted members is '4' here" in world.processes["n4"].machine.why_not_joined
    assert world.processes["n4"].machine.phase is Phase.JOINING, "there may be room later"
    world.crash("n3")
    world.start("n3")
    again = world.run(5, lambda: world.processes["n1"].machine.view.members["n3"].incarnation == 2)
    assert again, "a restart is not one more"
