"""`facts status`: how far each projection is, and how its follower fares; `cluster check` asks the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from node.admin import protocol as p
from node.admin.fact_log import FactLog
from node.admin.protocol import facts as f
from node.ads.projections import PROJECTIONS
from node.core.clock import rfc3339
from node.core.limits import facts_behind_max
from node.engine.messages import FollowerReport, NodeReport

if TYPE_CHECKING:
    from node.admin.server import AdminServer


class FactStatusRequests:
    """The handler."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._log = FactLog(server.engine)
        server.handlers[f.GetFactStatus] = self.status

    async def status(self, _request: f.GetFactStatus, call: p.Meta) -> tuple[f.FactStatus, p.Meta]:
        reports, missing = await self._server.gatherer.reports(coverage=False)
        return await self.of(reports), self._server.with_missing(call, missing)

    async def of(self, reports: Mapping[str, NodeReport]) -> f.FactStatus:
        """By what nodes say and where the store has each projection; raises AdminRefusal where that does not answer."""
        # Offsets first: a fact that is written meanwhile must not make the log shorter than what was read of it.
        offsets = {name: await self._log.offset(name) for name in PROJECTIONS}
        last = await self._log.last()
        items = tuple(_item(name, offset, last, reports) for name, offset in offsets.items())
        return f.FactStatus(ok=all(item.behind <= facts_behind_max for item in items), last=last, items=items)


def _item(name: str, offset: int, last: int, reports: Mapping[str, NodeReport]) -> f.FactFollower:
    told = [(node, row) for node, report in sorted(reports.items()) for row in report.followers if row.name == name]
    node, row = told[0] if told else ("", FollowerReport(name, offset, 0, 0, 0))
    return f.FactFollower(
        projection=name,
        offset=offset,
        behind=max(0, last - offset),
        node=node or None,
        failures=row.failures,
        conflicts=row.conflicts,
        last_failure=row.last_failure,
        last_failure_at=rfc3339(row.failed_ms) if row.failed_ms else None,
    )
