"""Requests of who looks for a fault: who sees whom, how one node stands, what stands still, rates, an entity's owners.

All of them gather at once, with a deadline for each node, and name who is silent.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from node.admin import protocol as p
from node.admin import views
from node.admin.asking import patience_ms
from node.admin.coordinator import ask_coordinator
from node.admin.diagnosis_views import cluster_views, member_list, node_status, owners, rates
from node.admin.gather import NODE_DEADLINE_MS
from node.admin.outcomes import check_type, no_member, read
from node.admin.protocol import diagnosis as d
from node.core import limits
from node.core.clock import MS
from node.core.hashing import shard_of
from node.core.ids import ServiceRef
from node.engine import actor_messages as a
from node.engine import diagnosis_messages as n
from node.engine.messages import GetNodeReport, NodeReport
from node.sharding import requests as r
from node.sharding.book import History

if TYPE_CHECKING:
    from node.admin.server import AdminServer

INTERVAL_MS = (100, 10_000)  # of rates: shorter counts noise, longer than this nobody waits


class DiagnosisRequests:
    """Handlers by request type."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers |= {
            d.GetMembers: self.members,
            d.GetViews: self.views,
            d.GetNodeStatus: self.status,
            d.GetStuck: self.stuck,
            d.GetRates: self.rates,
            d.GetEntityPlace: self.place,
            d.GetEntityHistory: self.history,
        }

    # ---- membership

    async def members(self, request: d.GetMembers, call: p.Meta) -> tuple[d.MemberList, p.Meta]:
        name = self._one(request.node or self._engine.me.name)
        report = await read(self._engine, ServiceRef(name, "/node"), n.GetView(), NODE_DEADLINE_MS)
        return member_list(report), call

    async def views(self, _request: d.GetViews, call: p.Meta) -> tuple[d.ClusterViews, p.Meta]:
        reports, missing = await self._server.gatherer.each(self._engine.view.members, n.GetView(), n.ViewReport)
        return cluster_views(reports), self._server.with_missing(call, tuple(missing))

    # ---- nodes

    async def status(self, request: d.GetNodeStatus, call: p.Meta) -> tuple[d.NodeStatus, p.Meta]:
        name = self._one(request.node)
        found, missing = await self._server.gatherer.each([name], GetNodeReport(coverage=False), NodeReport)
        report = next(iter(found), None)
        homes = self._engine.sharding.region.homes()
        rows = views.node_rows(self._engine.view, {name: report} if report else {}, homes)
        row = next(row for row in rows if row.name == name)
        return node_status(row, report), self._server.with_missing(call, tuple(missing))

    async def stuck(self, request: d.GetStuck, call: p.Meta) -> tuple[d.StuckList, p.Meta]:
        after_ms = request.after_ms or limits.stuck_after_ms
        waited_ms = patience_ms(self._engine.world.clock, NODE_DEADLINE_MS)
        reports, missing = await self._server.gatherer.each(
            self._some(request.node), n.GetStuck(after_ms), n.StuckReport
        )
        items = [
            d.StuckItem(node=report.node, what=row.what, object=row.object, for_ms=row.for_ms, detail=row.detail)
            for report in reports
            for row in report.rows
        ]
        items += [
            d.StuckItem(
                node=one.node,
                what="silent",
                object=f"node/{one.node}",
                for_ms=waited_ms,
                detail=f"it does not answer ({one.reason}): a handler may hold it up, or it is gone",
            )
            for one in missing
        ]
        items.sort(key=lambda item: (item.what != "silent", -item.for_ms, item.node, item.object))
        total = sum(report.total for report in reports) + len(missing)
        reply = d.StuckList(after_ms=after_ms, items=tuple(items), total=total)
        return reply, self._server.with_missing(call, tuple(missing))

    async def rates(self, request: d.GetRates, call: p.Meta) -> tuple[d.RateList, p.Meta]:
        names = self._some(request.node)
        interval_ms = min(max(request.interval_ms, INTERVAL_MS[0]), INTERVAL_MS[1])
        found = await asyncio.gather(*(self._rates_of(name, interval_ms) for name in names))
        items = tuple(item for item in found if isinstance(item, d.RateItem))
        missing = tuple(one for one in found if isinstance(one, p.Missing))
        return d.RateList(items=items), self._server.with_missing(call, missing)

    async def _rates_of(self, name: str, interval_ms: int) -> d.RateItem | p.Missing:
        """Each node is looked at twice at its own pace, so that one that is silent delays no other's."""
        before = await self._report(name)
        if isinstance(before, p.Missing):
            return before
        begun_ns = self._engine.world.clock.mono_ns()
        await asyncio.sleep(interval_ms / 1_000)
        after = await self._report(name)
        if isinstance(after, p.Missing):
            return after
        return rates(before, after, max(1, (self._engine.world.clock.mono_ns() - begun_ns) // MS))

    async def _report(self, name: str) -> NodeReport | p.Missing:
        found, missing = await self._server.gatherer.each([name], GetNodeReport(coverage=False), NodeReport)
        return found[0] if found else missing[0]

    # ---- entities

    async def place(self, request: d.GetEntityPlace, call: p.Meta) -> tuple[d.EntityPlace, p.Meta]:
        check_type(request.kind, self._engine.system.mailbox_limits())
        home = self._engine.sharding.region.homes()[shard_of(request.id)]
        pages, missing = await self._server.gatherer.each(
            [home.node] if home.node else [], a.GetEntity(request.kind, request.id), a.EntityPage
        )
        rows = [row for page in pages for row in page.rows]
        stored = await self._server.states.record(request.kind, request.id) is not None
        state = rows[0].state if rows else "unknown" if missing else "passivated" if stored else "not in memory"
        reply = d.EntityPlace(
            kind=request.kind,
            id=request.id,
            shard=home.shard,
            node=home.node or None,
            epoch=home.epoch,
            state=state,
            known=stored or bool(rows),
        )
        return reply, self._server.with_missing(call, tuple(missing))

    async def history(self, request: d.GetEntityHistory, call: p.Meta) -> tuple[d.EntityHistory, p.Meta]:
        check_type(request.kind, self._engine.system.mailbox_limits())
        shard = shard_of(request.id)
        answer, record, (pages, missing) = await asyncio.gather(
            ask_coordinator(self._engine, r.GetHistory(shard)),
            self._server.states.record(request.kind, request.id),
            self._server.gatherer.each(self._engine.view.members, n.GetEvents(), n.EventPage),
        )
        entries = answer.entries if isinstance(answer, History) else ()
        fenced = {
            event
            for page in pages
            for event in page.events
            if event.topic == "shard.fenced" and event.object == f"shard/{shard}"
        }
        reply = d.EntityHistory(
            kind=request.kind,
            id=request.id,
            shard=shard,
            durable_revision=record.revision if record else None,
            durable_epoch=record.epoch if record else None,
            fenced_count=len(fenced),
            items=owners(entries, record.epoch if record else None),
        )
        return reply, self._server.with_missing(call, tuple(missing))

    # ---- names

    def _one(self, name: str) -> str:
        """A member's name; raises AdminRefusal."""
        if name not in self._engine.view.members:
            raise no_member(self._engine, name)
        return name

    def _some(self, name: str) -> list[str]:
        """One member, or all when none is named; raises AdminRefusal."""
        return [self._one(name)] if name else sorted(self._engine.view.members)
