"""`debug ping|wire`: what the asked node finds out about the ways between nodes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from node.actors.runtime import outcome_of
from node.admin import protocol as p
from node.admin.outcomes import no_member
from node.core.ids import ServiceRef
from node.core.limits import ping_deadline_ms, pings_max
from node.engine.messages import EchoControl, EchoData, GetLedger, GetNodeReport, LedgerReport, NodeReport
from node.wire.ledger import LedgerRow

if TYPE_CHECKING:
    from node.admin.server import AdminServer

LANES: Final = {"control": EchoControl, "data": EchoData}


class ProbeRequests:
    """Handlers by request type."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers |= {p.GetPing: self.ping, p.GetWire: self.wire}

    async def ping(self, request: p.GetPing, call: p.Meta) -> tuple[p.PingReport, p.Meta]:
        """All members at once, on each lane one after the other; a peer's silence ends its row, not the answer."""
        count = min(max(request.count, 1), pings_max)
        ways = [(name, lane) for name in self._members(request.node) for lane in LANES]
        items = await asyncio.gather(*(self._pinged(name, lane, count) for name, lane in ways))
        silent = sorted({item.node for item in items if item.sent_count == item.lost_count})
        missing = tuple(self._server.gatherer.silent(name) for name in silent)
        return p.PingReport(items=tuple(items)), self._server.with_missing(call, missing)

    async def wire(self, request: p.GetWire, call: p.Meta) -> tuple[p.WireReport, p.Meta]:
        names, gatherer = self._members(request.node), self._server.gatherer
        (ledgers, missing), (reports, _) = await asyncio.gather(
            gatherer.each(names, GetLedger(request.peer), LedgerReport),
            gatherer.each(names, GetNodeReport(coverage=False), NodeReport),
        )
        links = [
            p.WireLink(
                node=report.node,
                peer=peer.node,
                link=peer.link,
                why=peer.why,
                waiting_control=peer.waiting_control,
                waiting_data=peer.waiting_data,
            )
            for report in reports
            for peer in report.peers
            if request.peer in ("", peer.node)
        ]
        items = [_item(ledger.node.name, row) for ledger in ledgers for row in ledger.rows]
        return p.WireReport(items=tuple(items), links=tuple(links)), self._server.with_missing(call, tuple(missing))

    def _members(self, name: str) -> list[str]:
        members = sorted(self._engine.view.members)
        if name and name not in members:
            raise no_member(self._engine, name)
        return [name] if name else members

    async def _pinged(self, name: str, lane: str, count: int) -> p.PingItem:
        took_ms: list[float] = []
        sent, deadline_ns = 0, self._now_ns() + ping_deadline_ms * 1_000_000
        why = ""
        for number in range(count):
            began_ns = self._now_ns()
            left_ms = (deadline_ns - began_ns) // 1_000_000
            if left_ms <= 0:
                break
            echo = LANES[lane](number)
            sent += 1
            back = await outcome_of(lambda done, e=echo, ms=left_ms: self._engine.ask(_node(name), e, ms, done))  # type: ignore[misc]
            if isinstance(back, type(echo)):
                took_ms.append((self._now_ns() - began_ns) / 1e6)
            else:
                failure = getattr(back, "failure", None)
                why = failure.value if failure is not None else "another answer"
        return ping_item(self._engine.me.name, name, lane, sent, took_ms, why)

    def _now_ns(self) -> int:
        return self._engine.world.clock.mono_ns()


def ping_item(origin: str, node: str, lane: str, sent: int, took_ms: list[float], why: str = "") -> p.PingItem:
    """One row out of the times of the pings that came back."""
    times, lost = sorted(took_ms), sent - len(took_ms)
    return p.PingItem(
        origin=origin,
        node=node,
        lane=lane,
        sent_count=sent,
        lost_count=lost,
        lost_ratio=round(lost / sent, 4) if sent else 0.0,
        min_ms=round(times[0], 3) if times else None,
        median_ms=round(times[len(times) // 2], 3) if times else None,
        p99_ms=round(times[min(len(times) - 1, len(times) * 99 // 100)], 3) if times else None,
        why=why if lost else "",
    )


def _node(name: str) -> ServiceRef:
    return ServiceRef(name, "/node")


def _item(node: str, row: LedgerRow) -> p.WireItem:
    return p.WireItem(
        node=node,
        peer=row.peer.name,
        incarnation=row.peer.incarnation,
        type=row.type,
        sent_count=row.sent,
        received_count=row.received,
        handled_count=row.handled,
        lost_count=row.lost,
        unsent=_counts(row.unsent),
        refused=_counts(row.refused),
        dropped=_counts(row.dropped),
    )


def _counts(counts: dict[str, int]) -> tuple[p.Counter, ...]:
    return tuple(p.Counter(name=name, count=count) for name, count in sorted(counts.items()))
