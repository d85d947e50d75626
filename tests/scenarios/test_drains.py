"""Draining and stopping, told as stories: who wants a node drained, what it hands over, what stands in its way."""

from __future__ import annotations

from functools import partial

import pytest
from seeds import seeds

from node.core.clock import MS
from node.core.hashing import SHARD_COUNT
from node.core.ids import EntityRef
from node.core.limits import freeze_ms_max, roll_return_ms_max
from node.engine.drain import ALL
from node.engine.messages import Freeze
from node.flows.messages import (
    BeginDrain,
    CancelOperation,
    DrainName,
    GetDrainName,
    GetOperation,
    OperationStatus,
    StartOperation,
)
from node.flows.state import OperationState
from node.gossip.member import Status
from node.sim.conditions import answered, converged, empty_of_shards, exited, removed, unreachable, up
from node.sim.history import Outcome
from node.sim.load import Pending
from node.sim.story import Condition, Story, story
from node.store.port import ListStates, Placement, ReadPlacement, StatePage
from node.wire.codec import CODEC

MOVES_LIMIT_S = 20
SLOW_STORE_US = 30_000  # moves take seconds, so that something can happen meanwhile


# ---- what an operator does


def name_of_drain(s: Story, node: str) -> str:
    pending = s.call(node, GetDrainName(), at=edge(s))
    s.until(answered(pending))
    assert isinstance(pending.outcome, DrainName)
    return pending.outcome.operation


def told_to_drain(s: Story, node: str, *, at: str = "", name: str = "") -> str:
    """`node drain --yes --detach`, with what the admin server does for it; the operation's id."""
    name = name or name_of_drain(s, node)
    incarnation = s.engine(node).me.incarnation
    begun = s.ask(EntityRef("operation", name), StartOperation("drain", node, incarnation), at=at or edge(s))
    s.until(answered(begun))
    assert isinstance(begun.outcome, OperationStatus), begun.outcome
    return name


def edge(s: Story) -> str:
    """A node that takes requests."""
    return next(e.me.name for e in s.running() if e.view.joined and e.drain.accepts_work)


def shown(s: Story, operation: str, *, at: str = "") -> OperationStatus:
    """`op show`: asked again while its entity is on its way to another node, as the edge does."""
    for _ in range(20):
        pending = s.ask(EntityRef("operation", operation), GetOperation(), at=at or edge(s))
        s.until(answered(pending))
        if isinstance(pending.outcome, OperationStatus):
            return pending.outcome
        s.run(0.2)
    raise AssertionError(f"{operation} is not shown: {pending.outcome}")


def over(s: Story, operation: str, *, within_s: float = 30) -> OperationStatus:
    """`op wait`."""
    until_s = s.now_s + within_s
    while (found := shown(s, operation)).state == "running":
        assert s.now_s < until_s, f"not over: {found}"
        s.run(0.2)
    return found


def cancelled(s: Story, operation: str) -> Pending:
    pending = s.ask(EntityRef("operation", operation), CancelOperation(), at=edge(s))
    s.until(answered(pending))
    return pending


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


def coordinators(s: Story) -> list[str]:
    return [e.me.name for e in s.running() if e.sharding.coordinator.status().active]


def two_coordinate(s: Story) -> str:
    return "" if len(coordinators(s)) > 1 else f"active: {coordinators(s)}"


def one_coordinates(s: Story) -> str:
    return "" if len(coordinators(s)) == 1 else f"active: {coordinators(s)}"


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


# ---- P64, P66, P68: everybody stops, everybody restarts


def owners(s: Story) -> dict[int, tuple[str, int]]:
    """Of each shard, as the store has it: the node's name and the epoch."""
    placement = s.world.store.now(ReadPlacement())
    assert isinstance(placement, Placement)
    return {row.shard: (row.node, row.epoch) for row in placement.rows}


def stopped_as_by_down(s: Story) -> None:
    """`down`: first nothing may be moved, then everybody gets a signal."""
    frozen = [s.call(engine.me.name, Freeze("down")) for engine in s.running()]
    s.until(answered(*frozen))
    s.drain(*s.world.hosts)


