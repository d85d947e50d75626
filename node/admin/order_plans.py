"""Orders that were staged: a plan of what each would do, and its carrying out once that is committed.

What an order would do is told by whoever knows (`forecasts`); of one that nobody forecasts the plan says what it is.
The order is carried out by the handler that would have got it without a plan: there is no other way to change anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from node.admin import protocol as p
from node.admin.held_plans import HeldPlans, Result
from node.admin.outcomes import USAGE
from node.admin.permits import asked_of, ordered

if TYPE_CHECKING:
    from node.admin.server import AdminServer


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What an order would do now: whether it changes anything, why it would be refused, and the rest in words."""

    changed: bool = True
    violations: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


Foresee = Callable[[Any], Awaitable[Forecast]]  # raises what the order's handler would raise


class OrderPlans:
    """The handler; `forecasts` by the order's type."""

    def __init__(self, server: AdminServer, held: HeldPlans) -> None:
        self._server = server
        self._held = held
        self.forecasts: dict[type[msgspec.Struct], Foresee] = {}
        server.handlers[p.StageOrder] = self.stage

    async def stage(self, request: p.StageOrder, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        order = ordered(request)
        if order is None:
            text = f"{request.order[:60]!r} is no order that could be staged"
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, about="order")
        foresee = self.forecasts.get(type(order))
        forecast = await foresee(order) if foresee is not None else Forecast()
        asked = asked_of(order)
        plan = self._held.hold(
            asked.verb.partition(" ")[2],
            asked.object or asked.verb,
            lambda _reason: self._carry_out(order, call),
            violations=forecast.violations,
            changed=forecast.changed,
            notes=forecast.notes,
            reason=request.reason,
        )
        return plan, call

    async def _carry_out(self, order: msgspec.Struct, call: p.Meta) -> Result:
        answer, _ = await self._server.handlers[type(order)](order, call)
        found: Result = {"changed": bool(getattr(answer, "changed", True))}
        sites = answer.sites if isinstance(answer, p.Approved | p.Revoked) else None
        return found if sites is None else {**found, "sites": ", ".join(sites)}
