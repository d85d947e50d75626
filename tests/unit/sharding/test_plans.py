"""A plan is committed, carried out, cancelled, or goes on under the next coordinator: in `sharding_world`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sharding_world import SETTINGS, World

from node.core.hashing import shard_of
from node.sharding import effects as fx
from node.sharding.messages import NodeCordoned
from node.sharding.nodes import ShardingSettings
from node.sharding.requests import Cancel, Commit, Declined, Discard, GetHistory, PlanView, Stage
from node.store import port
from node.store.port import ShardState

NAMES = ("n1", "n2", "n3")


def formed(seed: int = 1, names: tuple[str, ...] = NAMES, settings: ShardingSettings = SETTINGS) -> World:
    world = World(names, seed, settings)
    assert world.run_until(world.converged, 10_000)
    return world


def ended(world: World, id_: str, ms: int = 30_000) -> PlanView:
    assert world.run_until(lambda: world.plan(id_).plan.state not in ("running", "cancelling"), ms), world.plan(id_)
    return world.plan(id_)


def on(world: World, node: str, count: int) -> tuple[int, ...]:
    return tuple(sorted(world.processes[node].region.running()))[:count]


def test_a_plan_changes_nothing_until_it_is_committed_and_then_what_it_said() -> None:
    world = formed()
    shards = on(world, "n1", 3)
    staged = world.ask(Stage("p-1", "move", shards, "n2", entities=((shards[0], 9),), reason="cooler"))
    assert isinstance(staged, PlanView)
    assert [(m.shard, m.source, m.to, m.entities) for m in staged.plan.moves] == [
        (s, "n1", "n2", 9 if s == shards[0] else 0) for s in shards
    ]
    assert dict(staged.after)["n2"] == dict(staged.before)["n2"] + 3
    before = world.counts()
    world.run(3_000)
    assert world.counts() == before
    assert world.plan("p-1").plan.state == "staged"
    world.load(3_000, every_ms=2)
    world.ask(Commit("p-1", "op-1"))
    done = ended(world, "p-1")
    assert (done.plan.state, done.moved, done.plan.operation, done.plan.reason) == ("done", shards, "op-1", "cooler")
    assert set(shards) <= world.processes["n2"].region.running().keys()
    assert world.run_until(lambda: world.unaccounted() == 0, 10_000)
    assert set(world.fates()) == {"handled"}


def test_o1_a_plan_against_another_placement_is_refused_and_a_repeated_commit_is_one() -> None:
    """O1: two operators at once; one loses, and is told which placement is in force."""
    world = formed()
    first, second, third = (Stage(f"p-{i}", "move", on(world, f"n{i}", 1), "n3") for i in (1, 2, 3))
    for each in (first, second):
        world.ask(each)
    begun = world.ask(Commit("p-1", "op-1"))
    assert isinstance(begun, PlanView)
    again = world.ask(Commit("p-1", "op-1"))
    assert isinstance(again, PlanView)
    ended(world, "p-1")
    refused = world.ask(Commit("p-2", "op-2"))
    assert isinstance(refused, Declined)
    assert refused.reason == "stale"
    assert world.ask(Commit("p-1", "op-9")) == Declined("ended", "p-1 is done already")
    assert world.ask(Commit("p-9", "op-9")) == Declined("no_such_plan", "p-9")
    nothing = world.ask(third)
    assert isinstance(nothing, PlanView)
    assert not nothing.changed, "it is there already, and nothing is kept"
    assert {v.plan.id for v in world.plans()} == {"p-1", "p-2"}
    gone = world.ask(Discard("p-2"))
    assert isinstance(gone, PlanView)
    assert gone.plan.state == "discarded"
    assert {v.plan.id for v in world.plans()} == {"p-1"}


def test_one_plan_at_a_time_is_carried_out() -> None:
    world = formed(settings=replace(SETTINGS, moves_at_once=1))
    world.ask(Stage("p-1", "move", on(world, "n1", 9), "n2"))
    world.ask(Stage("p-2", "move", on(world, "n1", 9), "n3"))
    acting = world.acting()
    assert acting is not None
    for tag, id_ in ((1, "p-1"), (2, "p-2")):  # both before the first row is written
        world.coordinate(acting, fx.Requested(Commit(id_, f"op-{id_}"), tag))
    assert world.run_until(lambda: {1, 2} <= world.answers.keys(), 2_000)
    declined = world.answers[2]
    assert isinstance(declined, Declined)
    assert declined.reason in ("other_running", "stale")
    assert isinstance(world.ask(Discard("p-1")), Declined), "it runs: cancel it"
    ended(world, "p-1")


def test_cancel_leaves_what_has_moved_and_begins_nothing_more() -> None:
    world = formed(settings=replace(SETTINGS, moves_at_once=2))
    shards = on(world, "n1", 30)
    assert isinstance(world.ask(Stage("p-1", "move", shards, "n2")), PlanView)
    assert isinstance(world.ask(Cancel("p-1")), Declined), "it was never committed"
    world.ask(Commit("p-1", "op-1"))
    assert world.run_until(lambda: len(world.plan("p-1").moved) >= 4, 10_000)
    world.ask(Cancel("p-1"))
    done = ended(world, "p-1")
    assert done.plan.state == "cancelled"
    assert 4 <= len(done.moved) < 20
    assert len(done.moved) + len(done.dropped) == 30
    assert set(dict(done.plan.dropped).values()) == {"cancelled"}
    assert set(done.moved) <= world.processes["n2"].region.running().keys()
    world.run(5_000)
    assert set(done.dropped) <= world.processes["n1"].region.running().keys()
    again = world.ask(Cancel("p-1"))
    assert isinstance(again, PlanView)
    assert not again.changed


@pytest.mark.parametrize(("absolute", "ratio", "most"), [(3, 0.1, 3), (20, 0.1, 20), (200, 0.1, 25), (200, 0.01, 2)])
def test_p43_never_more_shards_move_at_once_than_both_limits_allow(absolute: int, ratio: float, most: int) -> None:
    world = formed(settings=replace(SETTINGS, moves_at_once=absolute, moves_ratio=ratio))
    moving: list[int] = []

    def look(_process: object, request: port.Request) -> None:
        table = world.store.apply([port.ReadPlacement()])[0]
        assert isinstance(table, port.Placement)
        moving.append(sum(row.state is ShardState.MOVING for row in table.rows))

    world.on_store = look
    world.commit(Stage("p-1", "move", on(world, "n1", 60), "n2"))
    ended(world, "p-1", 60_000)
    assert max(moving) == most


def test_p46_pins_are_honoured_kept_pending_and_undone() -> None:
    """P46: ten shards to n3, within 5 s, through a rebalance and a restart; and to a node that is not there yet."""
    world = formed()
    shards = on(world, "n1", 5) + on(world, "n2", 5)
    world.commit(Stage("p-1", "pin", shards, "n3", reason="near its data"))
    assert world.run_until(lambda: set(shards) <= world.processes["n3"].region.running().keys(), 5_000)
    assert world.run_until(lambda: max(world.counts().values()) - min(world.counts().values()) <= 1, 60_000)
    assert set(shards) <= world.processes["n3"].region.running().keys(), "the rebalance took others"

    later = on(world, "n1", 2)
    pending = world.commit(Stage("p-2", "pin", later, "n4"))
    assert "pending" in pending.plan.notes[0]
    assert world.placing().pending == later
    assert set(later) <= world.processes["n1"].region.running().keys()

    world.crash("n3")
    world.settle_views(0)
    assert world.run_until(world.converged, 30_000)
    assert set(world.placing().pending) >= set(shards)
    for name in ("n3", "n4"):
        world.start(name)
    world.settle_views(0)
    home = {"n3": set(shards), "n4": set(later)}
    assert world.run_until(
        lambda: all(s <= world.processes[n].region.running().keys() for n, s in home.items()), 10_000
    ), "each went home when its node came"
    assert {pin.reason for pin in world.placing().pins} == {"near its data", ""}

    world.commit(Stage("p-3", "unpin", shards))
    assert {pin.shard for pin in world.placing().pins} == set(later)
    assert isinstance(world.ask(Stage("p-4", "move", shards[:1], "n2")), PlanView)
    assert not world.plan("p-4").plan.violations


def test_a_cordoned_node_keeps_its_shards_and_gets_none() -> None:
    world = formed()
    had = set(world.processes["n2"].region.running())
    world.commit(Stage("p-1", "cordon", node="n2", reason="disk"))
    assert NodeCordoned("n2", True, "disk") in world.notes
    world.crash("n3")
    world.settle_views(0)
    assert world.run_until(world.converged, 30_000)
    assert set(world.processes["n2"].region.running()) == had
    world.run(30_000)
    assert set(world.processes["n2"].region.running()) == had, "a rebalance gives it none either"
    refused = world.ask(Stage("p-2", "move", on(world, "n1", 1), "n2"))
    assert isinstance(refused, PlanView)
    assert refused.plan.violations == ("n2 is cordoned: 'node uncordon n2' lets it have shards",)
    declined = world.ask(Commit("p-2", "op-2"))
    assert isinstance(declined, Declined)
    assert declined.reason == "violations"
    assert [c.reason for c in world.placing().cordons] == ["disk"]
    world.commit(Stage("p-3", "uncordon", node="n2"))
    assert world.run_until(lambda: len(world.processes["n2"].region.running()) > len(had), 60_000)


def test_a_plan_whose_target_is_cordoned_after_it_was_made_is_stale() -> None:
    world = formed()
    world.ask(Stage("p-1", "move", on(world, "n1", 1), "n2"))
    world.commit(Stage("p-2", "cordon", node="n2"))
    declined = world.ask(Commit("p-1", "op-1"))
    assert isinstance(declined, Declined)
    assert declined == Declined("stale", "since it was made: n2 is cordoned")


@pytest.mark.parametrize("step", ["", "marked", "stop_sent", "acknowledged", "epoch_issued", "started"])
def test_p50_the_next_coordinator_goes_on_with_a_plan_where_the_first_one_died(step: str) -> None:
    """P50: twenty shards; each is reported as done, continued or not begun, and all of them arrive."""
    world = formed(settings=replace(SETTINGS, moves_at_once=4), names=("n1", "n2", "n3", "n4"))
    acting = world.acting()
    assert acting is not None
    dying = acting.id.name
    source, target = (n for n in ("n2", "n3"))
    shards = on(world, source, 20)
    world.load(5_000)
    world.commit(Stage("p-1", "move", shards, target))
    assert world.run_until(lambda: len(world.plan("p-1").moved) >= 5, 10_000)
    if step:
        world.kill_at = f"handoff.{step}"
        assert world.run_until(lambda: dying not in world.processes, 5_000)
    else:
        world.crash(dying)
    world.settle_views(50)
    assert world.run_until(lambda: world.acting() is not None, 10_000)
    found = world.plan("p-1")
    assert sorted((*found.moved, *found.moving, *found.waiting)) == sorted(shards)
    assert len(found.moved) >= 5
    done = ended(world, "p-1")
    assert (done.plan.state, set(done.moved)) == ("done", set(shards))
    assert world.run_until(world.converged, 20_000)
    assert set(shards) <= world.processes[target].region.running().keys()


def test_a_plan_whose_target_dies_fails_and_names_what_stayed() -> None:
    world = formed(settings=replace(SETTINGS, moves_at_once=2))
    acting = world.acting()
    assert acting is not None
    source, target = (n for n in NAMES if n != acting.id.name)
    shards = on(world, source, 20)
    world.commit(Stage("p-1", "move", shards, target))
    assert world.run_until(lambda: len(world.plan("p-1").moved) >= 2, 10_000)
    world.crash(target)
    world.settle_views(0)
    done = ended(world, "p-1")
    assert done.plan.state == "failed"
    assert len(done.moved) + len(done.dropped) == 20
    assert set(dict(done.plan.dropped).values()) == {f"{target} is no entity node that is up"}
    assert world.run_until(world.converged, 20_000)


def test_every_shard_remembers_who_owned_it_and_why() -> None:
    world = formed()
    (shard,) = on(world, "n1", 1)
    for number in range(20):
        to = "n2" if number % 2 == 0 else "n1"
        world.commit(Stage(f"p-{number}", "move", (shard,), to))
        ended(world, f"p-{number}")
    history = world.ask(GetHistory(shard))
    assert not isinstance(history, Declined)
    lines = history.entries  # type: ignore[union-attr]
    assert [line.epoch for line in lines] == list(range(6, 22)), "the newest sixteen, without a gap"
    assert {line.cause for line in lines} == {"move"}
    assert [line.node for line in lines[-2:]] == ["n2", "n1"]
    assert all(line.receipt is not None for line in lines)
    assert isinstance(world.ask(GetHistory(256)), Declined)
    first = world.ask(GetHistory((shard + 1) % 256))
    assert [line.cause for line in first.entries][:1] == ["first_placement"]  # type: ignore[union-attr]


def test_plans_are_bounded_and_the_oldest_that_are_over_go_first() -> None:
    world = formed()
    (shard,) = on(world, "n1", 1)
    for number in range(70):
        world.ask(Stage(f"p-{number:02}", "move", (shard,), "n2"))
    kept = [v.plan.id for v in world.plans()]
    assert len(kept) == 64
    assert "p-69" in kept
    assert "p-00" not in kept


@pytest.mark.parametrize("kind", ["duplicate", "stale-epoch", "orphan"])
def test_a_repair_issues_new_epochs_at_once(kind: str) -> None:
    """What runs twice, under an old epoch, or not at all where it should, is fenced and begun anew; nobody is asked."""
    world = formed()
    (shard,) = on(world, "n2", 1)
    epoch = world.processes["n2"].region.running()[shard]
    view = world.commit(Stage("p-1", "repair", repairs=((shard, kind),)))
    assert [(m.source, m.to, m.at_once) for m in view.plan.moves] == [("n2", "n2", True)]
    assert view.plan.notes == ()
    assert ended(world, "p-1").moved == (shard,)
    assert world.run_until(world.converged, 10_000)
    assert world.processes["n2"].region.running()[shard] == epoch + 1


def test_a_repair_leaves_to_the_coordinator_what_it_mends_by_itself() -> None:
    """Shards whose owner is gone, or may own none any more, are given to another without a plan; the plan says so."""
    world = formed()
    world.crash("n3")
    left = [shard for shard, row in enumerate(world.placing().owners) if row.startswith("n3")]
    world.settle_views(0)
    world.run(1)
    kinds = ("orphan", "wrong-role", "unallocated")
    view = world.ask(Stage("p-1", "repair", repairs=tuple(zip(left, kinds, strict=False))))
    assert isinstance(view, PlanView)
    assert not view.plan.moves
    told = [
        f"shard {shard} {kind}: the coordinator places it by itself" for shard, kind in zip(left, kinds, strict=False)
    ]
    assert list(view.plan.notes) == told
    assert not view.changed
    assert world.run_until(world.converged, 30_000)
    assert not any(owner.startswith("n3") for owner in world.placing().owners)


def test_a_repair_evens_the_load_out_by_moves_that_ask_the_owners() -> None:
    world = formed()
    world.commit(Stage("p-1", "pin", on(world, "n1", 10), "n2"))
    ended(world, "p-1")
    pinned = tuple(pin.shard for pin in world.placing().pins)
    world.commit(Stage("p-2", "unpin", pinned))
    view = world.ask(Stage("p-3", "repair", repairs=((-1, "imbalance"),)))
    assert isinstance(view, PlanView)
    counts = dict(view.after)
    assert view.plan.moves
    assert not any(move.at_once for move in view.plan.moves)
    assert max(counts.values()) - min(counts.values()) <= 1


def test_a_stuck_hand_off_is_mended_without_its_owner() -> None:
    world = formed(settings=replace(SETTINGS, handoff_ms=600_000))
    acting = world.acting()
    assert acting is not None
    source, target = (n for n in NAMES if n != acting.id.name)
    (shard,) = on(world, source, 1)
    world.pause(source)
    world.ask(Stage("p-1", "move", (shard,), target))
    world.ask(Commit("p-1", "op-1"))
    world.run(5_000)
    (stuck,) = world.placing().moves
    assert (stuck.shard, stuck.state) == (shard, "asked")
    assert stuck.age_ms > 4_000
    assert "has not acknowledged" in world.plan("p-1").blockers[0]
    view = world.commit(Stage("p-2", "repair", repairs=((shard, "stuck-handoff"),)))
    assert [(m.to, m.at_once) for m in view.plan.moves] == [(view.plan.moves[0].to, True)]
    assert ended(world, "p-2").plan.state == "done"
    assert world.placing().moves == ()
    assert ended(world, "p-1").moved == (shard,), "both plans see that it has moved"
    world.wake(world.processes[source])
    assert world.run_until(world.converged, 10_000)
    assert shard not in world.processes[source].region.running()


def test_the_receipt_of_a_move_accounts_for_every_message() -> None:
    """What arrived at the old owner was handled or came back; what waited there went on or was refused."""
    world = formed()
    (shard,) = on(world, "n1", 1)
    sent = 0
    for number in range(40):
        name = next(f"m{number}.{i}" for i in range(100_000) if shard_of(f"m{number}.{i}") == shard)
        world.at(number * 3, lambda name=name: world.send_to("n1", name))
        sent += 1
    world.at(40, lambda: world.coordinate(world.processes["n1"], fx.Requested(Stage("p-1", "move", (shard,), "n2"), 1)))
    world.at(60, lambda: world.coordinate(world.processes["n1"], fx.Requested(Commit("p-1", "op-1"), 2)))
    assert world.acting() is world.processes["n1"]
    assert world.run_until(lambda: len(world.fate) == sent, 10_000)
    world.run(2_000)
    history = world.ask(GetHistory(shard))
    receipt = history.entries[-1].receipt  # type: ignore[union-attr]
    assert receipt is not None
    assert receipt.arrived == receipt.handled + receipt.bounced
    assert receipt.forwarded >= receipt.bounced > 0
    assert receipt.handled < sent
    assert set(world.fates()) == {"handled"}
