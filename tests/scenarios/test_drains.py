"""Draining and stopping, told as stories: who wants a node drained, what it hands over, what stands in its way."""

from __future__ import annotations

from functools import partial

import pytest
from drain_orders import (
    cancelled,
    coordinators,
    edge,
    name_of_drain,
    one_coordinates,
    over,
    shown,
    told_to_drain,
    two_coordinate,
)
from seeds import seeds

from node.core.clock import MS
from node.core.hashing import SHARD_COUNT
from node.core.ids import EntityRef
from node.engine.drain import ALL
from node.flows.messages import (
    BeginDrain,
    OperationStatus,
    StartOperation,
)
from node.flows.state import OperationState
from node.gossip.member import Status
from node.sim.conditions import answered, converged, empty_of_shards, exited, removed, unreachable, up
from node.sim.history import Outcome
from node.sim.story import Condition, Story, story
from node.store.port import ListStates, StatePage
from node.wire.codec import CODEC

MOVES_LIMIT_S = 20
SLOW_STORE_US = 30_000  # moves take seconds, so that something can happen meanwhile


# ---- P59 to P65


@seeds(2)
def test_p59_a_drain_is_an_operation_that_ends_well(seed: int) -> None:
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        load = s.load(asks_per_s=200, entities=100)
        held = s.engine("n2").sharding.region.held()
        operation = told_to_drain(s, "n2", at="n1")
        found = over(s, operation)
        assert (found.state, found.result) == ("done", {"shards_moved": held, "messages_lost": 0})
        assert [p.state for p in found.phases] == ["done"] * 9
        s.until(exited("n2", "left"), removed("n2"))
        s.end(load)
        assert load.slowest_ms() <= 1_000
        assert not load.outcomes(Outcome.UNKNOWN)


@seeds(2)
def test_p60_an_empty_node_is_gone_within_five_seconds(seed: int) -> None:
    with story(nodes=3, seed=seed) as s:
        s.add("n4", roles=("api",))
        s.start("n4")
        s.until(converged(), up("n4"))
        operation = told_to_drain(s, "n4")
        s.until(removed("n4"), exited("n4", "left"), within_s=5)
        assert over(s, operation).state == "done"


@seeds(2)
def test_p61_an_entity_that_can_not_be_flushed_is_named_and_left_behind(seed: int) -> None:
    with story(nodes=3, seed=seed) as s:
        s.setup("n2", drain_deadline_ms=10_000)
        s.kill("n2")
        s.until(removed("n2"))
        s.start("n2")
        s.until(converged())
        mine = next(f"e{n}" for n in range(100) if s.owner(f"e{n}") == "n2")
        kept = s.add_to(mine)
        s.until(answered(kept))
        s.host("n2").process.applied_ns += 9_000 * MS  # type: ignore[union-attr]  # its store takes so long from now on
        slow = s.add_to(mine, at="n2")
        s.run(0.1)
        elsewhere = next(f"op-{n}" for n in range(100) if s.owner(f"op-{n}") == "n1")
        operation = told_to_drain(s, "n2", at="n1", name=elsewhere)
        found = over(s, operation, within_s=60)
        assert found.state == "failed"
        behind = [p for p in found.phases if p.state == "overran"]
        assert behind
        assert (behind[0].name, behind[0].blockers[0].partition(",")[0]) == (
            "shards",
            f"entity/probe/{mine}: a write is under way",
        )
        assert found.phases[-1].state == "done", "the phases after it ran"
        s.until(exited("n2"), removed("n2"))
        s.until(answered(slow), converged("n1", "n3"), within_s=60)
        assert s.read(mine).applied.keys() >= {"k1"}


