"""How long a drain or a node's turn in a restart is expected to take."""

from __future__ import annotations

from node.admin.expected import drain_ms, turn_ms
from node.core import limits
from node.flows.messages import OperationStatus, StartOperation
from node.flows.rolling import Roll
from node.flows.state import OperationState


def operation(
    verb: str, started_ms: int, ended_ms: int, state: str = "done", roll: Roll | None = None
) -> OperationState:
    status = OperationStatus(f"op-{started_ms}", verb, "n1", state, (), started_ms, ended_ms, {}, "")
    return OperationState(StartOperation(verb), status, roll)


def test_what_is_on_record_says_how_long_it_takes_the_newest_only() -> None:
    fast = [operation("drain", at, at + 900) for at in range(1_000, 1_000 + limits.drains_timed)]
    early = [operation("drain", at, at + 90_000) for at in range(100)]
    other = [operation("drain", 9_000, 9_001, "failed"), operation("restart", 9_000, 9_999)]
    assert drain_ms([*fast, *other, *early]) == 900
    rolls = [operation("restart", at, 0, "running", Roll(took_ms=(at, 11_000))) for at in (10_000, 12_000)]
    assert turn_ms([*rolls, *fast]) == 11_000


def test_nothing_on_record_is_no_promise_of_an_instant() -> None:
    assert drain_ms([operation("drain", 1, 2, "failed")]) == limits.drain_typical_ms > 0
    assert turn_ms([operation("restart", 1, 2, roll=Roll())]) == limits.restart_turn_typical_ms > 0
