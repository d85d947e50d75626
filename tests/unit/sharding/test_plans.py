"""Goal: a plan shows what it would do, does exactly that, and is as durable as the table it changes.

Method: staging as a pure function of hand-made situations; then the deterministic world of `sharding_world`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import msgspec
import pytest
from sharding_world import SETTINGS, World

from node.core.hashing import shard_of
from node.core.ids import NodeId
from node.sharding import effects as fx
from node.sharding.book import Book, Cordon, Pin, Plan, entry_of
from node.sharding.nodes import EntityNode, EntityNodes, ShardingSettings
from node.sharding.requests import Cancel, Commit, Declined, Discard, GetHistory, PlanView, Stage
from node.sharding.staging import Situation, stage
from node.store import port
from node.store.port import BookEntry, ShardRow, ShardState

NAMES = ("n1", "n2", "n3")


def situation(
    loads: tuple[int, ...], *, settings: ShardingSettings | None = None, book: Book | None = None, **nodes: object
) -> Situation:
    """`loads[i]` shards on node n<i+1>."""
    members = tuple(EntityNode(NodeId(f"n{i + 1}", 1)) for i in range(len(loads)))
    owners = [m.node for m, load in zip(members, loads, strict=True) for _ in range(load)]
    rows = [ShardRow(s, o.name, o.incarnation, 3, ShardState.RUNNING) for s, o in enumerate(owners)]
    view = replace(EntityNodes(members, NodeId("n1", 1)), **nodes)  # type: ignore[arg-type]
    return Situation(
        rows, 7, view, frozenset(), book or Book(), settings or ShardingSettings(shard_count=len(rows)), (), 400, 1
    )


def planned(request: Stage, at: Situation) -> Plan:
    plan = stage(request, at)
    assert isinstance(plan, Plan), plan
    return plan


@pytest.mark.parametrize(
    ("loads", "after"),
    [
        ((1, 2, 0), [1, 1, 1]),
        ((2, 0, 0), [0, 1, 1]),
        ((1, 1, 0), [0, 1, 1]),
        ((4, 4, 0), [2, 3, 3]),
        ((4, 4, 2), [3, 3, 4]),
        ((5, 5, 0), [3, 3, 4]),
        ((128, 128, 0), [85, 85, 86]),
        ((256, 0, 0), [85, 85, 86]),
        ((86, 85, 85, 0), [64, 64, 64, 64]),
    ],
)
def test_p42_a_rebalance_plan_ends_in_the_vector(loads: tuple[int, ...], after: list[int]) -> None:
    """P42: up to which of equal nodes keeps the odd shard; no shard moves twice, and none for nothing."""
    at = situation(loads)
    plan = planned(Stage("p", "rebalance"), at)
    counts = at.counts()
    for move in plan.moves:
        counts[move.source] -= 1
        counts[move.to] += 1
    assert sorted(counts.values()) == after
    assert max(Counter(move.shard for move in plan.moves).values(), default=1) == 1
    fewest = sum(max(0, load - kept) for load, kept in zip(sorted(loads), after, strict=True))
    assert len(plan.moves) == fewest
    assert not plan.violations


def test_p44_a_rebalance_waits_for_the_cluster_to_be_whole_unless_it_is_forced() -> None:
    hindered = situation((4, 0), unreachable=("api-1",), joining=("n4",))
    assert stage(Stage("p", "rebalance"), hindered) == Declined("not_now", "api-1 is unreachable; n4 is joining")
    forced = planned(Stage("p", "rebalance", force=True), hindered)
    assert forced.notes == ("overridden: api-1 is unreachable", "overridden: n4 is joining")
    assert len(forced.moves) == 2


def test_the_restart_of_one_node_moves_only_what_it_has() -> None:
    plan = planned(Stage("p", "restart", node="n2"), situation((2, 3, 1)))
    assert plan.target == "node/n2"
    assert [move.source for move in plan.moves] == ["n2"] * 3
    everything = planned(Stage("p", "restart"), situation((2, 3, 1)))
    assert everything.target == "cluster"
    assert {move.source for move in everything.moves} == {"n1", "n2", "n3"}
    assert planned(Stage("p", "restart", node="n1"), situation((4,))).violations


def test_what_the_asker_found_to_be_broken_stands_in_the_plan() -> None:
    asked = Stage("p", "drain", node="n1", force=True, broken=("last-of-role: n1 alone is api",), notes=("n9 is away",))
    plan = planned(asked, situation((2, 3, 1)))
    assert (plan.violations, plan.notes) == (("last-of-role: n1 alone is api",), ("n9 is away",))


def test_p43_a_limit_of_zero_refuses() -> None:
    off = situation((4, 0), settings=ShardingSettings(shard_count=4, moves_at_once=0))
    declined = stage(Stage("p", "rebalance"), off)
    assert isinstance(declined, Declined)
    assert declined.reason == "limit_is_zero"


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Stage("p", "move", (1,), "n9"), "n9 is no entity node"),
        (Stage("p", "move", (1,), "n2"), "n2 is cordoned"),
        (Stage("p", "move", (1,), "n3"), "n3 drains"),
        (Stage("p", "move", (1,), "n4"), "n4 is unreachable"),
        (Stage("p", "move", (0,), "n5"), "pinned to n1"),
        (Stage("p", "drain", node="n1"), ""),
    ],
)
def test_what_a_plan_would_violate_is_said_before_anything_moves(request_: Stage, words: str) -> None:
    book = Book([entry_of(Cordon("n2")), entry_of(Pin(0, "n1"))])
    members = [EntityNode(NodeId(f"n{i}", 1)) for i in range(1, 6)]
    members[1], members[3] = replace(members[1], cordoned=True), replace(members[3], reachable=False)
    at = replace(situation((40, 0, 0, 0, 0), book=book, nodes=tuple(members)), draining=frozenset({NodeId("n3", 1)}))
    violations = planned(request_, at).violations
    assert [words in v for v in violations] == ([True] if words else [])


def test_a_node_that_would_own_far_more_than_its_share_is_named() -> None:
    at = situation((40, 0, 0, 0))
    assert not planned(Stage("p", "move", tuple(range(20)), "n2"), at).violations
    crowded = Stage("p", "move", tuple(range(21)), "n2")
    assert planned(crowded, at).violations == ("capacity: n2 would own 21 shards, its share is 10",)
    forced = planned(msgspec.structs.replace(crowded, force=True), at)
    assert forced.notes == ("overridden: capacity: n2 would own 21 shards, its share is 10",)


def test_force_overrides_what_is_a_matter_of_judgement_and_says_so() -> None:
    alone = situation((4,))
    assert planned(Stage("p", "drain", node="n1"), alone).violations == (
        "minimum owners: n1 is the last entity node that takes shards",
    )
    assert planned(Stage("p", "cordon", node="n1"), alone).violations
    forced = planned(Stage("p", "drain", node="n1", force=True), alone)
    assert (forced.violations, len(forced.notes)) == ((), 1)
    # that a node can't take shards is no matter of judgement
    assert planned(Stage("p", "move", (1,), "n9", force=True), alone).violations


def test_a_plan_expects_its_duration_from_the_hand_offs_seen() -> None:
    at = situation((256, 0))
    assert planned(Stage("p", "rebalance"), at).expected_ms == 7 * 400, "128 shards, 20 at a time"
    assert planned(Stage("p", "rebalance"), replace(at, typical_ms=50)).expected_ms == 350


def test_what_can_not_be_asked_for_is_declined() -> None:
    at = situation((2, 2))
    assert stage(Stage("p", "move", (4,), "n1"), at) == Declined("no_such_shard", "4 is not a shard: they are 0 to 3")
    assert stage(Stage("p", "explode"), at) == Declined("no_such_verb", "explode")


def test_a_record_that_can_not_be_read_is_left_alone_and_named() -> None:
    book = Book([BookEntry("plan/p-1", b"\x80"), entry_of(Pin(3, "n1")), BookEntry("x/1", entry_of(Pin(4, "n1")).body)])
    assert set(book.pins) == {3, 4}
    assert book.unreadable == ["plan/p-1"]


# ---- in the world


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
    world.crash("n3")
    world.settle_views(0)
    assert world.run_until(world.converged, 30_000)
    assert set(world.processes["n2"].region.running()) == had
    world.run(30_000)
    assert set(world.processes["n2"].region.running()) == had, "a rebalance gives it none either"
    refused = world.ask(Stage("p-2", "move", on(world, "n1", 1), "n2"))
    assert isinstance(refused, PlanView)
    assert refused.plan.violations == ("n2 is cordoned",)
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
