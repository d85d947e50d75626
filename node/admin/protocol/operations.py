"""Plans and operations: what a change would do, and how it goes."""

from __future__ import annotations

import msgspec

from node.admin.protocol.cluster import Counter
from node.wire.registry import wire_type


@wire_type("admin.stage_move")
class StageMove(msgspec.Struct, frozen=True, kw_only=True):
    shard: int
    to: str
    force: bool = False
    reason: str = ""


@wire_type("admin.stage_pin")
class StagePin(msgspec.Struct, frozen=True, kw_only=True):
    """Pin shards to the node `to`, which may not be there yet; an empty `to` unpins them."""

    shards: tuple[int, ...]
    to: str = ""
    reason: str = ""


@wire_type("admin.stage_cordon")
class StageCordon(msgspec.Struct, frozen=True, kw_only=True):
    """The node gets no more shards (`on`), or may again."""

    node: str
    on: bool = True
    force: bool = False
    reason: str = ""


@wire_type("admin.stage_rebalance")
class StageRebalance(msgspec.Struct, frozen=True, kw_only=True):
    force: bool = False
    reason: str = ""


@wire_type("admin.stage_repair")
class StageRepair(msgspec.Struct, frozen=True, kw_only=True):
    """Mend what a check finds now; `kinds` empty means all that can be mended."""

    kinds: tuple[str, ...] = ()
    reason: str = ""


@wire_type("admin.stage_drain")
class StageDrain(msgspec.Struct, frozen=True, kw_only=True):
    """`force` overrides last-entity-node and what holds for shards, `overrides` the rules it names: last-of-role,
    majority."""

    node: str
    force: bool = False
    overrides: tuple[str, ...] = ()


@wire_type("admin.stage_restart")
class StageRestart(msgspec.Struct, frozen=True, kw_only=True):
    """Every node of the cluster, one after the other, or only `node`; whoever supervises a process starts it again.
    `force` overrides what holds for shards, `overrides` the rules it names, as in a drain of `node`."""

    force: bool = False
    reason: str = ""
    node: str = ""
    overrides: tuple[str, ...] = ()


@wire_type("admin.plan_move")
class PlanMove(msgspec.Struct, frozen=True, kw_only=True):
    """`state`: waiting, moving, moved or dropped; until the plan is committed all of them wait. `keys`: of a repair,
    the first of the `entities` keys that are put at `to` as `from` holds them."""

    shard: int
    from_node: str = msgspec.field(name="from", default="")
    to: str = ""
    entities: int = 0
    why: str = ""
    state: str = "waiting"
    keys: tuple[str, ...] = ()


@wire_type("admin.plan")
class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a change would do, and how far it is. `changed` false: it already holds, and there is nothing to commit;
    `operation` is then the one that is under way, if one is. `overridden`: rules that `--force` named and that do not
    stand in its way. `state`: staged, running, cancelling, done, failed or cancelled."""

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
    notes: tuple[str, ...] = ()
    expected_ms: int = 0
    state: str = "staged"
    reason: str = ""
    staged_at: str = ""
    blockers: tuple[str, ...] = ()


@wire_type("admin.plan_list_get")
class GetPlans(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.plan_list")
class PlanList(msgspec.Struct, frozen=True, kw_only=True):
    """Oldest first."""

    items: tuple[Plan, ...]


@wire_type("admin.plan_get")
class GetPlan(msgspec.Struct, frozen=True, kw_only=True):
    id: str


@wire_type("admin.plan_cancel")
class CancelPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What has moved stays, the rest does not start; answered by the plan as it is then."""

    id: str
    reason: str = ""
    request_id: str = ""


@wire_type("admin.plan_discard")
class DiscardPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Forget a plan that isn't being carried out; answered by the plan as it was."""

    id: str
    reason: str = ""
    request_id: str = ""


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
    request_id: str = ""


@wire_type("admin.undrain")
class Undrain(msgspec.Struct, frozen=True, kw_only=True):
    """Cancel the node's drain, whoever started it; answered by Done."""

    node: str
    reason: str = ""
    request_id: str = ""


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
    result: dict[str, int | float | str | bool | None] = {}
    started_at: str = ""
    reason: str = ""


@wire_type("admin.op_list")
class OperationList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[Operation, ...]
