"""Plans that another node holds, and what was done there: whichever node is asked, the answer is the same.

A name does not say which node holds what it stands for. What neither this node nor the cluster's record knows is asked
of all the others; while one of them is silent, nobody can say that there is none.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from node.admin import protocol as p
from node.admin.asking import TIMEOUT_MS_MAX, patience_ms
from node.admin.caller import ASKED_BY, ROLE
from node.admin.held_messages import CommitHeld, DiscardHeld, GetHeld, Held, HeldCommitted
from node.admin.held_plans import HeldPlans
from node.admin.outcomes import FAILED, NO_ANSWER, NOT_FOUND, TIMED_OUT, ask
from node.core.ids import ServiceRef
from node.core.limits import operations_listed_max
from node.wire.envelope import Envelope
from node.wire.roster import OperatorRole

if TYPE_CHECKING:
    from node.admin.server import AdminServer

# Of these answers none says that what was asked for is not held by somebody.
_UNKNOWN: Final = (NOT_FOUND, FAILED, TIMED_OUT)


class HeldElsewhere:
    """Both sides: what this node holds is told to the others, and theirs is told to whoever asks here."""

    def __init__(self, server: AdminServer, held: HeldPlans) -> None:
        self._server = server
        self._engine = server.engine
        self._held = held
        self._tasks: set[asyncio.Task[None]] = set()
        self._here = dict(server.handlers)
        server.handlers |= {
            p.GetPlans: self.plans,
            p.ListOperations: self.operations,
            p.GetPlan: self.plan,
            p.DiscardPlan: self.discard,
            p.CommitPlan: self.commit,
            p.GetOperation: self.operation,
            p.CancelOperation: self.operation,
        }
        self._engine.services |= {
            GetHeld: self._held_wanted,
            DiscardHeld: self._discard_wanted,
            CommitHeld: self._commit_wanted,
        }

    # ---- for an operator who asks here

    async def plans(self, request: p.GetPlans, call: p.Meta) -> tuple[p.PlanList, p.Meta]:
        """Oldest first."""
        (found, meta), (others, missing) = await asyncio.gather(self._here[p.GetPlans](request, call), self._others())
        assert isinstance(found, p.PlanList)
        items = (*found.items, *(plan for held in others for plan in held.plans))
        listed = p.PlanList(items=tuple(sorted(items, key=lambda plan: plan.staged_at)))
        return listed, self._server.with_missing(meta, missing)

    async def operations(self, request: p.ListOperations, call: p.Meta) -> tuple[p.OperationList, p.Meta]:
        """Newest first."""
        (found, meta), (others, missing) = await asyncio.gather(
            self._here[p.ListOperations](request, call), self._others()
        )
        assert isinstance(found, p.OperationList)
        done = (one for held in others for one in held.operations if request.state in ("", one.state))
        items = sorted((*found.items, *done), key=lambda one: one.started_at, reverse=True)
        return p.OperationList(items=tuple(items[:operations_listed_max])), self._server.with_missing(meta, missing)

    async def plan(self, request: p.GetPlan, call: p.Meta) -> tuple[msgspec.Struct, p.Meta]:
        try:
            return await self._here[p.GetPlan](request, call)
        except p.AdminRefusal as refused:
            return (await self._holder(refused, request.id)).plans[0], call

    async def operation(
        self, request: p.GetOperation | p.CancelOperation, call: p.Meta
    ) -> tuple[msgspec.Struct, p.Meta]:
        """What was done there is over: cancelling it changes nothing."""
        try:
            return await self._here[type(request)](request, call)
        except p.AdminRefusal as refused:
            return (await self._holder(refused, request.id)).operations[0], call

    async def discard(self, request: p.DiscardPlan, call: p.Meta) -> tuple[msgspec.Struct, p.Meta]:
        try:
            return await self._here[p.DiscardPlan](request, call)
        except p.AdminRefusal as refused:
            holder = await self._holder(refused, request.id)
            found = await ask(self._engine, ServiceRef(holder.node, "/node"), DiscardHeld(request.id))
            return (found.plans or holder.plans)[0], call

    async def commit(self, request: p.CommitPlan, call: p.Meta) -> tuple[msgspec.Struct, p.Meta]:
        try:
            return await self._here[p.CommitPlan](request, call)
        except p.AdminRefusal as refused:
            holder = await self._holder(refused, request.id, request.request_id or request.id)
        if holder.operations:  # done before: its answer was lost, or was given by another node
            return holder.operations[0], call
        role, for_ms = ROLE.get(), patience_ms(self._engine.world.clock, TIMEOUT_MS_MAX)
        message = CommitHeld(
            request.id, request.reason, request.request_id, ASKED_BY.get(), role.value if role else "", for_ms
        )
        found: HeldCommitted = await ask(self._engine, ServiceRef(holder.node, "/node"), message, for_ms)
        answer = found.operation or found.refused
        assert answer is not None
        return answer, call

    async def _holder(self, refused: p.AdminRefusal, *names: str) -> Held:
        """What the node that holds one of these names says of it. Raises `refused` again where there is none, and says
        who may hold it where not all could be asked."""
        if refused.exit_status not in _UNKNOWN:
            raise refused
        others, missing = await self._others(*names)
        holder = next((held for held in others if held.plans or held.operations), None)
        if holder is not None:
            return holder
        if not missing or refused.exit_status != NOT_FOUND:
            raise refused
        silent = ", ".join(each.node for each in missing)
        text = f"{refused.message} at the nodes that answer; {silent} may hold it and does not answer"
        hint = "ask again, or: promovolvectl cluster health"
        raise p.AdminRefusal(TIMED_OUT, NO_ANSWER, text, hint=hint, about=refused.about)

    async def _others(self, *names: str) -> tuple[list[Held], tuple[p.Missing, ...]]:
        others = self._engine.view.members.keys() - {self._engine.me.name}
        found, missing = await self._server.gatherer.each(others, GetHeld(names), Held)
        return found, tuple(missing)

    # ---- for another node

    def _held_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetHeld):
            self._engine.reply(envelope, self._known(*envelope.message.names))

    def _discard_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, DiscardHeld):
            plan = self._held.forget(envelope.message.id)
            self._engine.reply(envelope, Held(self._engine.me.name, (plan,) if plan is not None else ()))

    def _commit_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, CommitHeld):
            task = asyncio.create_task(self._committed(envelope, envelope.message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _committed(self, envelope: Envelope, order: CommitHeld) -> None:
        """In the name of whoever asked, whom the node that was asked has let pass and put on record."""
        ASKED_BY.set(order.by)
        ROLE.set(OperatorRole(order.role) if order.role else None)
        request = p.CommitPlan(id=order.id, reason=order.reason, request_id=order.request_id)
        answer, _ = await self._server.carried_out(
            self._held.commit, order.by, order.for_ms, request, self._server.meta()
        )
        if isinstance(answer, p.AdminError):
            self._engine.reply(envelope, HeldCommitted(refused=answer))
        elif isinstance(answer, p.Operation):
            self._engine.reply(envelope, HeldCommitted(answer))

    def _known(self, *names: str) -> Held:
        plans, operations = self._held.waiting(), self._held.over()
        if names:
            plans = tuple(plan for plan in plans if plan.id in names)
            operations = tuple(one for one in operations if one.id in names or one.id.removeprefix("op-") in names)
        return Held(self._engine.me.name, plans, operations)