@seeds(3)
def test_p64_when_all_stop_no_shard_moves_and_a_restart_finds_everything(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        load = s.load(asks_per_s=100, entities=60)
        s.run(3)
        before = owners(s)
        began_s = s.now_s
        stopped_as_by_down(s)
        s.until(*(exited(name, "stopped") for name in s.world.hosts), within_s=15)
        assert s.now_s - began_s <= 15
        assert owners(s) == before
        s.end(load)
        assert not load.outcomes(Outcome.UNKNOWN), "refused cleanly, or answered"
        acknowledged = {op.key for op in load.outcomes(Outcome.OK)}
        s.start(*s.world.hosts)
        s.until(converged())
        assert {shard: name for shard, (name, _) in owners(s).items()} == {shard: n for shard, (n, _) in before.items()}
        for entity in {of for of, _ in acknowledged}:
            assert {key for of, key in acknowledged if of == entity} <= s.read(entity).applied.keys()


@seeds(2)
def test_p64_a_drain_under_way_ends_without_further_moves_when_all_stop(seed: int) -> None:
    with story(nodes=3, seed=seed, store_us=SLOW_STORE_US) as s:
        s.until(converged())
        operation = told_to_drain(s, "n2", at="n1")
        s.run(0.3)
        stopped_as_by_down(s)
        s.until(*(exited(name) for name in s.world.hosts), within_s=15)
        s.start(*s.world.hosts)
        s.until(converged())
        assert over(s, operation).state in ("done", "failed"), "P63: it has an end"


def test_a_freeze_that_nobody_follows_up_ends_by_itself() -> None:
    with story(nodes=3, seed=1) as s:
        s.until(converged())
        s.until(answered(*(s.call(engine.me.name, Freeze("down")) for engine in s.running())))
        s.run(2)
        assert not coordinators(s)
        s.run(freeze_ms_max / 1_000)
        s.until(one_coordinates, within_s=10)
        assert over(s, told_to_drain(s, "n2")).state == "done"


def told_to_restart(s: Story) -> str:
    """`cluster restart --rolling --yes --detach`: the youngest first, whoever coordinates last."""
    members = sorted(s.running()[0].view.members.values(), key=lambda m: -m.up_number)
    nodes = tuple((m.node, m.incarnation) for m in members)
    order = StartOperation("restart", nodes=nodes, target="cluster")
    begun = s.ask(EntityRef("operation", "op-roll"), order, at=edge(s))
    s.until(answered(begun))
    assert isinstance(begun.outcome, OperationStatus), begun.outcome
    return "op-roll"


def moves_made(s: Story, before: dict[int, tuple[str, int]]) -> int:
    """Every move raises the epoch of its shard by one."""
    return sum(epoch - before[shard][1] for shard, (_, epoch) in owners(s).items())


@seeds(2)
def test_p66_p68_a_rolling_restart_moves_little_and_waits_for_a_whole_cluster_between_nodes(seed: int) -> None:
    with story(nodes=5, seed=seed, supervised=True) as s:
        s.until(converged())
        load = s.load(asks_per_s=50, entities=40)
        before = owners(s)

        def two_away(s: Story) -> str:
            missing = [name for name, host in s.world.hosts.items() if host.process is None]
            return "" if len(missing) > 1 else f"away: {missing}"

        with s.never(two_away, two_coordinate):
            found = over(s, told_to_restart(s), within_s=300)
        assert (found.state, found.result["nodes_restarted"]) == ("done", 5), found
        assert found.result["messages_lost"] == 0
        assert {p.state for p in found.phases} == {"done"}
        assert moves_made(s, before) <= 360
        assert found.result["shards_moved"] == moves_made(s, before), "no move but by drains: nothing was rebalanced"
        assert {host.starts for host in s.world.hosts.values()} == {2}
        s.end(load)
        assert not load.outcomes(Outcome.UNKNOWN)


def test_p66_a_node_that_does_not_come_back_stops_a_rolling_restart() -> None:
    with story(nodes=3, seed=2) as s:
        s.until(converged())
        operation = told_to_restart(s)
        s.until(lambda s: "" if len(s.running()) == 2 else "all run")
        s.run(5)
        waiting = shown(s, operation)
        away = next(p for p in waiting.phases if p.state == "running")
        assert (away.detail, waiting.state) == ("away", "running")
        assert away.name in away.blockers[0]
        s.run(roll_return_ms_max / 1_000)
        found = over(s, operation)
        assert (found.state, found.result["nodes_restarted"]) == ("failed", 0)
        assert away.name in str(found.result["reason"])
        assert len(s.running()) == 2, "nobody else was touched"


def test_p68_the_next_node_is_not_drained_while_something_is_missing() -> None:
    with story(nodes=3, seed=3, supervised=True) as s:
        s.until(converged())
        operation = told_to_restart(s)
        s.until(lambda s: "" if len(s.running()) == 2 else "nobody is away")
        silent = next(e.me.name for e in s.running() if e.me.name not in (s.coordinator(), s.owner(operation)))
        s.until(lambda s: "" if len(s.running()) == 3 and s.running()[0].view.joined else "not back")
        s.stop(silent)
        s.run(1)  # shorter than it takes to be put out
        held = shown(s, operation)
        running = next(p for p in held.phases if p.state == "running")
        assert running.name != silent or running.detail != "begins to drain"
        assert held.result["nodes_restarted"] <= 1
        assert not any(e.drain.active for e in s.running())
        s.thaw(silent)
        assert over(s, operation, within_s=200).state == "done"


@seeds(2)
def test_p68_whoever_owns_a_restart_next_goes_on_with_it(seed: int) -> None:
    with story(nodes=5, seed=seed, supervised=True) as s:
        s.until(converged())
        operation = told_to_restart(s)
        s.until(lambda s: "" if shown(s, operation).result.get("nodes_restarted", 0) >= 1 else "the first is not back")
        owner = s.owner(operation)
        s.kill(owner)
        s.until(removed(owner))
        s.start(owner)
        found = over(s, operation, within_s=300)
        assert found.state in ("done", "failed")
        assert found.state == "done" or "drain of" in str(found.result["reason"]), "killed while it drained, it says so"
        assert found.result["nodes_restarted"] >= 1


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
