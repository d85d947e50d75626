"""Goal: the state tables are total, end, and are the only way a move or a local shard changes. Method: enumeration."""

from __future__ import annotations

from itertools import product

import pytest

from node.core.errors import InvariantError
from node.core.ids import NodeId
from node.sharding import handoff, local
from node.sharding.handoff import Move, MoveAction, MoveEvent, MoveState
from node.sharding.local import LocalAction, LocalEvent, LocalState
from node.sharding.placement import PlacementTable, marked, placed
from node.store.port import Placement, ShardRow


def test_every_pair_of_state_and_event_is_listed() -> None:
    assert set(handoff.TABLE) == set(product(MoveState, MoveEvent))
    assert set(local.TABLE) == set(product(LocalState, LocalEvent))


def test_ends_are_ends() -> None:
    for end, event in product((MoveState.DONE, MoveState.DROPPED), MoveEvent):
        state, action = handoff.TABLE[end, event]
        assert state is end
        assert action in (MoveAction.NONE, MoveAction.COUNT_LATE)


def test_every_state_leads_to_an_end() -> None:
    reach = {state: {to for (frm, _), (to, _) in handoff.TABLE.items() if frm is state} for state in MoveState}
    for state in MoveState:
        seen, todo = set(), [state]
        while todo:
            at = todo.pop()
            if at not in seen:
                seen.add(at)
                todo.extend(reach[at])
        assert seen & {MoveState.DONE, MoveState.DROPPED}


def test_once_the_owner_may_have_stopped_only_a_new_epoch_ends_the_move() -> None:
    for state in (MoveState.ASKED, MoveState.ASKED_AGAIN, MoveState.READY):
        ends = {e for e in MoveEvent if handoff.TABLE[state, e][0] in (MoveState.DONE, MoveState.DROPPED)}
        assert ends == {MoveEvent.PLACED}


def test_the_owner_is_forced_only_after_a_second_time_limit() -> None:
    move = Move(1, 4, NodeId("a", 1), NodeId("b", 1), "operator")
    assert move.fire(MoveEvent.MARKED) is MoveAction.ASK
    assert move.fire(MoveEvent.DEADLINE) is MoveAction.ASK
    assert not move.forced
    assert move.fire(MoveEvent.DEADLINE) is MoveAction.FORCE
    assert move.forced
    assert move.state is MoveState.READY


def test_a_shard_starts_only_from_absent() -> None:
    starts = {pair for pair, (_, action) in local.TABLE.items() if action is LocalAction.START}
    assert starts == {(LocalState.ABSENT, LocalEvent.GRANTED)}


def test_a_table_refuses_a_row_that_is_no_news() -> None:
    table = PlacementTable(4)
    row = placed(ShardRow(2), NodeId("a", 1))
    table.apply([row], 1)
    table.apply([marked(row)], 2)
    for old in (row, marked(row)):
        with pytest.raises(InvariantError, match="epoch-went-back"):
            table.apply([old], 3)
    assert table.owned_by(NodeId("a", 1)) == [marked(row)]
    with pytest.raises(InvariantError, match="placement-shard"):
        table.replace(Placement(3, (ShardRow(4),)))