@seeds(2)
def test_the_only_node_that_may_coordinate_hands_its_shards_over_before_it_goes(seed: int) -> None:
    """Nobody else could do it for it: until it leaves, it goes on (seed 2649)."""
    with story(nodes=1, seed=seed) as s:
        for name in ("n2", "n3"):
            s.add(name, roles=("api", "entity"))
            s.start(name)
        s.until(converged(), up("n2", "n3"))
        load = s.load(asks_per_s=200, entities=100, at=("n2", "n3"))
        held = s.engine("n1").sharding.region.held()
        operation = told_to_drain(s, "n1")
        s.until(exited("n1", "left"))
        found = over(s, operation)
        assert (found.state, found.result) == ("done", {"shards_moved": held, "messages_lost": 0})
        s.end(load)
        assert not load.outcomes(Outcome.UNKNOWN)
        s.start("n1")
        s.until(converged())


def stepped_down(name: str, s: Story) -> str:
    return f"{name} coordinates" if name in coordinators(s) else ""


@seeds(2)
def test_p62_the_oldest_leaves_three_times_and_one_coordinates_at_a_time(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())

        with s.never(two_coordinate):
            for _ in range(3):
                oldest = s.coordinator()
                term = s.engine(oldest).sharding.coordinator.status().term
                s.drain(oldest)
                s.until(partial(stepped_down, oldest))
                s.until(one_coordinates, within_s=2)
                assert s.engine(s.coordinator()).sharding.coordinator.status().term == term + 1
                s.until(exited(oldest, "left"), removed(oldest))


@seeds(3)
def test_p63_signal_and_operator_start_one_operation(seed: int) -> None:
    with story(nodes=3, seed=seed, store_us=SLOW_STORE_US) as s:
        s.until(converged())
        s.drain("n2")
        s.run(s.rng.random() * 0.05)
        operation = told_to_drain(s, "n2", at="n1")
        s.drain("n2")
        assert s.engine("n2").drain.operation == operation
        found = over(s, operation)
        assert (found.state, found.result["messages_lost"]) == ("done", 0)
        s.until(removed("n2"))
        drains = [r for r in states(s) if r.verb == "drain"]
        assert [r.id for r in drains] == [operation]


def states(s: Story) -> list[OperationStatus]:
    """All operations that the store holds."""
    page = s.world.store.now(ListStates(("operation",), limit=100, bodies=True))
    assert isinstance(page, StatePage)
    found = [CODEC.decode_record(record.body) for record in page.records]
    return [state.status for state in found if isinstance(state, OperationState)]


@seeds(3)
def test_p65_nothing_is_placed_on_a_node_whose_drain_has_begun(seed: int) -> None:
    with story(nodes=3, seed=seed, store_us=SLOW_STORE_US) as s:
        s.until(converged())
        s.drain("n2")  # so that shards are on their way to n3 when that begins, too
        s.run(0.3 + s.rng.random())
        s.drain("n3")
        s.run(0.1)  # for the news to arrive
        target = s.engine("n3")
        most = target.sharding.region.held()

        def grew(s: Story) -> str:
            nonlocal most
            held, before = target.sharding.region.held(), most
            most = held
            return "" if held > before else f"holds {held}"

        with s.never(grew):
            s.until(exited("n2", "left"), exited("n3", "left"), within_s=MOVES_LIMIT_S * 2)
        s.until(converged("n1"))
        assert s.engine("n1").sharding.region.held() == SHARD_COUNT


# ---- S04, S07, O2, signals


def otherwise_than_up(seconds: float) -> Condition:
    """Somebody holds somebody to be in one and the same status, which is not up, for so long."""
    since: dict[tuple[str, str, Status], float] = {}

    def condition(s: Story) -> str:
        seen = {
            (engine.me.name, str(member.id), member.status)
            for engine in s.running()
            for member in engine.view.members.values()
            if member.status is not Status.UP
        }
        for key in since.keys() - seen:
            del since[key]
        late = [key for key in sorted(seen) if s.now_s - since.setdefault(key, s.now_s) > seconds]
        return "" if late else "nobody is"

    return condition


