"""An operation on a node or a shard: durable at the cluster, asked and not remembered.

```
drain: running ──the node left, every phase ended by itself──▶ done
          ├──────the node left, a phase overran or was skipped──▶ failed
          ├──────the node is no member any more before it left──▶ failed (interrupted at a named phase)
          └──────somebody cancels, and the node has not begun to flush──▶ cancelled
plan:  running ──the coordinator says how the plan ended──▶ done, failed or cancelled
          └──────it has forgotten the plan──▶ failed
restart: see `flows.rolling`
```

Its entity moves with its shard, also away from the node that it drains. One that ended long ago deletes itself.
"""

from __future__ import annotations

from typing import Any

import msgspec

from node.actors.actor import Context, ReplyTo
from node.core.ids import ServiceRef
from node.flows import drain_outcome, plan_outcome
from node.flows.cluster import Cluster
from node.flows.messages import (
    BeginDrain,
    CancelDrain,
    CancelOperation,
    Counts,
    DrainCancelled,
    DrainProgress,
    GetOperation,
    OperationStatus,
    Phase,
    Recorded,
    StartOperation,
)
from node.flows.restart import Restart
from node.flows.retention import outlived
from node.flows.state import OperationState
from node.sharding.requests import Cancel, Declined, GetPlans, PlanView, PlanViews

POLL_MS = 300
CANCEL_TIMEOUT_MS = 2_000
PLAN_TIMEOUT_MS = 2_000


class _Poll(msgspec.Struct, frozen=True):
    pass


class _PlanSeen(msgspec.Struct, frozen=True):
    outcome: Any


class _PlanCancelled(msgspec.Struct, frozen=True):
    outcome: Any
    asker: Any


class _CancelAnswered(msgspec.Struct, frozen=True):
    outcome: Any
    asker: Any


