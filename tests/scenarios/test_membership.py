"""Who is in, who is out, and what everybody is told about it: joins, losses, restarts, leaders, drains."""

from __future__ import annotations

import itertools
from dataclasses import replace

import msgspec
from seeds import seeds

from node.engine.events import NodeEvent
from node.gossip import events as gossip
from node.gossip.member import Status
from node.gossip.settings import FAST
from node.sim.conditions import (
    converged,
    exited,
    incarnation,
    joined,
    listed,
    removed,
    status,
    suspected,
    unreachable,
    up,
)
from node.sim.story import Condition, Story, story

TOLD = {status.word for status in Status} | {"joined", "unreachable", "reachable"}
FIVE = ("n1", "n2", "n3", "n4", "n5")


def says_why(name: str, *words: str) -> Condition:
    """A node that runs says why it has not joined, in words that contain all of these."""

    def condition(s: Story) -> str:
        why = next((e.membership.why_not_joined for e in s.running() if e.me.name == name), "")
        return "" if all(word in why for word in words) else f"{name} says {why!r}, not {words}"

    return condition


def led_by(name: str) -> Condition:
    def condition(s: Story) -> str:
        leaders = {e.me.name: e.view.leader for e in s.running() if e.view.joined}
        return "" if set(leaders.values()) == {name} else f"leaders: {leaders}"

    return condition


def told(s: Story, by: str, about: str) -> list[NodeEvent]:
    """What a node's events say of another, in order."""
    return [e for e in s.engine(by).events.kept if e.object == f"node/{about}" and e.node == by]


def topics(events: list[NodeEvent]) -> list[str]:
    return [e.topic.removeprefix("node.") for e in events if e.topic.startswith("node.")]


# ---- joining


@seeds(2)
def test_p02_weakly_up_while_two_are_silent(seed: int) -> None:
    """It takes part as soon as waiting longer would help nobody, owns nothing and counts for nothing until it is up."""
    with story(nodes=5, seed=seed, profile="default") as s:
        s.until(converged())
        s.stop("n4", "n5")
        s.add("n6", roles=("api",))
        s.start("n6")
        s.until(status("n6", Status.WEAKLY_UP, seen_by=("n1", "n2", "n3", "n6")), within_s=10)
        service = s.host("n6").process
        assert service is not None
        s.until(lambda _: "; ".join(service.service.why_not_ready()) if service.service else "starts", within_s=2)
        assert not s.engine("n6").sharding.region.running()
        assert "n6" not in {m.node for m in s.engine("n1").view.up()}
        s.thaw("n4", "n5")
        s.until(up("n6", *FIVE), within_s=5)


@seeds(1)
def test_p03_churn_leaves_nothing_behind(seed: int) -> None:
    def sizes(s: Story) -> list[int]:
        engine = s.engine("n1")
        state = engine.membership.state
        records = len(msgspec.json.encode((state.sorted_members(), state.sorted_rows())))
        return [records, len(state.members), len(state.rows), len(engine.membership.late.peers)]

    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        found = []
        for _ in range(20):
            s.drain("n4", "n5")
            s.until(exited("n4", "left"), exited("n5", "left"), removed("n4"), removed("n5"))
            s.start("n4", "n5")
            s.until(converged())
            found.append(sizes(s))
        assert all(abs(after - before) <= before * 0.05 for before, after in zip(found[0], found[-1], strict=True))


