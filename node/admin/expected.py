"""How long drains and restarts take here, from those on record: where processes start, shards are the least of it."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from node.core import limits
from node.flows.state import OperationState


def drain_ms(states: Iterable[OperationState]) -> int:
    """Of a drain from its beginning to the end of its process."""
    done = sorted(
        (state.status.started_ms, state.status.ended_ms)
        for state in states
        if state.start.verb == "drain" and state.status.state == "done"
    )
    return _typical([ended - started for started, ended in done], limits.drain_typical_ms)


def turn_ms(states: Iterable[OperationState]) -> int:
    """Of one node's turn in a restart: its drain, its process's start, and until the cluster is whole again."""
    rolls = sorted(
        (state.status.started_ms, state.roll.took_ms)
        for state in states
        if state.start.verb == "restart" and state.roll is not None
    )
    return _typical([took for _, turns in rolls for took in turns], limits.restart_turn_typical_ms)


def _typical(took_ms: list[int], unknown_ms: int) -> int:
    newest = took_ms[-limits.drains_timed :]
    return int(median(newest)) if newest else unknown_ms
