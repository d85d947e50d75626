"""What nodes tell each other of the plans that they hold, and of what was done by them, under `/node`."""

from __future__ import annotations

import msgspec

from node.admin.protocol.envelope import AdminError
from node.admin.protocol.operations import Operation, Plan
from node.wire.registry import wire_type


@wire_type("node.held_get")
class GetHeld(msgspec.Struct, frozen=True):
    """Those of these names, of plans or of operations; all when it names none."""

    names: tuple[str, ...] = ()


@wire_type("node.held")
class Held(msgspec.Struct, frozen=True):
    """Plans that wait at the node, and operations that are over there; oldest first."""

    node: str
    plans: tuple[Plan, ...] = ()
    operations: tuple[Operation, ...] = ()


@wire_type("node.held_discard")
class DiscardHeld(msgspec.Struct, frozen=True):
    """Forget a plan; answered by what was forgotten."""

    id: str


@wire_type("node.held_commit")
class CommitHeld(msgspec.Struct, frozen=True):
    """Carry a plan out for an operator `by` name, whom the node that was asked knows in `role` (empty: itself).
    `for_ms`: how long whoever asked waits."""

    id: str
    reason: str
    request_id: str
    by: str
    role: str
    for_ms: int


@wire_type("node.held_committed")
class HeldCommitted(msgspec.Struct, frozen=True):
    """What came of it; `refused` when nothing did."""

    operation: Operation | None = None
    refused: AdminError | None = None
