"""Orders of the admin protocol in the name of somebody who is no operator, through the same guard.

What takes something away is staged and committed as everywhere, in one go: a program has nobody to show the plan to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from node.admin import protocol as p
from node.admin.permits import asked_of
from node.http.problem import ProblemError
from node.wire.codec import CODEC
from node.wire.roster import OperatorRole

if TYPE_CHECKING:
    from node.admin.server import AdminServer

_ASK_MS: Final = 5_000


class Orders:
    """Each raises AdminRefusal for what is refused, ProblemError 409 for a plan that breaks a rule."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server

    async def ask(self, who: str, role: OperatorRole, request: msgspec.Struct) -> msgspec.Struct:
        return await self._server.asked(who, role, request, _ASK_MS)

    async def carry_out(self, who: str, role: OperatorRole, order: msgspec.Struct) -> msgspec.Struct:
        """The order's answer; of one that had to be staged, its plan's or its operation's."""
        if not asked_of(order).unstaged:
            return await self.ask(who, role, order)
        name, version, body = CODEC.body_of(order)
        plan = await self.ask(who, role, p.StageOrder(order=name, version=version, body=body))
        assert isinstance(plan, p.Plan)
        if plan.violations:
            raise ProblemError(409, "Conflict", "; ".join(plan.violations))
        return await self.ask(who, role, p.CommitPlan(id=plan.id)) if plan.changed else plan
