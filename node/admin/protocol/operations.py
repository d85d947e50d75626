"""Plans and operations: what a change would do, and how it goes."""

from __future__ import annotations

import msgspec

from node.admin.protocol.cluster import Counter
from node.wire.registry import wire_type


@wire_type("admin.stage_move")
class StageMove(msgspec.Struct, frozen=True, kw_only=True):
    shard: int
    to: str


@wire_type("admin.stage_drain")
class StageDrain(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    force: bool = False


@wire_type("admin.plan_move")
class PlanMove(msgspec.Struct, frozen=True, kw_only=True):
    shard: int
    from_node: str = msgspec.field(name="from", default="")
    to: str = ""
    entities: int = 0
    why: str = ""


@wire_type("admin.plan")
class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a change would do. `changed` false: it already holds, and there is nothing to commit; `operation` is then
    the one that is under way, if one is. `overridden`: rules that `--force` named and that do not stand in its way."""

    id: str
    verb: str
    target: str
    base_version: int
    moves: tuple[PlanMove, ...]
    violations: tuple[str, ...] = ()
    before: tuple[Counter, ...] = ()
    after: tuple[Counter, ...] = ()
    changed: bool = True
    overridden: tuple[str, ...] = ()
    operation: str = ""


@wire_type("admin.commit_plan")
class CommitPlan(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    reason: str = ""
    request_id: str = ""


@wire_type("admin.op_get")
class GetOperation(msgspec.Struct, frozen=True, kw_only=True):
    id: str


@wire_type("admin.op_list_get")
class ListOperations(msgspec.Struct, frozen=True, kw_only=True):
    """`state`: only those in it; empty for all. Newest first."""

    state: str = ""


@wire_type("admin.op_cancel")
class CancelOperation(msgspec.Struct, frozen=True, kw_only=True):
    """Answered by the operation as it is then; cancelling what is over changes nothing."""

    id: str
    reason: str = ""


@wire_type("admin.undrain")
class Undrain(msgspec.Struct, frozen=True, kw_only=True):
    """Cancel the node's drain, whoever started it; answered by Done."""

    node: str
    reason: str = ""


@wire_type("admin.op_phase")
class OperationPhase(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    state: str
    elapsed_s: float
    detail: str = ""
    blockers: tuple[str, ...] = ()


@wire_type("admin.operation")
class Operation(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    verb: str
    target: str
    state: str
    phases: tuple[OperationPhase, ...]
    elapsed_s: float
    result: dict[str, int | float | str | bool] = {}
    started_at: str = ""
    reason: str = ""


@wire_type("admin.op_list")
class OperationList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[Operation, ...]
