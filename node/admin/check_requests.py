"""`cluster check`: the invariants that can be looked at while the cluster lives, each with what was found."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from node.actors.runtime import outcome_of
from node.admin import protocol as p
from node.admin import views
from node.admin.gather import NODE_DEADLINE_MS
from node.admin.site_findings import decided_and_waiting
from node.ads.entities.site_state import SiteState
from node.core import limits
from node.core.ids import NodeId, ServiceRef
from node.engine import topology
from node.engine.conserving import MISSING
from node.engine.entities import SINGLETONS
from node.engine.messages import GetLedger, LedgerReport, NodeReport
from node.sharding.check import FaultKind
from node.wire.ledger import LedgerRow, unhandled
from node.wire.registry import REGISTRY

if TYPE_CHECKING:
    from node.admin.server import AdminServer

REPLICA_LOOKS = 10
QUEUED_NAMED = 10
REPLICA_LOOK_S = 0.3
ASKING = REGISTRY.of(GetLedger()).name
Ledgers = dict[NodeId, tuple[LedgerRow, ...]]


class CheckRequests:
    """Handlers by request type."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers |= {p.CheckCluster: self.check}

    async def check(self, request: p.CheckCluster, call: p.Meta) -> tuple[p.ClusterCheck, p.Meta]:
        (shards, _), (reports, missing) = await asyncio.gather(
            self._server.shard_check(call), self._server.gatherer.reports(coverage=False)
        )
        found = shard_rows(shards)
        active = sorted(name for name, report in reports.items() if report.coordinator_active)
        found.append(_row("one coordinator", len(active) == 1, ", ".join(active) or "nobody"))
        found.append(await self._singletons(reports, missing))
        found.append(await self._replicas(reports, missing))
        found.append(await self._projections(reports))
        found.append(await self._queues())
        if request.messages:
            found += await self._messages()
        ok = all(row.result == "ok" for row in found)
        return p.ClusterCheck(ok=ok, checks=tuple(found), unchecked=shards.unchecked), self._server.with_missing(
            call, missing
        )

    async def _singletons(self, reports: Mapping[str, NodeReport], silent: tuple[p.Missing, ...]) -> p.CheckRow:
        """Looked at again while one is on its way to another node; not where the node that should have it is silent."""
        looks = 0
        while True:
            home = topology.singleton_home(self._engine.view, self._engine.draining_nodes())
            row, looks = singleton_row(reports, home), looks + 1
            if row.result == "ok" or looks == REPLICA_LOOKS or home is None or home.name not in reports:
                return row
            await asyncio.sleep(REPLICA_LOOK_S)
            reports, _missing = await self._server.gatherer.reports(coverage=False, but=silent)

    async def _projections(self, reports: Mapping[str, NodeReport]) -> p.CheckRow:
        try:
            status = await self._server.fact_status.of(reports)
        except p.AdminRefusal as refused:
            return _row("projections", False, refused.message)
        told = ", ".join(f"{item.projection} {item.behind} behind" for item in status.items)
        return _row("projections", status.ok, told)

    async def _queues(self) -> p.CheckRow:
        """No site's queue holds what its publisher has decided."""
        try:
            sites = await self._server.states.all("site", SiteState)
        except p.AdminRefusal as refused:
            return _row("approval queues", False, refused.message)
        wrong = [f"{state.site}: {creative}" for state in sites for creative in decided_and_waiting(state)]
        return _row("approval queues", not wrong, ", ".join(wrong[:QUEUED_NAMED]) or f"{len(sites)} sites")

    async def _replicas(self, reports: Mapping[str, NodeReport], silent: tuple[p.Missing, ...]) -> p.CheckRow:
        """I4, looked at again while they differ: what is written just now is on its way to the others."""
        for _ in range(REPLICA_LOOKS):
            if views.replicas_agree(reports):
                break
            await asyncio.sleep(REPLICA_LOOK_S)
            reports, _missing = await self._server.gatherer.reports(coverage=False, but=silent)
        agree = views.replicas_agree(reports)
        return _row("I4 replicas equal", agree, f"{len(reports)} replicas {'agree' if agree else 'differ'}")

    async def _messages(self) -> list[p.CheckRow]:
        """I9: nothing vanishes on the way without a reason, as the nodes find out all the time, and what was received
        was handled or dropped for a reason. It takes them so long to be sure of what happened just now."""
        await asyncio.sleep((limits.conservation_fault_ms + limits.conservation_ms) / 1_000)
        (reports, _), ledgers = await asyncio.gather(self._server.gatherer.reports(coverage=False), self._ledgers())
        found = [
            p.CheckRow(check="I9 handled", result="fail", detail=f"{node} has {count} {name} of {peer} unaccounted")
            for node, rows in ledgers.items()
            for (peer, name), count in unhandled(rows).items()
            if name != ASKING  # this very question is being handled while it is answered
        ]
        found += [
            p.CheckRow(check="I9 conservation", result="fail", detail=fault.message)
            for fault in views.faults(reports)
            if fault.code == MISSING
        ]
        return found or [_row("I9 conservation", True, f"{len(ledgers)} ledgers add up")]

    async def _ledgers(self) -> Ledgers:
        names = sorted(self._engine.view.members)
        answers = await asyncio.gather(*(self._ledger(name) for name in names))
        return {answer.node: answer.rows for answer in answers if isinstance(answer, LedgerReport)}

    async def _ledger(self, name: str) -> object:
        to = ServiceRef(name, "/node")
        return await outcome_of(lambda done: self._engine.ask(to, GetLedger(), NODE_DEADLINE_MS, done))


def shard_rows(checked: p.ShardCheck) -> list[p.CheckRow]:
    """What `shard check` found. Uneven load is a check of its own, which holds also while it passes by itself: no shard
    has two owners because of it. It is not among them where nobody knows."""
    owners = [fault for fault in checked.faults if fault.kind != FaultKind.IMBALANCE]
    uneven = [fault for fault in checked.faults if fault.kind == FaultKind.IMBALANCE]
    found = [p.CheckRow(check="I5 one owner", result="fail", detail=_fault_words(fault)) for fault in owners]
    well = "what was checked agrees" if checked.unchecked else "all four views agree"
    found = found or [_row("I5 one owner", True, well)]
    if uneven:
        return [*found, _row("shards balanced", False, "; ".join(fault.detail for fault in uneven))]
    return found if checked.balance is None else [*found, _row("shards balanced", True, checked.balance)]


def singleton_row(reports: Mapping[str, NodeReport], home: NodeId | None) -> p.CheckRow:
    """Each singleton runs once, on the oldest node that may host it."""
    if home is None:
        return _row("singletons", False, "no node may host them")
    if home.name not in reports:
        return _row("singletons", False, f"they belong to {home.name}, which does not answer")
    wrong = []
    for kind in SINGLETONS:
        hosts = sorted(name for name, report in reports.items() if report.entities_by_kind.get(kind))
        if hosts != [home.name]:
            wrong.append(f"{kind} runs on {', '.join(hosts) or 'no node'} and belongs to {home.name}")
    return _row("singletons", not wrong, "; ".join(wrong) or f"{', '.join(SINGLETONS)} on {home.name}")


def _row(check: str, ok: bool, detail: str) -> p.CheckRow:
    return p.CheckRow(check=check, result="ok" if ok else "fail", detail=detail)


def _fault_words(fault: p.ShardFault) -> str:
    about = f"shard {fault.shard}: " if fault.shard >= 0 else ""
    return f"{about}{fault.detail} ({fault.kind})"
