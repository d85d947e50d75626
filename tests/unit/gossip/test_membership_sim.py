"""Membership end to end, in a deterministic world: what an operator may rely on, under loss, cuts, pauses, crashes."""

from __future__ import annotations

import os
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_membership import FIVE, World, five, ident, member, view

from node.core import limits
from node.core.clock import SECOND
from node.core.ids import NodeId, ServiceRef
from node.gossip.events import Received
from node.gossip.join import Seed
from node.gossip.member import Status
from node.gossip.membership import Phase
from node.gossip.messages import HeartbeatAck, JoinRefused, JoinRequest, StateMessage
from node.gossip.settings import DEFAULT, FAST, MembershipSettings
from node.gossip.state import Row
from node.wire.codec import CODEC
from node.wire.envelope import Envelope, Kind, encode

SEEDS = range(8)


# --- joining


@pytest.mark.parametrize("seed", SEEDS)
def test_five_at_once_make_one_cluster_in_one_order(seed: int) -> None:
    world = five(seed, loss=0.2 if seed % 2 else 0.0, duplicate=0.1, codec=seed == 0)
    assert len({view(world, n).formation for n in FIVE}) == 1
    orders = {tuple((m.node, m.up_number) for m in view(world, n).up()) for n in FIVE}
    assert len(orders) == 1
    assert sorted(number for _, number in orders.pop()) == [1, 2, 3, 4, 5]
    assert {view(world, n).leader for n in FIVE} == {"n1"}
    assert all(p.machine.why_not_joined == "" for p in world.processes.values())


def test_t1_every_heartbeat_says_what_time_it_is() -> None:
    """The first too: whoever has just come in learns by them whether its own clock is right."""
    said = [line for line in five(0).trace if "Heartbeat(" in line]
    assert said
    assert not [line for line in said if "wall_ms=1800" not in line]


def test_a_node_that_may_not_form_waits_and_says_for_whom() -> None:
    """P7: one alone forms no second cluster."""
    world = World()
    world.start("n2")
    world.run(60)
    machine = world.processes["n2"].machine
    assert machine.phase is Phase.JOINING
    assert "n1 (127.0.0.1:7001) does not answer" in machine.why_not_joined
    assert "only the first seed, n1," in machine.why_not_joined
    world.start("n1")
    assert world.run(10, lambda: world.one_cluster("n1", "n2"))


def test_requests_back_off() -> None:
    world = World()
    world.start("n2")
    world.run(600)
    sent = sum("JoinRequest" in line for line in world.trace)
    assert 600 / 2.3 < sent < 600 / 1.7


def test_the_engine_decides_whether_a_cluster_may_be_formed() -> None:
    world = World(seeds=("n1",))
    world.start("n1", may_bootstrap=False)
    world.run(60)
    assert "told not to form" in world.processes["n1"].machine.why_not_joined
    world.start("n2", bootstrap=True)
    assert world.run(10, lambda: world.one_cluster("n1", "n2"))
    assert view(world, "n1").up()[0].node == "n2"


@pytest.mark.parametrize(
    ("other", "key"),
    [
        (ident(name="else"), "cluster.name"),
        (ident(cluster_id="c2"), "cluster.id"),
        (ident(shard_count="128"), "shard_count"),
        (ident(MembershipSettings(heartbeat_ns=SECOND)), "heartbeat_ms"),
        (ident(tombstone_min_age_ms="5"), "tombstone_min_age_ms"),
        (ident(extra_setting="1"), "extra_setting"),
    ],
)
def test_another_cluster_or_other_settings_are_refused_on_both_sides(other, key: str) -> None:  # type: ignore[no-untyped-def]
    """N19: two clusters that share a seed list too, both names said."""
    world = World()
    world.start_all(2)
    assert world.run(10, lambda: world.one_cluster("n1", "n2"))
    digest = view(world, "n1").digest
    machine = world.start("n3", cluster=other).machine
    world.run(20)
    assert machine.phase is Phase.OUT, "no retry would help it"
    assert f"n1 (127.0.0.1:7001) refuses this node: {key} is " in machine.why_not_joined
    assert view(world, "n1").digest == digest
    assert [reason.split(" is ")[0] for reason in world.turned_away] == [key, key]
    first = machine.why_not_joined.split(f"{key} is ")[1].split(" here and ")
    assert world.turned_away[0] == f"{key} is {first[0]} there and {first[1].split(' there')[0]} here"


