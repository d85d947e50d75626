"""Sharding: shards that move, coordinators that die, plans that go on, and messages of which none is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from console import Console
from seeds import seeds
from test_shard_faults import SHARD, named, recorded, table

from node.actors.actor import Failed, Failure
from node.admin import protocol as p
from node.admin import shard_requests, views
from node.admin.protocol import Health
from node.core.hashing import shard_of
from node.core.ids import EntityRef, NodeId
from node.sharding.book import History
from node.sharding.check import FaultKind
from node.sharding.requests import Commit, Declined, GetHistory, GetPlacing, Placing, PlanView, Stage
from node.sim import probe
from node.sim.conditions import answered, balanced, converged, exited, removed, runs_on, up
from node.sim.history import Outcome
from node.sim.story import Story, story
from node.store.port import Answer, Fenced, Placement, ReadPlacement, Request, WritePlacement

ENTITIES = [f"e{number}" for number in range(50)]


def shards_on(s: Story, name: str, count: int) -> tuple[int, ...]:
    return tuple(sorted(s.engine(name).sharding.region.running()))[:count]


def placing(s: Story) -> Placing:
    found = s.operator(GetPlacing())
    assert isinstance(found, Placing)
    return found


def health(s: Story) -> Health:
    """What `cluster health` says, from every node's report."""
    running = s.running()
    services = [host.process.service for host in s.world.hosts.values() if host.process is not None]
    reports = {found.node: found for each in services if each is not None for found in (each.report(coverage=False),)}
    view, rows = running[0].view, running[0].sharding.region.homes()
    return views.health(views.cluster_status(view, rows, reports, known_sites=(), rate=0.0))


def plan_over(id_: str):
    def condition(s: Story) -> str:
        plan = s.plan(id_).plan
        return f"{id_} is {plan.state}" if plan.state in ("running", "cancelling") else ""

    return condition


def counts_are_exact(s: Story, *entities: str) -> None:
    """Each acknowledged effect is there once: nothing was lost, and nothing done twice under another key."""
    for entity in entities:
        state = s.read(entity)
        assert state.total == len(state.applied)


@seeds(2)
def test_p40_new_nodes_get_their_share_and_counters_go_on(seed: int) -> None:
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        load = s.load(asks_per_s=50, entities=50)
        s.run(2)
        for name in ("n4", "n5"):
            s.add(name, roles=("api", "entity"))
            s.start(name)
        s.until(up("n4", "n5"), balanced(within=2), within_s=60)
        s.run(1)
        s.end(load)
        s.until(converged())
        acknowledged = {op.key for op in load.outcomes(Outcome.OK)}
        for entity in ENTITIES:
            assert {key for of, key in acknowledged if of == entity} <= s.read(entity).applied.keys()
        counts_are_exact(s, *ENTITIES)


