"""What a cluster still does while its store is out of reach: of all nodes, or of the one that coordinates."""

from __future__ import annotations

from seeds import seeds

from node.actors.actor import Failed, Failure
from node.core.ids import EntityRef
from node.sim.conditions import answered, converged, runs_on, up
from node.sim.probe import KIND, Added, ProbeState, Read
from node.sim.story import Condition, Story, story

ENTITIES = tuple(f"e{number}" for number in range(8))


def totals(s: Story) -> dict[str, int]:
    """What each probe says now of itself, asked from anywhere."""
    asked = {entity: s.ask(EntityRef(KIND, entity), Read(), timeout_ms=1_000) for entity in ENTITIES}
    s.until(answered(*asked.values()), within_s=3)
    assert all(isinstance(pending.outcome, ProbeState) for pending in asked.values()), asked
    return {entity: pending.outcome.total for entity, pending in asked.items()}


@seeds(3)
def test_g2_while_the_store_is_away_what_is_durable_is_answered_and_nothing_else_is(seed: int) -> None:
    """G2: each entity's writes fail for half a minute, again and again; in between it answers from what is durable,
    without a restart, and takes writes again as soon as the store is back."""
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        for entity in ENTITIES:
            s.until(answered(s.add_to(entity)))
        before = totals(s)
        assert set(before.values()) == {1}
        restarts = sum(engine.system.stats().get("restarts", 0) for engine in s.running())
        s.store_down()
        for _ in range(6):
            lost = [s.add_to(entity) for entity in ENTITIES]
            s.until(answered(*lost), within_s=6)
            assert {pending.outcome for pending in lost} == {Failed(Failure.STOPPED, "E-STORE")}
            assert totals(s) == before
            s.run(4)
        assert sum(engine.system.stats().get("restarts", 0) for engine in s.running()) == restarts
        s.store_up()
        again = [s.add_to(entity) for entity in ENTITIES]
        s.until(answered(*again), within_s=2)
        assert [pending.outcome.total for pending in again if isinstance(pending.outcome, Added)] == [2] * len(ENTITIES)


def coordinates(name: str) -> Condition:
    """This one acts, and everybody who runs knows it."""

    def condition(s: Story) -> str:
        active = [e.me.name for e in s.running() if e.sharding.coordinator.leads]
        known = {e.sharding.coordinator_node() for e in s.running()}
        return "" if active == [name] and known == {name} else f"{active} coordinate, known are {known}"

    return condition


@seeds(3)
def test_n6_a_coordinator_that_the_store_does_not_answer_leaves_the_role_to_the_next(seed: int) -> None:
    """N6: it cannot renew its lease and has no other fault; another that reaches the store takes the next term, moves
    shards, and gives the role back when the first has reached the store for a while. A flap costs nothing."""
    with story(nodes=4, seed=seed) as s:
        s.until(converged())
        first = s.coordinator()
        term = s.engine(first).sharding.coordinator.status().term
        lease_s = s.host(first).setup.sharding.lease_ms / 1_000
        with s.always(up("n1", "n2", "n3", "n4")):
            with s.always(coordinates(first)):
                s.store_down(first)
                s.run(lease_s / 3)
                s.store_up()
                s.run(2 * lease_s)
            s.store_down(first)
            s.until(lambda s: "" if s.engine(first).sharding.coordinator_node() != first else "it keeps the role")
            second = s.engine(first).sharding.coordinator_node() or ""
            s.until(coordinates(second), within_s=lease_s)
            assert s.engine(second).sharding.coordinator.status().term > term
            shard = next(number for number in range(256) if s.owner(number) == second)
            s.move(shard, first)
            s.until(runs_on(shard, first), within_s=10)
            s.store_down(second)
            s.until(lambda s: "" if s.engine(first).sharding.coordinator_node() not in (first, second) else "no third")
            s.store_up()
            s.until(coordinates(first), within_s=3 * lease_s)
            with s.always(coordinates(first)):
                s.run(2 * lease_s)


@seeds(3)
def test_n6_a_store_that_is_away_for_all_leaves_the_role_where_it_is_afterwards(seed: int) -> None:
    with story(nodes=3, seed=seed) as s:
        s.until(converged())
        first = s.coordinator()
        s.store_down()
        s.run(30)
        assert [e.me.name for e in s.running() if e.sharding.coordinator.leads] == []
        s.store_up()
        s.until(coordinates(first), within_s=3)
        with s.always(coordinates(first)):
            s.run(10)