@seeds(2)
def test_s04_nodes_that_drain_and_start_again_at_once_are_up_and_nobody_is_stuck(seed: int) -> None:
    """S04: `node drain --wait` on three at once, each started again within 100 ms of its end: every drain ends well,
    and in nobody's view is anybody anything else than up for longer than 30 s."""
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        drains = [told_to_drain(s, name, at="n1") for name in ("n2", "n3", "n4")]

        def back(s: Story) -> str:
            for name in ("n2", "n3", "n4"):
                if s.host(name).process is None:
                    s.run(0)
                    s.start(name)
            started = {name: s.host(name).starts for name in ("n2", "n3", "n4")}
            return "" if min(started.values()) == 2 else f"starts: {started}"

        with s.never(otherwise_than_up(30 + MOVES_LIMIT_S)):
            s.until(back, within_s=MOVES_LIMIT_S * 2)
        with s.never(otherwise_than_up(30)):
            s.until(converged(), up("n1", "n2", "n3", "n4", "n5"), within_s=30)
            s.run(31)
        assert [over(s, drain).state for drain in drains] == ["done"] * 3
        for engine in s.running():
            assert {m.status for m in engine.view.members.values()} == {Status.UP}


@seeds(2)
def test_s07_two_drains_at_one_moment_both_end_well(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        load = s.load(asks_per_s=100, notes_per_s=30, entities=60)
        s.run(2)
        both = [told_to_drain(s, "n2", at="n1"), told_to_drain(s, "n4", at="n1")]
        for operation in both:
            found = over(s, operation, within_s=MOVES_LIMIT_S * 2)
            assert (found.state, found.result["messages_lost"]) == ("done", 0), found
        s.end(load)
        s.until(converged("n1", "n3", "n5"))
        assert not load.outcomes(Outcome.UNKNOWN)


@seeds(2)
def test_o2_a_drain_of_a_node_that_is_cut_off_waits_and_says_why(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        name = name_of_drain(s, "n4")
        incarnation = s.engine("n4").me.incarnation
        s.cut("n4")
        s.until(unreachable("n4", seen_by=("n1",)))
        begun = s.ask(EntityRef("operation", name), StartOperation("drain", "n4", incarnation), at="n1")
        s.until(answered(begun))
        if not isinstance(begun.outcome, OperationStatus):
            return  # its shard is on the far side: nothing was begun, and who asked was told so
        s.run(0.5)
        waiting = shown(s, name, at="n1")
        assert (waiting.state, waiting.phases[0].name) == ("running", "reach")
        assert "n4" in waiting.phases[0].blockers[0]
        s.heal()
        found = over(s, name)
        assert found.state in ("done", "failed")
        assert found.state == "done" or found.result["cause"], "it was drained when it was back, or put out before"


@seeds(2)
def test_a_second_signal_ends_a_node_at_once_and_the_others_take_over(seed: int) -> None:
    with story(nodes=3, seed=seed, store_us=SLOW_STORE_US) as s:
        s.until(converged())
        load = s.load(asks_per_s=100, entities=50)
        s.run(1)
        s.drain("n2")
        s.run(0.2 + s.rng.random() * 0.3)
        before_s = s.now_s
        s.engine("n2").drain.hurry()
        operation = s.engine("n2").drain.operation
        s.until(exited("n2"), within_s=5)
        assert s.now_s - before_s <= 5
        found = over(s, operation)
        assert (found.state, {p.state for p in found.phases}) == ("failed", {"done", "skipped"})
        s.until(converged("n1", "n3"))
        s.end(load)


@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.3, 1.0])
def test_a_node_told_to_stop_while_it_joins_is_gone_and_forgotten(after_s: float) -> None:
    with story(nodes=3, seed=7) as s:
        s.until(converged())
        s.add("n4")
        s.start("n4")
        s.until(lambda s: "" if s.host("n4").process and s.host("n4").process.engine else "boots")  # type: ignore[union-attr]
        s.run(after_s)
        s.drain("n4")
        s.until(exited("n4"), within_s=MOVES_LIMIT_S)
        s.until(removed("n4"), converged("n1", "n2", "n3"), within_s=10)
        assert "E-NODE-UNREACHABLE" not in {f.code for e in s.running() for f in e.faults.all()}


# ---- cancelling