def test_a_joiner_that_does_not_know_the_cluster_id_learns_it() -> None:
    world = World()
    world.start("n1")
    world.start("n2", cluster=ident(cluster_id=""))
    assert world.run(10, lambda: world.one_cluster("n1", "n2"))
    assert view(world, "n2").cluster_id == "c1"


# --- crash, restart


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crashed_node_is_removed_within_bounds_and_comes_back(seed: int) -> None:
    world = five(seed, loss=0.05)
    world.run(5)
    victim = FIVE[seed % 5]
    rest = [n for n in FIVE if n != victim]
    at = world.seconds
    world.crash(victim)
    assert world.run(8, lambda: world.one_cluster(*rest))
    assert world.seconds - at < 7
    decision = world.decided[-1]
    assert (decision.outcome, decision.available, decision.required) == ("down_unreachable", 4, 3)
    assert not world.removed
    world.start(victim, existed=True)
    assert world.run(6, lambda: world.one_cluster(*FIVE))
    assert view(world, rest[0]).members[victim].incarnation == 2
    assert view(world, rest[0]).members[victim].up_number == 6


def test_the_default_profile_decides_in_about_thirteen_seconds() -> None:
    world = five(settings=DEFAULT)
    world.run(30)
    at = world.seconds
    world.crash("n5")
    assert world.run(30, lambda: bool(world.decided))
    assert 11 < world.seconds - at < 15


def test_a_quick_restart_replaces_the_old_incarnation_at_once() -> None:
    world = five(3)
    world.run(3)
    for _ in range(10):
        start = len(world.views)
        world.crash("n4")
        world.start("n4")
        at = world.seconds
        assert world.run(5, lambda: world.one_cluster(*FIVE))
        assert world.seconds - at < 2
        assert not any(v.unreachable for _, _, v in world.views[start:])
        world.run(1)
    assert view(world, "n1").members["n4"].incarnation == 11
    assert not world.decided


def test_a_restart_at_another_address_is_reached_there() -> None:
    """N20: a new incarnation, and nobody keeps the old route."""
    world = five(4)
    world.run(3)
    world.crash("n4")
    world.start("n4", port=9999)
    assert world.run(5, lambda: world.one_cluster(*FIVE))
    world.run(10)
    assert world.one_cluster(*FIVE)
    assert not any(view(world, n).indirect for n in FIVE)
    assert not world.decided


def test_a_node_killed_while_it_joins_does_not_stay_joining() -> None:
    world = five(1)
    world.start("n6")
    assert world.run(2, lambda: "n6" in view(world, "n1").members)
    world.crash("n6")
    assert world.run(10, lambda: world.one_cluster(*FIVE))


@pytest.mark.parametrize("seeds", [("n1", "n2"), ("n1",)])
@pytest.mark.parametrize("seed", range(4))
def test_the_first_seed_restarts_alone_and_finds_its_cluster(seeds: tuple[str, ...], seed: int) -> None:
    world = five(seed, seeds=seeds, loss=0.1)
    formation = view(world, "n3").formation
    world.crash("n1")
    world.run(0.5 if seed % 2 else 12)
    world.start("n1", existed=True)
    assert world.run(15, lambda: world.one_cluster(*FIVE))
    assert view(world, "n1").formation == formation


def test_all_seeds_restart_while_the_others_live() -> None:
    world = five(2)
    formation = view(world, "n3").formation
    world.crash("n1", "n2")
    world.start("n1", existed=True)
    world.start("n2", existed=True)
    assert world.run(15, lambda: world.one_cluster(*FIVE))
    assert view(world, "n1").formation == formation


@pytest.mark.parametrize("seed", range(4))
def test_a_whole_cluster_restart_comes_back_as_one(seed: int) -> None:
    """P6: all killed at once and started in any order."""
    world = five(seed)
    world.run(5)
    world.crash(*FIVE)
    for name in FIVE[seed:] + FIVE[:seed]:
        world.start(name, existed=True)
        world.run(0.3)
    assert world.run(10, lambda: world.one_cluster(*FIVE))
    assert all(m.incarnation == 2 for m in view(world, "n1").members.values())


# --- leaving, operators


