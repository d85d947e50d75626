"""Requests about split-brain decisions: the log of all nodes, and rehearsals with the rule that is live."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from node.admin import protocol as p
from node.core.clock import rfc3339
from node.core.errors import BadInput
from node.core.limits import decisions_reported_max
from node.gossip import rehearse
from node.gossip.splitbrain import Decision, Weighed

if TYPE_CHECKING:
    from node.admin.server import AdminServer


class DecisionRequests:
    """Handlers by request type."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        server.handlers |= {p.GetDecisions: self.decisions, p.Rehearse: self.rehearse}

    async def decisions(self, _request: p.GetDecisions, call: p.Meta) -> tuple[p.DecisionList, p.Meta]:
        reports, missing = await self._server.gatherer.decisions(decisions_reported_max)
        found = sorted((d for r in reports.values() for d in r.decisions), key=lambda d: (d.at_ms, d.id))
        warned = tuple(
            p.Warned(code="E-DECISION-LOG", text=f"{r.unreadable} decisions of {r.node} can't be read here")
            for r in reports.values()
            if r.unreadable
        )
        meta = msgspec.structs.replace(self._server.with_missing(call, missing), warnings=warned)
        return p.DecisionList(items=tuple(item(d) for d in found)), meta

    async def rehearse(self, request: p.Rehearse, call: p.Meta) -> tuple[p.Rehearsal, p.Meta]:
        engine = self._server.engine
        settings = engine.config.membership
        if bool(request.cut) == bool(request.lose):
            raise BadInput("rehearse", "either a cut or a number of members to lose")
        cases = (
            [rehearse.cut(engine.view, settings, request.cut)]
            if request.cut
            else list(rehearse.lose(engine.view, settings, request.lose))
        )
        items = tuple(
            p.RehearsedCase(lost=c.lost, survivors=c.survivors, decisions=tuple(item(d) for d in c.decisions))
            for c in cases
        )
        surviving = sum(bool(c.survivors) for c in cases)
        reply = p.Rehearsal(strategy=settings.strategy, cases_total=len(cases), cases_surviving=surviving, items=items)
        return reply, call


def item(decision: Decision) -> p.DecisionItem:
    """A decision as operators are shown it; a rehearsed one has no time and no id."""
    return p.DecisionItem(
        id=decision.id if decision.number else "",
        at=rfc3339(decision.at_ms) if decision.number else "",
        node=decision.node.name,
        strategy=decision.strategy,
        role=decision.role,
        outcome=decision.outcome,
        required=decision.required,
        available=decision.available,
        reason=decision.reason,
        tie_break=decision.tie_break or None,
        second_look=decision.second_look or None,
        lease=decision.lease or None,
        unreachable_for_ms=decision.unreachable_for_ms,
        never_stood_still=decision.bound,
        reachable=tuple(n.name for n in decision.reachable),
        unreachable=tuple(n.name for n in decision.unreachable),
        goes=tuple(n.name for n in decision.goes),
        pairs=tuple((a.name, b.name) for a, b in decision.pairs),
        members=tuple(_member(m) for m in decision.members),
    )


def _member(weighed: Weighed) -> p.DecisionMember:
    return p.DecisionMember(
        node=weighed.node.name,
        incarnation=weighed.node.incarnation,
        status=weighed.status.word,
        counted=weighed.counted,
        reachable=weighed.reachable,
        goes=weighed.goes,
        observers=tuple(o.name for o in weighed.observers),
    )
