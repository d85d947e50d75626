"""Requests about the cluster itself: status, nodes, stopping."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from node.admin import protocol as p
from node.admin import views
from node.admin.gather import NODE_DEADLINE_MS
from node.admin.outcomes import ask, no_member
from node.core.ids import ServiceRef
from node.engine import topology
from node.engine.messages import Freeze, StopNode

if TYPE_CHECKING:
    from node.admin.server import AdminServer


class ClusterRequests:
    """Handlers by request type."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers |= {
            p.GetClusterStatus: self.status,
            p.GetClusterHealth: self.health,
            p.GetNodes: self.nodes,
            p.GetNode: self.node,
            p.StopNode: self.stop_node,
            p.FreezePlacement: self.freeze,
        }

    # ---- reading

    async def status(self, _request: p.GetClusterStatus, call: p.Meta) -> tuple[p.ClusterStatus, p.Meta]:
        return await self._server.status(call)

    async def health(self, _request: p.GetClusterHealth, call: p.Meta) -> tuple[p.Health, p.Meta]:
        status, meta = await self._server.status(call)
        return views.health(status), meta

    async def nodes(self, _request: p.GetNodes, call: p.Meta) -> tuple[p.NodeList, p.Meta]:
        reports, missing = await self._server.gatherer.reports(coverage=False)
        rows = views.node_rows(self._engine.view, reports, self._engine.sharding.region.homes())
        reply = p.NodeList(items=views.with_keys(rows, self._server.guard.roster()))
        return reply, self._server.with_missing(call, missing)

    async def node(self, request: p.GetNode, call: p.Meta) -> tuple[p.NodeShow, p.Meta]:
        reports, missing = await self._server.gatherer.reports(coverage=False)
        homes = self._engine.sharding.region.homes()
        rows = views.node_rows(self._engine.view, reports, homes)
        found = views.with_keys(rows, self._server.guard.roster())
        row = next((row for row in found if row.name == request.node), None)
        if row is None:
            raise no_member(self._engine, request.node)
        report = reports.get(request.node)
        seen = self._engine.view.unreachable.get(request.node)
        show = p.NodeShow(
            node=row,
            observers_against=tuple(str(o) for o in seen.observers) if seen else (),
            why_not_joined=(report.why_not_joined,) if report and report.why_not_joined else (),
            phases=report.phases if report else (),
            counters=_counters(report.counters) if report else (),
            entities_by_kind=_counters(report.entities_by_kind) if report else (),
            settings=tuple(sorted(report.settings.items())) if report else (),
            peers=views.node_peers(report) if report else (),
            placed=tuple(home.shard for home in homes if (home.node, home.incarnation) == (row.name, row.incarnation)),
            drain=await self._server.operations.running_drain(row.name, row.incarnation),
        )
        return show, self._server.with_missing(call, missing)

    # ---- processes

    async def stop_node(self, request: p.StopNode, call: p.Meta) -> tuple[p.Done, p.Meta]:
        """One that has gone since, as by a drain that was under way, has stopped: it has no answer to give."""
        view = self._engine.view
        member = view.member(request.node)
        if member is None:
            raise no_member(self._engine, request.node)
        try:
            done = await ask(self._engine, ServiceRef(request.node, "/node"), StopNode(request.drain))
        except p.AdminRefusal:
            left = self._engine.view.member(request.node)
            if left is not None and left.id == member.id:
                raise
            return p.Done(changed=False, message=f"{request.node} has stopped already"), call
        return p.Done(changed=done.changed), call

    async def freeze(self, request: p.FreezePlacement, call: p.Meta) -> tuple[p.Done, p.Meta]:
        names = sorted({*topology.peers(self._engine.view), self._engine.me.name})
        outcomes = await asyncio.gather(*(self._freeze(name, request.reason) for name in names))
        silent = [name for name, outcome in zip(names, outcomes, strict=True) if outcome is None]
        text = f"did not answer: {', '.join(silent)}" if silent else ""
        return p.Done(changed=any(outcomes), message=text), call

    async def _freeze(self, name: str, reason: str) -> bool | None:
        """Whether the node froze only now; None when it did not answer: that must not keep others from stopping."""
        try:
            done = await ask(self._engine, ServiceRef(name, "/node"), Freeze(reason), NODE_DEADLINE_MS)
        except p.AdminRefusal:
            return None
        return bool(done.changed)


def _counters(counts: dict[str, int]) -> tuple[p.Counter, ...]:
    return tuple(p.Counter(name=name, count=count) for name, count in sorted(counts.items()))
