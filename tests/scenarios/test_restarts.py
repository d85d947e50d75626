"""Stopping and restarting everybody, told as stories: no shard moves for nothing, and one node is away at a time."""

from __future__ import annotations

from drain_orders import coordinators, edge, one_coordinates, over, shown, told_to_drain, two_coordinate
from seeds import seeds

from node.core.ids import EntityRef
from node.core.limits import freeze_ms_max, roll_return_ms_max
from node.engine.messages import Freeze
from node.flows.messages import (
    OperationStatus,
    StartOperation,
)
from node.sim.conditions import answered, converged, exited, removed
from node.sim.history import Outcome
from node.sim.story import Story, story
from node.store.port import Placement, ReadPlacement

SLOW_STORE_US = 30_000  # moves take seconds, so that something can happen meanwhile


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


def balance_is_free(s: Story) -> str:
    holding = [engine.me.name for engine in s.running() if engine.balance_held]
    return f"held at {holding}" if holding else ""


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
        s.until(balance_is_free, within_s=2)
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