@pytest.mark.parametrize("victim", FIVE)
def test_leaving_is_seen_in_every_step_by_everybody(victim: str) -> None:
    world = five(13)
    start, at = len(world.views), world.seconds
    rest = [n for n in FIVE if n != victim]
    world.leave(victim)
    assert world.run(5, lambda: world.one_cluster(*rest) and bool(world.removed))
    assert world.seconds - at < 3
    assert [(node.name, cause, left) for _, node, cause, left in world.removed] == [(victim, "left", True)]
    for name in rest:
        seen = [v.members[victim].status for _, n, v in world.views[start:] if n == name and victim in v.members]
        steps = list(dict.fromkeys(seen))
        assert steps[-2:] == [Status.LEAVING, Status.EXITING] or steps[-1] is Status.EXITING
    assert not world.decided


def test_the_last_node_leaves_and_a_joining_one_gives_up() -> None:
    world = World()
    world.start("n1")
    assert world.run(10, lambda: world.one_cluster("n1"))
    world.leave("n1")
    assert world.removed[0][2:] == ("left", True)
    world.start("n2")
    world.leave("n2")
    assert world.removed[1][2:] == ("left", True)


def test_leaving_takes_bounded_time_when_nobody_can_agree() -> None:
    world = five(14)
    world.partition({"n5"}, {"n1", "n2", "n3", "n4"})
    world.run(2.2)
    at = world.seconds
    world.leave("n5")
    world.run(FAST.leave_wait_ns / SECOND + 1)
    assert world.removed
    assert world.removed[0][0] - at <= FAST.leave_wait_ns / SECOND + 0.5


def test_an_operator_downs_a_living_node() -> None:
    world = five(15)
    world.down("n2", "n4")
    world.down("n2", "n9")
    assert world.run(5, lambda: world.one_cluster("n1", "n2", "n3", "n5") and bool(world.removed))
    assert world.removed[0][1] == NodeId("n4", 1)
    assert not world.removed[0][3]
    assert " by operator" in world.removed[0][2]


def test_weakly_up_while_somebody_is_unreachable() -> None:
    slow = replace(FAST, stable_after_ns=60 * SECOND, weakly_up_after_ns=2 * SECOND)
    world = five(16, settings=slow)
    world.pause("n5")
    world.run(4)
    world.start("n6")
    assert world.run(10, lambda: view(world, "n1").members.get("n6") is not None)
    assert world.run(6, lambda: view(world, "n1").members["n6"].status is Status.WEAKLY_UP)
    assert world.run(2, lambda: view(world, "n1").blocked_by == ("n5",))
    world.resume("n5")
    assert world.run(5, lambda: world.one_cluster(*FIVE, "n6"))


# --- hostile or odd input, growth, determinism


def test_messages_that_make_no_sense_are_counted_and_change_nothing() -> None:
    world = five(17)
    world.run(2)
    machine = world.processes["n2"].machine
    before = machine.state.digest
    formation = view(world, "n2").formation
    flood = tuple(member(f"n{i}") for i in range(10, 400))
    identity = ident()
    for message in (
        StateMessage(formation, "c1", flood, (), 0, (), True),
        StateMessage(formation, "c1", (), (), -1, (), True),
        HeartbeatAck(formation, 10_000_000),
        JoinRefused("a", "b", "c"),
        JoinRequest(member("n9"), identity.name, identity.id, identity.agreed),
    ):
        world.step("n2", Received(NodeId("n1", 1), message))
    world.step("n2", Received(NodeId("n2", 5), HeartbeatAck(formation, 1)))
    assert machine.state.digest == before
    assert machine.counters == {
        "bad_state": 2, "ack_unexpected": 1, "unexpected": 1, "join_for_another": 1, "from_own_name": 1,
    }  # fmt: skip


def test_churn_leaves_nothing_behind() -> None:
    world = five(18)
    sizes = []
    for _ in range(12):
        world.leave("n4")
        assert world.run(5, lambda: world.one_cluster("n1", "n2", "n3", "n5"))
        world.start("n4")
        assert world.run(5, lambda: world.one_cluster(*FIVE))
        sizes.append(len(world.processes["n1"].machine.state.members) + len(world.processes["n1"].machine.state.rows))
    assert sizes[0] == sizes[-1] == 5


def test_twelve_nodes_under_loss() -> None:
    world = World(19, loss=0.1)
    world.start_all(12)
    names = [f"n{i}" for i in range(1, 13)]
    assert world.run(20, lambda: world.one_cluster(*names))
    world.crash("n4", "n9", "n12")
    rest = [n for n in names if n not in ("n4", "n9", "n12")]
    assert world.run(15, lambda: world.one_cluster(*rest))