@seeds(2)
def test_p41_known_shards_are_served_while_nobody_coordinates(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        coordinator = s.coordinator()
        staying = [e for e in ENTITIES if s.owner(e) != coordinator]
        others = [n for n in s.world.hosts if n != coordinator]
        load = s.load(asks_per_s=100, entities=50, at=others)
        s.run(2)
        s.kill(coordinator)
        s.run(1)
        assert not any(e.sharding.coordinator.status().active for e in s.running())
        s.until(removed(coordinator), converged(), within_s=s.bound_s + 5)
        s.end(load)
        known = [op for op in load.ops if op.key[0] in staying]
        assert known
        assert {op.outcome for op in known} == {Outcome.OK}, "no NoHome for a shard that runs"


@seeds(2)
def test_p45_only_entity_nodes_own_shards(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restart without the role is a new incarnation, which nothing of the former is recorded for; should the table
    say so of one of its shards nevertheless, every node names that."""
    monkeypatch.setattr(shard_requests, "SECOND_LOOK_S", 0)  # real time, of which a story has none
    with story(nodes=5, seed=seed, start=False, min_entity_nodes=3) as s:
        s.setup("n4", roles=("api",))
        s.setup("n5", roles=("crawler",))
        s.start(*s.world.hosts)
        s.until(converged(), within_s=60)
        assert not shards_on(s, "n4", 1)
        assert not shards_on(s, "n5", 1)
        refused = s.operator(Stage("p-role", "move", shards_on(s, "n1", 1), "n4"))
        assert isinstance(refused, PlanView)
        [why_not] = refused.plan.violations
        assert why_not.startswith("n4 is no entity node that is up: ")
        s.kill("n3")
        s.until(removed("n3"), within_s=s.bound_s)
        s.setup("n3", roles=("api",))
        s.start("n3")
        s.until(up("n3"), converged(), within_s=60)
        assert not shards_on(s, "n3", 1), "its role was taken away"
        again = s.engine("n3").me
        assert again.incarnation > 1
        epoch = table(s)[SHARD].epoch
        with recorded(s, node=again.name, incarnation=again.incarnation):
            named(s, FaultKind.WRONG_ROLE, rf"its owner {again}, epoch {epoch}, has no role entity")


@seeds(2)
def test_p46_pins_outlive_a_stop_of_the_whole_cluster(seed: int) -> None:
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        pinned = shards_on(s, "n1", 5) + shards_on(s, "n2", 5)
        s.commit(Stage("p-pin", "pin", pinned, "n3", reason="near its data"))
        s.until(*(runs_on(shard, "n3") for shard in pinned), within_s=5)
        s.kill(*s.world.hosts)
        s.run(5)
        s.start(*s.world.hosts)
        s.until(converged(), within_s=60)
        s.until(*(runs_on(shard, "n3") for shard in pinned), within_s=10)
        assert {pin.reason for pin in placing(s).pins} == {"near its data"}


@seeds(2)
def test_p48_every_answer_carries_the_key_asked_for_while_shards_move(seed: int) -> None:
    """P48: also under churn a reply goes to the ask that it answers."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        pending = []
        for number in range(60):
            entity = s.rng.choice(ENTITIES)
            s.move(entity, s.rng.choice(["n1", "n2", "n3"])) if number % 2 else None
            pending += [(f"{seed}-{number}-{n}", s.add_to(entity, key=f"{seed}-{number}-{n}")) for n in range(5)]
            s.until(*(plan_over(v.plan.id) for v in running_plans(s)), within_s=20)
        s.until(answered(*(p for _, p in pending)), within_s=20)
        for key, each in pending:
            assert isinstance(each.outcome, probe.Added)
            assert each.outcome.key == key


def running_plans(s: Story) -> list[PlanView]:
    from node.sharding.requests import GetPlans, PlanViews

    found = s.operator(GetPlans())
    assert isinstance(found, PlanViews)
    return [view for view in found.items if view.plan.state == "running"]


@seeds(6)
def test_p49_numbered_tells_stay_in_order_while_their_shard_moves_thirty_times(seed: int) -> None:
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        load = s.load(notes_per_s=200, entities=1)
        for number in range(30):
            here = s.owner("e0")
            to = next(n for n in ("n1", "n2", "n3") if n != here and (number % 2 or n != "n1"))
            s.move("e0", to)
            s.until(runs_on("e0", to), within_s=10)
        s.run(1)
        s.end(load)
        s.run(2)
        sent = {sender: number for (sender, to), number in load.sent.items() if to == "e0"}
        assert s.read("e0").notes == {sender: ((1, number),) for sender, number in sent.items()}
        history = s.operator(GetHistory(shard_of("e0")))
        assert isinstance(history, History)
        epochs = [line.epoch for line in history.entries]
        assert epochs == list(range(epochs[0], epochs[0] + len(epochs)))
        for line in history.entries:
            if line.receipt is not None:
                assert line.receipt.arrived == line.receipt.handled + line.receipt.bounced + line.receipt.dropped
                assert not line.receipt.refused


@seeds(2)
@pytest.mark.parametrize("point", ["marked", "stop_sent", "acknowledged", "epoch_issued", "started"])
def test_p50_the_next_coordinator_goes_on_with_the_plan(seed: int, point: str) -> None:
    with story(nodes=4, seed=seed, start=False) as s:
        for name, host in s.world.hosts.items():
            s.setup(name, sharding=replace(host.setup.sharding, moves_at_once=4))
        s.start(*s.world.hosts)
        s.until(converged(), within_s=60)
        dying = s.coordinator()
        source, target = [n for n in s.world.hosts if n != dying][:2]
        shards = shards_on(s, source, 20)
        load = s.load(asks_per_s=50, entities=50, at=[n for n in s.world.hosts if n != dying])
        s.dies_at(dying, f"handoff.{point}", nth=3)
        s.operator(Stage("p-20", "move", shards, target))
        s.operator(Commit("p-20", "op-20"), within_s=20)
        s.until(removed(dying), within_s=s.bound_s + 5)
        found = s.plan("p-20")
        assert sorted((*found.moved, *found.moving, *found.waiting)) == sorted(shards)
        s.until(plan_over("p-20"), within_s=30)
        assert s.plan("p-20").plan.state == "done"
        s.until(converged(), *(runs_on(shard, target) for shard in shards), within_s=10)
        s.end(load)


@seeds(2)
def test_p51_an_api_node_that_dies_does_not_hold_up_a_hand_off(seed: int) -> None:
    with story(nodes=4, seed=seed, start=False, min_entity_nodes=3) as s:
        s.setup("n4", roles=("api",))
        s.start(*s.world.hosts)
        s.until(converged(), within_s=60)
        shards = shards_on(s, "n2", 10)
        s.commit(Stage("p-api", "move", shards, "n3"))
        s.kill("n4")
        s.until(*(runs_on(shard, "n3") for shard in shards), within_s=2)


@seeds(2)
def test_p52_without_entity_nodes_an_ask_ends_at_its_deadline_and_says_so(seed: int) -> None:
    with story(nodes=2, seed=seed, start=False, min_entity_nodes=1) as s:
        for name in s.world.hosts:
            s.setup(name, roles=("api", "singleton"))
        s.start(*s.world.hosts)
        s.until(up("n1", "n2"), within_s=30)
        s.run(3)
        asked = s.ask(EntityRef(probe.KIND, "e0"), probe.Read(), timeout_ms=3_000)
        s.until(answered(asked), within_s=4)
        assert asked.outcome == Failed(Failure.NO_HOME, "no entity node is up")
        assert 2.5 <= asked.took_s <= 3
        assert placing(s).why_not_placing == "no entity node can take shards"
        found = health(s)
        assert found.state == "unhealthy"
        assert {r.code: r.text for r in found.reasons}["E-SHARDS-UNALLOCATED"] == (
            "256 have no live owner: no entity node is up"
        )


@seeds(1)
def test_p53_a_flood_for_an_unallocated_shard_is_bounded_and_each_is_answered(seed: int) -> None:
    with story(nodes=2, seed=seed, start=False, min_entity_nodes=1) as s:
        for name in s.world.hosts:
            s.setup(name, roles=("api", "singleton"))
        s.start(*s.world.hosts)
        s.until(up("n1", "n2"), within_s=30)
        s.run(2)
        asked = []
        for _ in range(200):
            asked += [s.ask(EntityRef(probe.KIND, "e0"), probe.Read(), at="n1", timeout_ms=4_000) for _ in range(100)]
            s.run(0.005)
            assert s.engine("n1").sharding.region.waiting() <= 2_000
        s.until(answered(*asked), within_s=10)
        assert len(asked) == 20_000
        assert all(isinstance(each.outcome, Failed) for each in asked)
        s.engine("n1").sharding.region.validate()  # received = delivered + forwarded + refused + waiting


@seeds(2)
def test_p54_a_coordinator_on_the_minority_side_is_replaced_and_places_nothing_more(seed: int) -> None:
    with story(nodes=5, seed=seed) as s:
        s.until(converged())
        old = s.coordinator()
        term = placing(s).term
        rest = [n for n in s.world.hosts if n != old]
        s.cut(old)
        s.until(removed(old, seen_by=rest), exited(old), within_s=s.bound_s + 10)
        s.until(converged(*rest), within_s=10)
        assert s.coordinator() in rest
        assert placing(s).term > term


@seeds(2)
def test_p55_nothing_is_placed_before_the_third_of_three_is_there(seed: int) -> None:
    with story(nodes=3, seed=seed, start=False, min_entity_nodes=3) as s:

        def placed(s: Story) -> str:
            return "" if any(e.sharding.region.running() for e in s.running()) else "nothing is placed"

        with s.never(placed):
            s.start("n1")
            s.run(3)
            s.start("n2")
            s.run(2)
        s.start("n3")
        s.until(converged(), within_s=15)
        assert sorted(len(e.sharding.region.running()) for e in s.running()) == [85, 85, 86]
        s.run(20)
        assert placing(s).epochs == (1,) * 256, "and nothing has moved since"


@seeds(2)
def test_p56_what_must_be_placed_goes_to_the_newest_version(seed: int) -> None:
    with story(nodes=4, seed=seed, start=False) as s:
        s.setup("n3", version="2")
        s.start(*s.world.hosts)
        s.until(up(*s.world.hosts), converged(), within_s=60)
        assert len(s.engine("n3").sharding.region.running()) == 256, "a first placement looks at versions, too"
        why = placing(s).why_not_rebalancing
        assert any(each.startswith("mixed versions") for each in why)
        declined = s.operator(Stage("p-mixed", "rebalance"))
        assert isinstance(declined, Declined)
        assert declined.reason == "not_now"


@seeds(2)
def test_p57_when_the_coordinators_node_leaves_only_its_own_shards_move(seed: int) -> None:
    with story(nodes=4, seed=seed) as s:
        s.until(converged())
        leaving = s.coordinator()
        others = [n for n in s.world.hosts if n != leaving]
        before = {n: dict(s.engine(n).sharding.region.running()) for n in others}
        began = s.now_s
        s.drain(leaving)
        s.until(exited(leaving), removed(leaving), converged(*others), within_s=15)
        assert s.now_s - began <= 15
        for name in others:
            now = s.engine(name).sharding.region.running()
            assert {shard: now.get(shard) for shard in before[name]} == before[name], "no epoch changed: none restarted"


def refused_writes(s: Story) -> list[tuple[str, int]]:
    """From now on: who was refused a write of the placement table, and its term."""
    refused: list[tuple[str, int]] = []
    recorder = s.world.store.recorder
    applied = recorder.applied

    def seen(now_ns: int, node: NodeId, request: Request, answer: Answer) -> None:
        if isinstance(request, WritePlacement) and isinstance(answer, Fenced):
            refused.append((str(node), request.term))
        applied(now_ns, node, request, answer)

    recorder.applied = seen  # type: ignore[method-assign]
    return refused


@seeds(2)
def test_s05_a_late_write_of_a_stopped_coordinator_changes_nothing(seed: int) -> None:
    """S05: two seconds a commit; the coordinator stands still in the midst of a rebalance, about to write, and wakes
    after the take-over: that write is refused. In the default profile: no renewal of the fast one's lease of 3 s would
    come in time."""
    with story(nodes=4, seed=seed, profile="default", embedded=True) as s:
        s.until(converged())
        old = s.coordinator()
        others = [n for n in s.world.hosts if n != old]
        source, target = others[:2]
        s.until(plan_over(s.commit(Stage("p-first", "move", shards_on(s, source, 60), target)).plan.id), within_s=30)
        term = s.engine(old).sharding.coordinator.status().term
        refused = refused_writes(s)
        s.store_slow(2_000)  # per commit
        s.stops_at(old, "handoff.epoch_issued", 60)
        s.commit(Stage("p-slow", "rebalance"))
        s.until(removed(old, seen_by=others), within_s=s.bound_s + 60)
        assert refused == []
        s.cut(old)  # who hears first that it was removed ends before it writes
        s.thaw(old)
        s.until(lambda _: "" if refused else "the late write has not come", within_s=30)
        assert set(refused) == {(f"{old}@1", term)}
        s.heal()
        s.store_slow(0)
        s.until(exited(old), within_s=30)
        s.until(plan_over("p-slow"), converged(*others), within_s=60)
        assert s.coordinator() in others
        assert Console(s, s.coordinator()).ask(p.GetShardCheck()).ok
        seen: dict[tuple[int, int], str] = {}
        for shard in range(256):
            history = s.operator(GetHistory(shard))
            assert isinstance(history, History)
            for line in history.entries:
                owner = f"{line.node}@{line.incarnation}"
                assert seen.setdefault((shard, line.epoch), owner) == owner


@seeds(1)
def test_s08_messages_that_reach_a_moving_shard_are_accounted_for(seed: int) -> None:
    """S08: unique keys to fifty entities while their shards move a hundred times."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        load = s.load(asks_per_s=2_000, entities=50)
        moves = 0
        while moves < 100:
            here = s.rng.choice(["n1", "n2", "n3"])
            to = s.rng.choice([n for n in ("n1", "n2", "n3") if n != here])
            shards = tuple({shard_of(e) for e in ENTITIES if s.owner(e) == here})[:10]
            if not shards:
                continue
            view = s.commit(Stage(f"p-{moves}", "move", shards, to, force=True))
            s.until(plan_over(view.plan.id), within_s=20)
            moves += len(s.plan(view.plan.id).moved)
        s.end(load)
        s.until(converged())
        assert {op.outcome for op in load.ops} <= {Outcome.OK, Outcome.FAIL}, "handled, or refused for certain"
        acknowledged = {op.key for op in load.outcomes(Outcome.OK)}
        for entity in ENTITIES:
            applied = s.read(entity).applied.keys()
            assert {key for of, key in acknowledged if of == entity} == applied
        for engine in s.running():
            engine.sharding.region.validate()
            assert engine.sharding.lost == 0


@seeds(1)
def test_s10_totals_are_exact_and_nothing_grows_through_two_hundred_restarts(seed: int) -> None:
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        load = s.load(asks_per_s=5, entities=10)

        def held() -> int:
            engine = s.engine("n1")
            placement = s.world.store.now(ReadPlacement())
            assert isinstance(placement, Placement)
            members = len(engine.view.members) + len(engine.world.transport.ledger.rows())
            return members + sum(len(entry.body) for entry in placement.book) // 1_024

        for number in range(200):
            s.kill("n3")
            s.run(0.2)
            s.start("n3")
            s.until(up("n3"), within_s=30)
            if number == 20:
                small = held()
        s.until(converged(), within_s=60)
        s.end(load)
        assert held() <= small + 200
        acknowledged = {op.key for op in load.outcomes(Outcome.OK)}
        for entity in ENTITIES[:10]:
            state = s.read(entity)
            assert {key for of, key in acknowledged if of == entity} <= state.applied.keys()
            assert state.total == len(state.applied)


@seeds(2)
def test_p5_a_receiver_that_dies_in_the_midst_of_a_hand_off_is_replaced(seed: int) -> None:
    """P5: a third node gets the shard; what waited is handled or refused for certain."""
    with story(nodes=4, seed=seed) as s:
        s.until(converged())
        coordinator = s.coordinator()
        source, target = [n for n in s.world.hosts if n != coordinator][:2]
        load = s.load(asks_per_s=100, entities=50, at=[n for n in s.world.hosts if n != target])
        s.commit(Stage("p-5", "move", shards_on(s, source, 20), target))
        s.run(0.05)
        s.kill(target)
        s.until(removed(target), within_s=s.bound_s)
        s.until(plan_over("p-5"), converged(), within_s=30)
        s.end(load)
        counts_are_exact(s, *ENTITIES)
