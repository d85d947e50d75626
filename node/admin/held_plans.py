"""Plans that the node which was asked carries out itself, at once, rather than the coordinator over time.

A change is done when its commit is answered, so the Operation that comes back is over; it is kept here, bounded, so
that it is listed, a repeated commit is answered, and nothing is done twice. Other nodes ask for both
(`held_elsewhere.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from node.admin import protocol as p
from node.admin.caller import ASKED_BY, NEEDED, ROLE
from node.admin.outcomes import CONFLICT
from node.admin.permits import allows
from node.core.clock import rfc3339
from node.core.limits import operations_listed_max, plans_kept_max
from node.wire.roster import OperatorRole

if TYPE_CHECKING:
    from node.admin.server import AdminServer

Result = dict[str, int | float | str | bool | None]
# (reason) -> what came of it; `missed_count` above zero means that it failed. Raises AdminRefusal.
CarryOut = Callable[[str], Awaitable[Result]]
Kept = TypeVar("Kept")


class HeldPlans:
    """Commits what was held here and tells of it; a plan that was not goes on to who staged it."""

    def __init__(self, server: AdminServer) -> None:
        self._engine = server.engine
        self._server = server
        self._plans: OrderedDict[str, tuple[p.Plan, CarryOut, OperatorRole]] = OrderedDict()
        self._done: OrderedDict[str, p.Operation] = OrderedDict()
        self._under_way: set[str] = set()
        self._others = dict(server.handlers)
        server.handlers |= {
            p.CommitPlan: self.commit,
            p.GetPlan: self.plan,
            p.GetPlans: self.plans,
            p.DiscardPlan: self.discard,
            p.GetOperation: self.operation,
            p.CancelOperation: self.operation,
            p.ListOperations: self.operations,
        }

    def hold(
        self,
        verb: str,
        target: str,
        carry_out: CarryOut,
        *,
        moves: tuple[p.PlanMove, ...] = (),
        violations: tuple[str, ...] = (),
        changed: bool = True,
        overridden: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
        before: tuple[p.Counter, ...] = (),
        after: tuple[p.Counter, ...] = (),
        reason: str = "",
    ) -> p.Plan:
        """A plan under a new id; `carry_out` is awaited once, when it is committed. That takes the role that
        staging took."""
        plan = p.Plan(
            id=f"p-{self._engine.world.rng.getrandbits(40):010x}",
            verb=verb,
            target=target,
            base_version=self._engine.sharding.region.version,
            moves=moves,
            violations=violations,
            changed=changed,
            overridden=overridden,
            notes=notes,
            before=before,
            after=after,
            reason=reason,
            staged_at=rfc3339(self._engine.world.clock.wall_ms()),
        )
        _keep(self._plans, plan.id, (plan, carry_out, NEEDED.get()))
        return plan

    def staged(self, name: str) -> tuple[str, str] | None:
        """The verb and the target of a plan that waits here."""
        held = self._plans.get(name)
        return (held[0].verb, held[0].target) if held is not None else None

    def waiting(self) -> tuple[p.Plan, ...]:
        """The plans that wait here, oldest first."""
        return tuple(plan for plan, _, _ in self._plans.values())

    def over(self) -> tuple[p.Operation, ...]:
        """What was done here, oldest first."""
        return tuple(self._done.values())

    def forget(self, name: str) -> p.Plan | None:
        """Takes a plan away that waits here."""
        held = self._plans.pop(name, None)
        return held[0] if held is not None else None

    async def plan(self, request: p.GetPlan, call: p.Meta) -> tuple[msgspec.Struct, p.Meta]:
        held = self._plans.get(request.id)
        return (held[0], call) if held is not None else await self._others[p.GetPlan](request, call)

    async def plans(self, request: p.GetPlans, call: p.Meta) -> tuple[p.PlanList, p.Meta]:
        """Those of the coordinator, then those that wait here."""
        found, meta = await self._others[p.GetPlans](request, call)
        assert isinstance(found, p.PlanList)
        return p.PlanList(items=(*found.items, *self.waiting())), meta

    async def discard(self, request: p.DiscardPlan, call: p.Meta) -> tuple[msgspec.Struct, p.Meta]:
        plan = self.forget(request.id)
        return (plan, call) if plan is not None else await self._others[p.DiscardPlan](request, call)

    async def operation(
        self, request: p.GetOperation | p.CancelOperation, call: p.Meta
    ) -> tuple[msgspec.Struct, p.Meta]:
        """What was done here is over: cancelling it changes nothing."""
        held = self._done.get(request.id.removeprefix("op-"))
        return (held, call) if held is not None else await self._others[type(request)](request, call)

    async def operations(self, request: p.ListOperations, call: p.Meta) -> tuple[p.OperationList, p.Meta]:
        """Those that are on record at the cluster and those that were done here, newest first."""
        found, meta = await self._others[p.ListOperations](request, call)
        assert isinstance(found, p.OperationList)
        here = (done for done in self.over() if request.state in ("", done.state))
        items = sorted((*found.items, *here), key=lambda done: done.started_at, reverse=True)
        return p.OperationList(items=tuple(items[:operations_listed_max])), meta

    async def commit(self, request: p.CommitPlan, call: p.Meta) -> tuple[msgspec.Struct, p.Meta]:
        key = request.request_id or request.id
        if key in self._done:
            return self._done[key], call
        if request.id not in self._plans:
            return await self._others[p.CommitPlan](request, call)
        plan, carry_out, needed = self._plans[request.id]
        if not allows(ROLE.get(), needed):
            what = f"committing {plan.id}, {plan.verb},"
            raise self._server.guard.not_allowed(ASKED_BY.get(), ROLE.get(), needed, what)
        if not plan.changed or plan.violations:
            text = "; ".join(plan.violations) or "the plan changes nothing"
            raise p.AdminRefusal(CONFLICT, "E-NOTHING-TO-DO", text, about=plan.target)
        if plan.id in self._under_way:
            text = f"{plan.id} is being carried out"
            raise p.AdminRefusal(CONFLICT, "E-CONFLICT", text, hint="promovolvectl op list", about=plan.target)
        begun_ns = self._engine.world.clock.mono_ns()
        self._under_way.add(plan.id)
        try:
            result = await carry_out(request.reason)
        finally:
            self._under_way.discard(plan.id)
        operation = p.Operation(
            id=f"op-{key}",
            verb=plan.verb,
            target=plan.target,
            state="failed" if result.get("missed_count") else "done",
            phases=(),
            elapsed_s=(self._engine.world.clock.mono_ns() - begun_ns) / 1e9,
            result=result,
            started_at=rfc3339(self._engine.world.clock.wall_ms()),
            reason=request.reason,
        )
        self._plans.pop(request.id, None)
        _keep(self._done, key, operation)
        return operation, call


def _keep(kept: OrderedDict[str, Kept], key: str, value: Kept) -> None:
    kept[key] = value
    while len(kept) > plans_kept_max:
        kept.popitem(last=False)