@pytest.mark.parametrize("seed", range(3))
def test_twelve_nodes_agree_three_times_within_a_few_rounds(seed: int) -> None:
    """Leaving takes three agreements; with gossip each second, digests that differ must be exchanged faster."""
    world = World(seed, settings=DEFAULT)
    world.start_all(12)
    names = [f"n{i}" for i in range(1, 13)]
    assert world.run(40, lambda: world.one_cluster(*names))
    world.run(3)
    at = world.seconds
    world.leave("n5")
    names.remove("n5")
    assert world.run(10, lambda: world.one_cluster(*names))
    assert world.seconds - at < 4.5


def test_the_same_seed_gives_the_same_trace() -> None:
    def run(seed: int) -> list[str]:
        world = five(seed, loss=0.1, duplicate=0.1)
        world.crash("n2")
        world.run(6)
        world.start("n2")
        world.run(5)
        return world.trace

    assert run(1) == run(1)
    assert run(1) != run(2)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 2), min_size=5, max_size=5))
def test_of_the_parts_of_a_split_only_a_majority_goes_on(seed: int, parts: list[int]) -> None:
    world = World(seed, loss=0.05)
    world.start_all(5)
    assert world.run(20, lambda: world.one_cluster(*FIVE))
    world.run(world.rng.random() * 4)
    sides = [{n for n, part in zip(FIVE, parts, strict=True) if part == p} for p in range(3)]
    world.partition(*sides)
    world.run(20)
    majority = next((s for s in sides if len(s) >= 3), set())
    assert set(world.processes) == majority
    assert not majority or world.one_cluster(*majority)


@settings(max_examples=int(os.environ.get("MEMBERSHIP_EXAMPLES", "15")), deadline=None)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(["cut", "heal", "crash", "start", "pause", "wait"]), max_size=8))
def test_whatever_happened_restarts_and_whole_links_make_one_cluster(seed: int, faults: list[str]) -> None:
    """Liveness: with the network whole and a supervisor that starts what exits, one cluster within bounds."""
    world = World(seed, loss=0.1, duplicate=0.05)
    world.start_all(5)
    world.run(3)
    for fault in faults:
        name = world.rng.choice(FIVE)
        match fault:
            case "cut":
                side = set(world.rng.sample(FIVE, world.rng.randrange(1, 5)))
                world.partition(side, set(FIVE) - side)
            case "heal":
                world.heal()
            case "crash" if name in world.processes:
                world.crash(name)
            case "start" if name not in world.processes:
                world.start(name, existed=True)
            case "pause" if name in world.processes:
                world.pause(name)
            case _:
                pass
        world.run(world.rng.random() * 6)
    world.heal()
    world.loss = 0.02
    for name in FIVE:
        if name in world.processes and world.processes[name].paused:
            world.resume(name)

    def supervised() -> bool:
        for name in FIVE:
            if name not in world.processes:
                world.start(name, existed=True)
        return world.one_cluster(*FIVE)

    assert world.run(90, supervised), [
        (n, p.machine.phase, p.machine.why_not_joined, p.machine.view) for n, p in world.processes.items()
    ]


def test_a_seed_elsewhere_is_asked_by_its_own_address() -> None:
    world = World(seeds=("n1",))
    world.start("n1")
    world.start("n7", seeds=(Seed("n1", "127.0.0.1:9999"),))
    world.run(5)
    assert "n1 (127.0.0.1:9999) does not answer" in world.processes["n7"].machine.why_not_joined


def test_the_largest_state_fits_one_control_frame() -> None:
    count = limits.member_names_max
    everybody = [
        msgspec.structs.replace(
            member(f"n{i}", 1_764_000_000_000),
            admin="192.168.100.100:65535", http="192.168.100.100:65535", app_version="0.1.0",
            status=Status.UP if i < limits.members_max else Status.REMOVED,
            cause="" if i < limits.members_max else "left",
        )
        for i in range(count)
    ]  # fmt: skip
    living = [m.id for m in everybody[: limits.members_max]]
    rows = tuple(Row(living[i], living[(i + 1) % len(living)], True, 9) for i in range(len(living)))
    message = StateMessage("n1@1764000000000/0123456789abcdef", "c1", tuple(everybody), rows, 9, tuple(living), True)
    envelope = Envelope(Kind.TELL, ServiceRef("n2", "/membership"), living[0], message)
    assert len(encode(envelope, CODEC, 0)) < limits.frame_control_bytes_max