class Operation:
    """Durable, remembered."""

    def __init__(self, operation: str, cluster: Cluster) -> None:
        self._id = operation
        self._cluster = cluster
        self._state: OperationState | None = None
        self._asked = False
        self._sequence = 0
        self._restart: Restart | None = None

    def start(self, ctx: Context, state: OperationState | None) -> None:
        if state is not None and outlived(state.status, ctx.wall_ms()):
            ctx.delete()
            return
        self._state = state
        if state is not None and state.start.verb == "restart":
            self._restart = Restart(self._cluster, state)
            self._restart.start(ctx)
        elif state is not None and state.status.state == "running":
            ctx.every("poll", POLL_MS, _Poll(), first_ms=0)

    def receive(self, ctx: Context, message: Any) -> None:
        if isinstance(message, StartOperation):
            self._begin(ctx, message)
            return
        if self._restart is not None:
            self._restart.receive(ctx, message)
            return
        state = self._state
        if state is None:
            ctx.reject(f"there is no operation {self._id!r}")
            ctx.passivate()
            return
        match message:
            case GetOperation():
                ctx.reply(state.status)
            case _Poll() if state.status.state == "running":
                self._poll(ctx, state)
            case DrainProgress():
                self._progress(ctx, state, message)
            case DrainCancelled(why_not=""):
                self._cancelled(ctx, state, message)
            case CancelOperation():
                self._cancel(ctx, state)
            case _CancelAnswered(outcome, asker):
                self._cancel_answered(ctx, state, outcome, asker)
            case _PlanCancelled(outcome, asker):
                self._plan_cancelled(ctx, state, outcome, asker)
            case _PlanSeen(outcome) if state.status.state == "running":
                self._plan_seen(ctx, state, outcome)
            case _Poll() | _PlanSeen():
                pass  # it has ended
            case _:
                ctx.reject(f"an operation does not understand {type(message).__name__}")

    def _begin(self, ctx: Context, message: StartOperation) -> None:
        if self._state is not None:
            ctx.reply_durable(self._restart.status if self._restart is not None else self._state.status)
            return
        target = message.node if message.verb == "drain" else message.target
        status = OperationStatus(self._id, message.verb, target, "running", (), ctx.wall_ms(), 0, {}, message.reason)
        self._state = OperationState(message, status)
        ctx.persist(self._state, reply=status)
        self.start(ctx, self._state)

    def _poll(self, ctx: Context, state: OperationState) -> None:
        if state.start.verb == "drain":
            self._poll_drain(ctx, state)
        elif not self._asked:
            self._ask_plan(ctx, state)

    def _poll_drain(self, ctx: Context, state: OperationState) -> None:
        start, status = state.start, state.status
        if self._cluster.is_member(start.node, start.incarnation):
            ctx.tell(ServiceRef(start.node, "/node"), BeginDrain(self._id, start.incarnation))
            waiting = drain_outcome.waiting(start.node, status.phases, reachable=self._cluster.reachable(start.node))
            if waiting != status.phases:
                self._state = msgspec.structs.replace(state, status=msgspec.structs.replace(status, phases=waiting))
                ctx.persist(self._state)
            return
        how = self._cluster.how_ended(start.node, start.incarnation)
        self._end(ctx, state, *drain_outcome.ended(status.phases, how))

    def _progress(self, ctx: Context, state: OperationState, progress: DrainProgress) -> None:
        recorded = Recorded(progress.sequence)
        if state.status.state != "running" or progress.sequence < self._sequence:
            ctx.reply_durable(recorded)
            return
        self._sequence = progress.sequence
        result = drain_outcome.counted(progress)
        known = [(p.name, p.state) for p in state.status.phases]
        status = msgspec.structs.replace(state.status, phases=progress.phases, result=result)
        self._state = msgspec.structs.replace(state, status=status)
        if known != [(p.name, p.state) for p in progress.phases] or state.status.result != result:
            ctx.persist(self._state, reply=recorded)
        else:
            ctx.reply_durable(recorded)

    def _cancel(self, ctx: Context, state: OperationState) -> None:
        if state.status.state != "running":
            ctx.reply_durable(state.status)
        elif state.start.verb != "drain":
            self._cancel_plan(ctx, state)
        else:
            asker = ctx.reply_later()
            order = CancelDrain(state.start.incarnation)
            node = ServiceRef(state.start.node, "/node")
            ctx.ask(node, order, CANCEL_TIMEOUT_MS, lambda outcome: _CancelAnswered(outcome, asker))

    def _cancel_answered(self, ctx: Context, state: OperationState, outcome: Any, asker: ReplyTo) -> None:
        if not isinstance(outcome, DrainCancelled):
            ctx.answer_reject(asker, f"try again: {state.start.node} did not answer, so it drains on")
        elif outcome.why_not:
            ctx.answer_reject(asker, f"conflict: {outcome.why_not}")
        else:
            ctx.answer(asker, self._cancelled(ctx, state, outcome))

    def _cancelled(self, ctx: Context, state: OperationState, outcome: DrainCancelled) -> OperationStatus:
        if state.status.state == "running":
            last = outcome.progress
            phases = drain_outcome.stopped_at(last.phases if last else state.status.phases, "cancelled")
            self._end(ctx, state, "cancelled", phases, drain_outcome.counted(last) if last else {})
        return (self._state or state).status

    def _ask_plan(self, ctx: Context, state: OperationState) -> None:
        coordinator = self._cluster.coordinator_node()
        if coordinator is None or not self._cluster.reachable(coordinator):
            self._plan_stands(state, plan_outcome.leaderless(state.status.phases, coordinator), {})
        if coordinator is not None:
            self._asked = True
            ctx.ask(ServiceRef(coordinator, "/node"), GetPlans(state.start.plan), PLAN_TIMEOUT_MS, _PlanSeen)

    def _plan_seen(self, ctx: Context, state: OperationState, outcome: Any) -> None:
        """Anything but an answer means that somebody else coordinates, or soon will: the next poll asks them."""
        self._asked = False
        if isinstance(outcome, Declined) and outcome.reason == "no_such_plan":
            self._end(ctx, state, "failed", state.status.phases, {"reason": "the coordinator has forgotten the plan"})
        if not isinstance(outcome, PlanViews) or not outcome.items:
            return
        view = outcome.items[0]
        phases = (plan_outcome.phase(view, ctx.wall_ms() - state.status.started_ms),)
        over = plan_outcome.ended(view)
        if over:
            self._end(ctx, state, over, phases, plan_outcome.result(view))
            return
        self._plan_stands(state, phases, plan_outcome.result(view))

    def _plan_stands(self, state: OperationState, phases: tuple[Phase, ...], result: Counts) -> None:
        """How far it is stands in the placement table: nothing is lost when this is not written down."""
        status = msgspec.structs.replace(state.status, phases=phases, result={**state.status.result, **result})
        self._state = msgspec.structs.replace(state, status=status)

    def _cancel_plan(self, ctx: Context, state: OperationState) -> None:
        coordinator = self._cluster.coordinator_node()
        if coordinator is None:
            ctx.reject("conflict: nobody coordinates the shards now, so nothing moves; try again")
            return
        asker = ctx.reply_later()
        order = Cancel(state.start.plan)
        ctx.ask(
            ServiceRef(coordinator, "/node"), order, CANCEL_TIMEOUT_MS, lambda outcome: _PlanCancelled(outcome, asker)
        )

    def _plan_cancelled(self, ctx: Context, state: OperationState, outcome: Any, asker: ReplyTo) -> None:
        if isinstance(outcome, PlanView):
            ctx.answer(asker, state.status)
        else:
            why = outcome.detail or outcome.reason if isinstance(outcome, Declined) else "no answer"
            ctx.answer_reject(asker, f"conflict: the coordinator did not cancel it ({why}); try again")

    def _end(
        self, ctx: Context, state: OperationState, outcome: str, phases: tuple[Phase, ...], result: Counts
    ) -> None:
        ctx.cancel("poll")
        status = msgspec.structs.replace(
            state.status,
            state=outcome,
            phases=phases,
            ended_ms=ctx.wall_ms(),
            result={**state.status.result, **result},
        )
        self._state = msgspec.structs.replace(state, status=status)
        ctx.persist(self._state)
