"""Asks that wait for their outcome: matched by number, ended by their deadline, each exactly once.

A number holds the low bits of this node's incarnation, so that a reply meant for an earlier start matches nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from node.actors.actor import Failed, Failure
from node.actors.timers import Timers
from node.core import limits
from node.core.ids import EntityRef, NodeId
from node.wire.registry import Lane, wire_type

if TYPE_CHECKING:
    from node.actors.cell import Cell

_COUNTER_BITS = 40
_INCARNATION_MASK = (1 << 22) - 1


@wire_type("actors.failed", version=1, lane=Lane.DATA)
class FailedReply(msgspec.Struct, frozen=True):
    """Why an ask of another node has no answer; `failure` is a `Failure`, or one of a newer release."""

    failure: str
    detail: str = ""


def to_wire(failed: Failed) -> FailedReply:
    return FailedReply(failed.failure.value, failed.detail)


def from_wire(message: msgspec.Struct) -> Failed:
    """What a peer's rejection says; one that can't be understood counts as indefinite."""
    if not isinstance(message, FailedReply):
        return Failed(Failure.FAILED, f"rejected with {type(message).__name__}")
    try:
        return Failed(Failure(message.failure), message.detail)
    except ValueError:
        return Failed(Failure.FAILED, f"{message.failure}: {message.detail}")


class Ask:
    """One open ask, of a cell (`cell`) or of code outside (None)."""

    __slots__ = ("_table", "cell", "correlation", "live", "then", "trace")

    def __init__(self, table: Asks, correlation: int, cell: Cell | None, then: Callable[[Any], object], trace: str):
        self.live = True
        self._table = table
        self.correlation = correlation
        self.cell = cell
        self.then = then
        self.trace = trace

    def fire(self, now_ns: int) -> None:
        self.live = False
        self._table.expire(self)


class Asks:
    """The table of open asks; `on_outcome(ask, outcome)` is called once for each."""

    def __init__(self, me: NodeId, timers: Timers, on_outcome: Callable[[Ask, object], None]) -> None:
        self._first = (me.incarnation & _INCARNATION_MASK) << _COUNTER_BITS
        self._made = 0
        self._open: dict[int, Ask] = {}
        self._timers = timers
        self._on_outcome = on_outcome
        self.late = 0
        self.timeouts = 0

    def __len__(self) -> int:
        return len(self._open)

    @property
    def full(self) -> bool:
        return len(self._open) >= limits.asks_open_max

    def counts(self) -> dict[str, int]:
        """For `stats`. `asks_stale`: open although their outcome was given; always 0."""
        return {
            "asks_open": len(self._open),
            "asks_late": self.late,
            "asks_timed_out": self.timeouts,
            "asks_stale": sum(not ask.live for ask in self._open.values()),
        }

    def askers(self) -> dict[EntityRef | None, int]:
        """How many asks are open, by who asked; None stands for code outside actors."""
        found: dict[EntityRef | None, int] = {}
        for ask in self._open.values():
            who = None if ask.cell is None else ask.cell.ref
            found[who] = found.get(who, 0) + 1
        return found

    def open(self, cell: Cell | None, then: Callable[[Any], object], now_ns: int, timeout_ns: int, trace: str) -> int:
        """A new ask's number."""
        self._made += 1
        correlation = self._first + self._made
        ask = self._open[correlation] = Ask(self, correlation, cell, then, trace)
        self._timers.add_after(now_ns, timeout_ns, ask)
        return correlation

    def resolve(self, correlation: int, outcome: object) -> None:
        """The outcome of an ask; one that is not open (answered, timed out, of an earlier start) is counted."""
        ask = self._open.pop(correlation, None)
        if ask is None:
            self.late += 1
            return
        ask.live = False
        self._on_outcome(ask, outcome)

    def expire(self, ask: Ask) -> None:
        """Its deadline has passed."""
        del self._open[ask.correlation]
        self.timeouts += 1
        self._on_outcome(ask, Failed(Failure.TIMEOUT))