@seeds(3)
def test_a_cancelled_drain_leaves_a_node_that_takes_part_as_before(seed: int) -> None:
    with story(nodes=3, seed=seed, store_us=SLOW_STORE_US) as s:
        s.until(converged())
        coordinator = s.coordinator()
        load = s.load(asks_per_s=100, entities=50)
        operation = told_to_drain(s, coordinator)
        s.until(lambda s: "" if s.engine(coordinator).sharding.region.held() < 80 else "nothing has moved")
        found = cancelled(s, operation).outcome
        assert isinstance(found, OperationStatus)
        assert found.state == "cancelled"
        assert found.result["shards_moved"] > 0
        s.until(converged())
        assert s.engine(coordinator).drain.accepts_work
        assert s.coordinator() == coordinator, "the oldest one coordinates again"
        s.end(load)
        assert shown(s, operation).state == "cancelled"
        again = told_to_drain(s, coordinator)
        assert again != operation
        assert over(s, again).state == "done"


def test_a_drain_that_a_signal_began_can_not_be_cancelled() -> None:
    with story(nodes=3, seed=1) as s:
        s.until(converged())
        s.engine("n2").drain.begin(moves=True, reason="a signal", final=True)
        operation = s.engine("n2").drain.operation
        s.until(lambda s: "" if operation in {o.id for o in states(s)} else "not on record yet")
        refused = cancelled(s, operation).outcome
        assert "would end it anyway" in refused.detail
        assert over(s, operation).state == "done"


def test_the_shards_of_a_drained_node_go_to_the_newest_version_first() -> None:
    with story(nodes=4, seed=2) as s:
        s.setup("n3", version="2")
        s.kill("n3")
        s.until(removed("n3"))
        s.start("n3")
        s.until(converged())
        others = {name: s.engine(name).sharding.region.held() for name in ("n1", "n4")}
        told_to_drain(s, "n2")
        s.until(exited("n2", "left"), empty_of_shards("n2"))
        assert {name: s.engine(name).sharding.region.held() for name in ("n1", "n4")} == others


def test_an_order_for_an_earlier_life_of_a_node_drains_nobody() -> None:
    with story(nodes=3, seed=3) as s:
        s.until(converged())
        earlier = s.engine("n2").me.incarnation - 1
        s.tell(told := EntityRef("operation", "op-x"), StartOperation("drain", "n2", earlier))
        s.run(2)
        assert not s.engine("n2").drain.active
        assert shown(s, told.id).state == "failed"
        s.call("n2", BeginDrain("op-x", earlier))
        s.run(1)
        assert not s.engine("n2").drain.active


# ---- P3


@pytest.mark.parametrize(
    ("number", "coordinator_dies"), [*((n, False) for n in range(1, 10)), (1, True), (4, True), (8, True)]
)
def test_p3_a_node_killed_at_a_phase_leaves_an_operation_that_says_at_which(
    number: int, coordinator_dies: bool
) -> None:
    step = ALL[number - 1]
    with story(nodes=5, seed=number, store_us=2_000) as s:
        s.until(converged())
        load = s.load(asks_per_s=100, entities=60)
        s.run(1)
        s.dies_at("n4", f"drain.{step}")
        operation = told_to_drain(s, "n4")
        s.until(lambda s: "" if s.host("n4").process is None else "it goes on", within_s=20)
        if coordinator_dies:
            s.kill(s.coordinator())
        found = over(s, operation, within_s=40)
        assert (found.state, found.result["interrupted_at"], found.result["phase"]) == ("failed", step.value, number)
        assert [p.state for p in found.phases[: number - 1]] == ["done"] * (number - 1)
        assert found.phases[number - 1].state == "interrupted"
        s.until(converged(*(e.me.name for e in s.running())), within_s=60)
        s.end(load)
        acknowledged = {op.key for op in load.outcomes(Outcome.OK)}
        for entity in {of for of, _ in acknowledged}:
            assert {key for of, key in acknowledged if of == entity} <= s.read(entity, at=edge(s)).applied.keys()