@seeds(2)
def test_p04_a_restart_replaces_the_old_incarnation_at_once(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        with s.never(suspected("n1", "n2", "n4", "n5")):
            for number in range(2, 12):
                s.kill("n3")
                s.start("n3")
                s.until(incarnation("n3", number), up("n3"), within_s=5)


@seeds(2)
def test_p05_the_first_seed_restarts_and_joins_the_living_cluster(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        formation = s.engine("n2").view.formation
        s.kill("n1")
        s.run(s.rng.choice((0.1, 3, 12)))
        s.start("n1")
        s.until(converged(), incarnation("n1", 2))
        assert {e.view.formation for e in s.running()} == {formation}
        assert len({(e.view.cluster_id, e.view.leader) for e in s.running()}) == 1
        assert s.coordinator()


@seeds(2)
def test_p06_the_second_seed_alone_waits_and_says_for_whom(seed: int) -> None:
    with story(nodes=2, seed=seed) as s:
        s.until(converged())
        known = s.engine("n1").config.cluster.id
        s.kill("n1", "n2")
        s.start("n2")
        s.run(20)
        s.until(says_why("n2", "n1 (n1:7001) does not answer", "only the first seed, n1,"), listed("E-NOT-JOINED"))
        service = s.host("n2").process
        assert service is not None
        assert service.service is not None
        assert service.service.why_not_ready()[0].startswith("not joined: n1 (n1:7001)")
        s.start("n1")
        s.until(up("n1", "n2"), within_s=10)
        assert s.engine("n1").config.cluster.id == s.engine("n2").config.cluster.id == known


@seeds(2)
def test_p12_killed_as_soon_as_it_joins(seed: int) -> None:
    with story(nodes=4, seed=seed) as s:
        s.until(converged())
        s.add("n5")
        s.start("n5")
        s.until(lambda _: "" if "n5" in s.engine("n1").view.members else "n5 is unknown")
        s.run(s.rng.uniform(0, 0.3))
        s.kill("n5")
        s.until(removed("n5"), within_s=s.bound_s)


MUST_AGREE = [
    ("split_brain.strategy", "keep-oldest"),
    ("split_brain.quorum", "3"),
    ("split_brain.role", "api"),
    ("split_brain.stable_after_ms", "9000"),
    ("heartbeat_ms", "1000"),
    ("shard_count", "128"),
    ("hash_version", "2"),
    ("map_count", "64"),
    ("tombstone_min_age_ms", "1"),
    ("protocol", "0"),
]


@seeds(1)
def test_p16_what_must_agree_is_compared_and_named_on_both_sides(seed: int) -> None:
    with story(nodes=2, seed=seed) as s:
        s.until(converged())
        agreed = s.engine("n1").config.cluster.agreed
        members = set(s.engine("n1").view.members)
        s.add("n3")
        for key, value in MUST_AGREE:
            assert agreed[key] != value
            s.setup("n3", agreed={key: value})
            s.start("n3")
            s.until(exited("n3", f"refuses this node: {key} is {value!r} here and {agreed[key]!r} there"), within_s=5)
            assert set(s.engine("n1").view.members) == members
            turned = [e.text for e in told(s, "n1", "n3") if e.topic == "node.turned_away"]
            assert turned[-1] == f"{key} is {value!r} there and {agreed[key]!r} here"
        s.setup("n3", agreed=dict(reversed(agreed.items())))
        s.start("n3")
        s.until(up("n3"), within_s=5)


@seeds(1)
def test_p17_n18_it_asks_for_ever_and_joins_when_a_seed_appears(seed: int) -> None:
    with story(nodes=3, seed=seed, start=False) as s:
        s.start("n3")
        s.run(600)
        s.until(says_why("n3", "n1 (n1:7001) does not answer", "n2 (n2:7001) does not answer"))
        s.start("n1", "n2")
        s.until(joined("n1", "n2", "n3"), within_s=5)


@seeds(5)
def test_p22_started_in_one_instant_all_agree_who_is_oldest(seed: int) -> None:
    with story(nodes=4, seed=seed) as s:
        s.until(converged())
        orders = {tuple((m.node, m.up_number) for m in e.view.up()) for e in s.running()}
        assert len(orders) == 1
        oldest = s.engine("n1").view.oldest("singleton")
        assert oldest is not None
        assert s.coordinator() == oldest.node


# ---- losses


@seeds(2)
def test_p08_who_was_removed_is_told_when_by_which_decision_and_who_goes_on(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        load = s.load(asks_per_s=50, entities=20)
        s.run(1)
        s.stop("n3")
        s.until(removed("n3", seen_by=("n1", "n2", "n4", "n5")), within_s=s.bound_s)
        (decision,) = (d for e in s.running() for d in e.members.decisions.newest(5))
        s.run(10)
        s.thaw("n3")
        s.until(exited("n3", f"by decision {decision.id}"), within_s=5)
        last = s.host("n3").exits[-1]
        assert "removed at 20" in last
        assert last.endswith(" go on")
        assert {name.strip() for name in last.rpartition(";")[2].removesuffix(" go on").split(",")} == {*FIVE} - {"n3"}
        s.start("n3")
        s.until(incarnation("n3", 2), converged())
        s.end(load)


@seeds(2)
def test_p09_a_pair_that_is_cut_for_a_moment_costs_nobody(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        placed = {shard: s.owner(shard) for shard in range(0, 256, 4)}
        a, b = s.rng.sample(FIVE, 2)
        s.cut(a, away_from=(b,))
        with s.never(suspected()):
            s.run(3)
            pairs = {frozenset(n.name for n in pair) for e in s.running() for pair in e.view.indirect}
            assert pairs == {frozenset((a, b))}
            s.heal()
            s.until(lambda _: "pairs" if any(e.view.indirect for e in s.running()) else "", within_s=3)
            s.run(10)
        assert placed == {shard: s.owner(shard) for shard in range(0, 256, 4)}
        assert all(incarnation(name, 1)(s) == "" for name in FIVE)


@seeds(2)
def test_p10_one_against_four_for_less_than_it_takes_to_decide(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        placed = {shard: s.owner(shard) for shard in range(0, 256, 4)}
        s.cut("n5")
        s.until(unreachable("n5", seen_by=FIVE[:4]), unreachable("n1", seen_by=("n5",)), within_s=3)
        assert set(s.engine("n5").view.unreachable) == set(FIVE[:4])
        s.run(0.5)
        s.heal()
        s.until(converged(), within_s=5)
        assert placed == {shard: s.owner(shard) for shard in range(0, 256, 4)}
        assert all(incarnation(name, 1)(s) == "" for name in FIVE)


@seeds(2)
def test_p15_short_pauses_are_nothing_and_long_ones_are_seen_in_time(seed: int) -> None:
    patient = replace(FAST, stable_after_ns=60_000_000_000)
    pause_s = patient.acceptable_pause_ns / 1e9
    with story(nodes=3, seed=seed, start=False) as s:
        for name in ("n1", "n2", "n3"):
            s.setup(name, membership=patient)
        s.start("n1", "n2", "n3")
        s.until(converged())
        with s.never(suspected()):
            for _ in range(20):
                s.stop("n3")
                s.run(pause_s / 2)
                s.thaw("n3")
                s.run(s.rng.uniform(0.5, 1.5))

        def noticed_after() -> float:
            s.stop("n3")
            at = s.now_s
            s.until(unreachable("n3"), within_s=pause_s + 2)
            noticed = s.now_s - at
            s.run(pause_s + 5 - noticed)
            s.thaw("n3")
            with s.never(suspected("n1", "n2")):
                s.until(lambda _: "n3 is suspected" if not suspected("n3")(s) else "", within_s=2)
            s.run(5)
            return noticed

        first, second = noticed_after(), noticed_after()
        assert pause_s <= first
        assert second <= first * 1.1 + 2 * patient.heartbeat_ns / 1e9
        assert s.engine("n3").membership.counters["self_late"] >= 2


@seeds(1)
def test_a_node_that_runs_late_says_so_and_the_others_know(seed: int) -> None:
    """What is seen as a failing node may be only a busy one, and it is told by the node itself."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        s.stop("n2")
        s.run(1)
        s.thaw("n2")
        s.until(*(listed("E-NODE-LATE", "n2", at=(name,)) for name in ("n1", "n2", "n3")), within_s=1)
        s.run(8)
        with s.never(*(listed("E-NODE-LATE", at=(name,)) for name in ("n1", "n2", "n3"))):
            s.run(1)


@seeds(1)
def test_a_leader_that_cannot_act_says_who_keeps_it_from_that(seed: int) -> None:
    """M3, M4: nobody has to guess why a joiner is not let in."""
    patient = replace(FAST, stable_after_ns=60_000_000_000, weakly_up_after_ns=60_000_000_000)
    with story(nodes=3, seed=seed, start=False) as s:
        for name in ("n1", "n2", "n3"):
            s.setup(name, membership=patient)
        s.start("n1", "n2", "n3")
        s.until(converged())
        s.stop("n2")
        s.add("n4")
        s.start("n4")
        s.run(4)
        with s.never(listed("E-LEADER-BLOCKED")):
            s.run(0.5)
        s.until(listed("E-LEADER-BLOCKED", at=("n1",)), within_s=4)
        (fault,) = (f for f in s.engine("n1").faults.all() if f.code == "E-LEADER-BLOCKED")
        assert fault.message == "for 5 s and more n4 could not be moved on: no agreement with n2"
        s.thaw("n2")
        s.until(up("n4"), within_s=5)
        s.until(lambda _: "" if listed("E-LEADER-BLOCKED")(s) else "still said", within_s=2)


@seeds(2)
def test_t1_t2_a_clock_that_is_ahead_is_known_to_its_own_node(seed: int) -> None:
    """One that is behind troubles nobody; neither moves a member."""
    hour_ms = 3_600_000
    ahead = [listed("E-CLOCK-AHEAD", f"node/{name}", at=(name,)) for name in ("n1", "n2", "n3")]
    with story(nodes=3, seed=seed) as s, s.never(suspected()):
        s.until(converged())
        s.step_clock("n2", hour_ms)
        s.until(ahead[1], within_s=2)
        with s.never(ahead[0], ahead[2]):
            s.run(3)
        s.step_clock("n2", -hour_ms)
        s.until(lambda _: "" if ahead[1](s) else "n2 is still said to be ahead", within_s=2)
        s.step_clock("n2", -hour_ms)
        with s.never(*ahead):
            s.run(5)
        s.step_clock("n2", hour_ms)
        s.until(converged())


# ---- leaders, leaving


@seeds(2)
def test_p18_the_next_leader_is_the_same_for_all(seed: int) -> None:
    with story(nodes=4, seed=seed) as s:
        s.until(converged(), led_by("n1"))
        s.kill("n1")
        s.until(unreachable("n1"), within_s=s.bound_s)
        s.until(led_by("n2"), within_s=1)


@seeds(2)
def test_p19_the_leader_leaves(seed: int) -> None:
    with story(nodes=4, seed=seed) as s:
        s.until(converged(), led_by("n1"))
        s.drain("n1")
        s.until(exited("n1", "left"), removed("n1"), led_by("n2"), within_s=20)
        s.until(converged())
        assert all(m.status is Status.UP for e in s.running() for m in e.view.members.values())


@seeds(2)
def test_p20_p23_every_transition_is_told_once_and_in_order(seed: int) -> None:
    with story(nodes=4, seed=seed) as s:
        s.until(converged())
        s.add("n5", roles=("api",))
        s.start("n5")
        s.until(up("n5"))
        s.stop("n5")
        s.until(unreachable("n5"))
        s.thaw("n5")
        s.until(lambda _: "n5 is unreachable" if not suspected("n5")(s) else "")
        s.run(1)
        at = s.now_s
        s.drain("n5")
        s.until(exited("n5", "left"), removed("n5"), within_s=5)
        assert s.now_s - at <= 5
        for name in ("n1", "n2", "n3", "n4"):
            events = told(s, name, "n5")
            kept = [topic for topic in topics(events) if topic in TOLD]
            assert kept == ["joined", "up", "unreachable", "reachable", "leaving", "exiting", "removed"], kept
            assert "was leaving" in next(e.text for e in events if e.topic == "node.exiting")
            assert all(e.at_ms > 0 for e in events)


@seeds(3)
def test_p24_m14_an_operator_downs_a_node_and_again_and_one_that_is_not_there(seed: int) -> None:
    """The machine's part of it: the record names who did it and when, and a repetition changes nothing."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        s.kill("n3")
        s.engine("n1").members.step(gossip.Down("n3", "ann"))
        s.until(removed("n3"), within_s=3)
        assert any(" by ann" in e.text for e in told(s, "n2", "n3"))
        before = s.engine("n1").view.digest
        s.engine("n1").members.step(gossip.Down("n3", "ann"))
        s.engine("n1").members.step(gossip.Down("n9", "ann"))
        assert s.engine("n1").view.digest == before


# ---- what other systems were caught by


@seeds(2)
def test_s04_left_and_back_at_once(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        leaving = s.rng.sample(FIVE, 3)
        s.drain(*leaving)
        back: set[str] = set()

        def all_back(_: Story) -> str:
            for name in leaving:
                if name not in back and s.host(name).process is None:
                    back.add(name)
                    s.start(name)
            return "" if len(back) == 3 else f"{set(leaving) - back} still leave"

        s.until(all_back, within_s=60)
        s.until(converged(), within_s=30)
        for a, b in itertools.product(FIVE, FIVE):
            member = s.engine(a).view.member(b)
            assert member is not None
            assert member.status is Status.UP
