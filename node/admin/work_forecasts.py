"""What orders about work under way would do: to start a replay, to end operations, plans, drains and replays."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from node.admin import protocol as p
from node.admin.order_plans import Forecast, OrderPlans
from node.admin.outcomes import no_member, read
from node.core.ids import ServiceRef
from node.flows.messages import GetDrainName

if TYPE_CHECKING:
    from node.admin.server import AdminServer

S = TypeVar("S", bound=msgspec.Struct)


class WorkForecasts:
    """Foresees by the order's type."""

    def __init__(self, server: AdminServer, plans: OrderPlans) -> None:
        self._server = server
        plans.forecasts |= {
            p.StartReplay: self.start_replay,
            p.CancelReplay: self.cancel_replay,
            p.CancelOperation: self.cancel_operation,
            p.CancelPlan: self.cancel_plan,
            p.DiscardPlan: self.discard_plan,
            p.Undrain: self.undrain,
        }

    async def start_replay(self, order: p.StartReplay) -> Forecast:
        coverage = await self._read(p.GetCoverage(sites=order.sites), p.Coverage)
        told = [site for site in coverage.sites if site.expected is not None]
        sites = [site for site in told if site.missing or not order.missing]
        empty = sum(len(site.missing) for site in sites)
        unknown = coverage.unknown_sites
        more = (f"{unknown} sites do not tell now what is empty in them",) if unknown else ()
        return Forecast(notes=(f"{len(sites)} sites, in which {empty} slots are empty now", *more))

    async def cancel_replay(self, order: p.CancelReplay) -> Forecast:
        found = await self._read(p.GetReplay(id=order.id), p.Replay)
        left = found.pages.total - found.pages.replayed - found.pages.ignored - found.pages.failed
        notes = (f"{left} of {found.pages.total} pages stay as they are",)
        return Forecast(changed=found.state == "running", notes=notes)

    async def cancel_operation(self, order: p.CancelOperation) -> Forecast:
        found = await self._read(p.GetOperation(id=order.id), p.Operation)
        at = next((phase.name for phase in found.phases if phase.state == "running"), "")
        where = f"{found.verb} {found.target} ends where it stands" + (f": in {at}" if at else "")
        return Forecast(changed=found.state == "running", notes=(where,))

    async def cancel_plan(self, order: p.CancelPlan) -> Forecast:
        found = await self._read(p.GetPlan(id=order.id), p.Plan)
        waiting = sum(move.state == "waiting" for move in found.moves)
        return Forecast(changed=found.state in ("staged", "running"), notes=(f"{waiting} moves do not start",))

    async def discard_plan(self, order: p.DiscardPlan) -> Forecast:
        found = await self._read(p.GetPlan(id=order.id), p.Plan)
        if found.state in ("running", "cancelling"):
            return Forecast(violations=(f"{found.id} is being carried out: cancel it first",))
        return Forecast(notes=(f"{found.verb} {found.target} is forgotten",))

    async def undrain(self, order: p.Undrain) -> Forecast:
        members = self._server.engine.view.members
        if order.node not in members:
            raise no_member(self._server.engine, order.node)
        named = await read(self._server.engine, ServiceRef(order.node, "/node"), GetDrainName())
        notes = (f"{named.operation} ends; what has moved stays where it is",)
        return Forecast(changed=named.active, notes=notes if named.active else ())

    async def _read(self, request: msgspec.Struct, answer: type[S]) -> S:
        found, _ = await self._server.handlers[type(request)](request, self._server.meta())
        assert isinstance(found, answer)
        return found
