"""Goal: each kind of disagreement between the four views is named, and nothing else is.

Method: three nodes that agree, then one view of them made wrong.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from node.core.ids import NodeId
from node.sharding.check import FaultKind, NodeShards, Views, balance, check, unchecked
from node.sharding.requests import Placing, UnderWay
from node.store.port import ShardRow, ShardState

A, B, C = (NodeId(name, 1) for name in "abc")
SHARDS = 12


def whole() -> Views:
    owners = [(A, B, C)[shard % 3] for shard in range(SHARDS)]
    rows = tuple(ShardRow(s, o.name, 1, 5, ShardState.RUNNING) for s, o in enumerate(owners))
    here = {node: {s: 5 for s, o in enumerate(owners) if o == node} for node in (A, B, C)}
    placing = Placing("a@1", 4, 9, tuple(map(str, owners)), (5,) * SHARDS)
    nodes = tuple(NodeShards(node, here[node], dict(here[node])) for node in (A, B, C))
    return Views(rows, placing, nodes, dict.fromkeys((A, B, C), ("entity",)))


def kinds(views: Views) -> dict[int, set[FaultKind]]:
    found: dict[int, set[FaultKind]] = {}
    for fault in check(views):
        found.setdefault(fault.shard, set()).add(fault.kind)
        assert fault.detail
        assert fault.repair
    return found


def with_row(views: Views, shard: int, **changes: object) -> Views:
    rows = list(views.rows)
    rows[shard] = msgspec.structs.replace(rows[shard], **changes)
    return replace(views, rows=rows)


def with_node(views: Views, node: NodeId, *, region: dict[int, int], entities: dict[int, int] | None = None) -> Views:
    made = NodeShards(node, region, region if entities is None else entities)
    return replace(views, nodes=tuple(made if each.node == node else each for each in views.nodes))


def region_of(views: Views, node: NodeId) -> dict[int, int]:
    return dict(next(each.region for each in views.nodes if each.node == node))


def test_a_whole_cluster_has_no_faults() -> None:
    assert check(whole()) == ()
    assert unchecked(whole()) == ()


def test_an_owner_that_is_gone_leaves_an_orphan() -> None:
    views = whole()
    gone = replace(views, members={A: ("entity",), B: ("entity",)}, nodes=views.nodes[:2])
    assert kinds(gone) == {shard: {FaultKind.ORPHAN} for shard in (2, 5, 8, 11)}


def test_an_owner_that_does_not_run_its_shard_leaves_an_orphan() -> None:
    views = whole()
    idle = with_node(views, B, region={s: e for s, e in region_of(views, B).items() if s != 4})
    assert kinds(idle) == {4: {FaultKind.ORPHAN}}
    (fault,) = check(idle)
    assert fault.detail == "placed on b@1, epoch 5, which does not run it; nobody who answered does"
    region = region_of(views, B)
    lifeless = with_node(views, B, region=region, entities={s: e for s, e in region.items() if s != 4})
    assert kinds(lifeless) == {4: {FaultKind.ORPHAN}}


def test_who_does_run_a_shard_that_a_row_changed_by_hand_places_elsewhere_is_named() -> None:
    moved = with_row(whole(), 4, node="c")
    (fault,) = (each for each in check(moved) if each.kind is FaultKind.ORPHAN)
    assert fault.detail == "placed on c@1, epoch 5, which does not run it; b@1 runs it under epoch 5"
    own = with_row(whole(), 4, epoch=6)
    (fault,) = (each for each in check(own) if each.kind is FaultKind.ORPHAN)
    assert fault.detail == "placed on b@1, epoch 6, which runs it under epoch 5"


def test_two_owners_are_duplicates_and_both_are_named() -> None:
    views = whole()
    twice = with_node(views, A, region=region_of(views, A) | {1: 5})
    assert kinds(twice) == {1: {FaultKind.DUPLICATE}}
    (fault,) = check(twice)
    assert "a@1 (epoch 5)" in fault.detail
    assert "b@1 (epoch 5)" in fault.detail
    entities = with_node(views, A, region=region_of(views, A), entities=region_of(views, A) | {1: 5})
    assert kinds(entities) == {1: {FaultKind.DUPLICATE}}, "entities alone are enough"


def test_what_runs_under_an_old_epoch_is_named() -> None:
    views = whole()
    old = with_node(views, A, region=region_of(views, A) | {0: 4})
    assert kinds(old) == {0: {FaultKind.STALE_EPOCH, FaultKind.ORPHAN}}, "nobody runs it under the new one"
    both = with_node(views, A, region=region_of(views, A) | {1: 4})
    assert kinds(both) == {1: {FaultKind.DUPLICATE, FaultKind.STALE_EPOCH}}
    assert views.placing is not None
    behind = replace(views, placing=msgspec.structs.replace(views.placing, epochs=(4, *(5,) * (SHARDS - 1))))
    assert kinds(behind) == {0: {FaultKind.STALE_EPOCH}}


@pytest.mark.parametrize(
    ("move", "stuck"),
    [
        (UnderWay(3, "a@1", "b@1", "asked", "plan", 14_000, 15_000), False),
        (UnderWay(3, "a@1", "b@1", "asked_again", "plan", 16_000, 15_000), True),
        (UnderWay(3, "a@1", "", "ready", "plan", 16_000, 15_000), True),
        (UnderWay(3, "a@1", "b@1", "planned", "plan", 99_000, 0), False),
        (None, True),
    ],
)
def test_a_hand_off_that_takes_too_long_is_stuck(move: UnderWay | None, stuck: bool) -> None:
    views = with_row(whole(), 3, state=ShardState.MOVING)
    assert views.placing is not None
    moves = (move,) if move else ()
    views = replace(views, placing=msgspec.structs.replace(views.placing, moves=moves))
    assert kinds(views) == ({3: {FaultKind.STUCK_HANDOFF}} if stuck else {})


def test_an_owner_without_the_role_is_named() -> None:
    views = whole()
    assert kinds(replace(views, members={**views.members, C: ("api",)})) == {
        shard: {FaultKind.WRONG_ROLE} for shard in (2, 5, 8, 11)
    }


def test_a_shard_without_an_owner_is_named() -> None:
    views = with_row(whole(), 6, node="", incarnation=0, state=ShardState.UNALLOCATED)
    views = with_node(views, A, region={s: e for s, e in region_of(views, A).items() if s != 6})
    assert kinds(views) == {6: {FaultKind.UNALLOCATED}}


@pytest.mark.parametrize(("uneven", "faulty"), [(0, False), (1, False), (2, True)])
def test_load_that_moves_would_even_out_is_named_with_why_they_wait(uneven: int, faulty: bool) -> None:
    views = whole()
    assert views.placing is not None
    placing = msgspec.structs.replace(views.placing, uneven=uneven, why_not_rebalancing=("n4 is joining",))
    found = check(replace(views, placing=placing))
    assert [fault.kind for fault in found] == ([FaultKind.IMBALANCE] if faulty else [])
    assert all("n4 is joining" in fault.detail for fault in found)


def test_load_that_will_be_evened_out_without_anybodys_doing_is_no_fault_and_is_said() -> None:
    views = whole()
    assert views.placing is not None
    due = "the coordinator evens it out in 6 s"
    uneven = replace(views, placing=msgspec.structs.replace(views.placing, uneven=2, balancing=due))
    assert check(uneven) == ()
    assert (unchecked(uneven), balance(uneven)) == ((), f"not yet: 2 moves would even it out; {due}")
    even = replace(views, placing=msgspec.structs.replace(views.placing, balancing=due))
    assert (unchecked(even), balance(even)) == ((), "even")


def test_who_did_not_answer_is_not_judged_but_named() -> None:
    views = whole()
    silent = replace(views, nodes=views.nodes[:2], placing=None)
    assert check(silent) == ()
    assert unchecked(silent) == ("c@1 did not answer", "nobody coordinates the shards")
    assert balance(silent) is None
