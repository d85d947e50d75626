"""Requests about shards: where they are, one in depth, its owners so far, the map, and the check of all four views."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from node.actors.runtime import outcome_of
from node.admin import protocol as p
from node.admin import views
from node.admin.coordinator import ask_coordinator
from node.admin.gather import NODE_DEADLINE_MS
from node.admin.outcomes import USAGE, check_type, no_member, store_refusal
from node.admin.protocol.diagnosis import EntityPlace, GetEntityPlace
from node.core.clock import rfc3339
from node.core.hashing import SHARD_COUNT, shard_of
from node.core.ids import NodeId
from node.engine.messages import NodeReport
from node.sharding import requests as r
from node.sharding.book import History, Ownership
from node.sharding.check import NodeShards, ShardFault, Views, balance, check, unchecked
from node.store.port import Placement, ReadPlacement

if TYPE_CHECKING:
    from node.admin.server import AdminServer

SECOND_LOOK_S = 0.3


class ShardRequests:
    """Handlers by request type."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers |= {
            p.GetShards: self.shards,
            p.GetShardOf: self.shard_of,
            p.GetShard: self.shard,
            p.GetShardHistory: self.history,
            p.GetShardMap: self.map,
            p.GetShardCheck: self.check,
        }

    async def shards(self, request: p.GetShards, call: p.Meta) -> tuple[p.ShardList, p.Meta]:
        (reports, missing), placing = await asyncio.gather(
            self._server.gatherer.reports(coverage=False), self._placing()
        )
        pins = {pin.shard for pin in placing.pins} if placing else set()
        items = views.shard_items(self._engine.view, self._engine.sharding.region.homes(), reports, pins)
        if request.node is not None:
            if self._engine.view.member(request.node) is None:
                raise no_member(self._engine, request.node)
            items = tuple(item for item in items if item.node == request.node)
        meta = self._server.with_missing(call, missing)
        if placing is None:
            meta = self._server.warned(meta, "W-NO-COORDINATOR", "no coordinator answers: pins are not shown")
        return p.ShardList(items=items), meta

    async def shard_of(self, request: p.GetShardOf, call: p.Meta) -> tuple[p.ShardPlace, p.Meta]:
        check_type(request.kind, self._engine.system.mailbox_limits())
        row = self._engine.sharding.region.homes()[shard_of(request.id)]
        if request.look:
            wanted = GetEntityPlace(kind=request.kind, id=request.id)
            entity, looked = await self._server.handlers[GetEntityPlace](wanted, call)
            assert isinstance(entity, EntityPlace)
            if not (entity.known or looked.missing):  # a silent owner may have it in memory
                text = f"there is no {request.kind} {request.id!r}: this is where it would be"
                call = self._server.warned(call, "W-NOT-THERE", text)
        return p.ShardPlace(shard=row.shard, node=row.node or None, epoch=row.epoch), call

    async def history(self, request: p.GetShardHistory, call: p.Meta) -> tuple[p.ShardHistory, p.Meta]:
        answer = await ask_coordinator(self._engine, r.GetHistory(_existing(request.shard)))
        return p.ShardHistory(shard=request.shard, items=_lines(answer)), call

    async def shard(self, request: p.GetShard, call: p.Meta) -> tuple[p.ShardShow, p.Meta]:
        number = _existing(request.shard)
        (reports, missing), placing, history = await asyncio.gather(
            self._server.gatherer.reports(coverage=False),
            self._placing(),
            ask_coordinator(self._engine, r.GetHistory(number)),
        )
        rows = self._engine.sharding.region.homes()
        item = views.shard_items(self._engine.view, (rows[number],), reports)[0]
        waiting = [w for report in reports.values() for w in report.buffered if w[0] == number]
        show = p.ShardShow(
            shard=number,
            node=item.node,
            epoch=item.epoch,
            state=item.state,
            entities=item.entities,
            pin=next((pin.node for pin in placing.pins if pin.shard == number), "") if placing else "",
            move=next((_move_words(m) for m in placing.moves if m.shard == number), "") if placing else "",
            why=item.why,
            buffered=sum(count for _, count, _ in waiting),
            oldest_ms=max((oldest for _, _, oldest in waiting), default=0),
            history=_lines(history),
        )
        return show, self._server.with_missing(call, missing)

    async def map(self, _request: p.GetShardMap, call: p.Meta) -> tuple[p.ShardMap, p.Meta]:
        answer = await ask_coordinator(self._engine, r.GetPlacing())
        assert isinstance(answer, r.Placing)
        return shard_map(answer, {m.node: float(m.capacity) for m in self._engine.view.up("entity")}), call

    async def check(self, _request: p.GetShardCheck, call: p.Meta) -> tuple[p.ShardCheck, p.Meta]:
        """Two looks: what only one of them sees was a move half done."""
        found, meta = await self._look(call)
        if found.faults:
            await asyncio.sleep(SECOND_LOOK_S)
            again, meta = await self._look(call, meta.missing)
            known = {(fault.kind, fault.shard) for fault in found.faults}
            faults = tuple(fault for fault in again.faults if (fault.kind, fault.shard) in known)
            found = p.ShardCheck(ok=not faults, faults=faults, unchecked=again.unchecked, balance=again.balance)
        return found, meta

    async def _look(self, call: p.Meta, but: tuple[p.Missing, ...] = ()) -> tuple[p.ShardCheck, p.Meta]:
        engine = self._engine
        (reports, missing), placing, table = await asyncio.gather(
            self._server.gatherer.reports(coverage=False, but=but), self._placing(), self._table()
        )
        members = {m.id: m.roles for m in engine.view.members.values()}
        found = Views(table.rows, placing, node_shards(reports), members)
        faults = tuple(_fault(fault) for fault in check(found))
        looked = p.ShardCheck(ok=not faults, faults=faults, unchecked=unchecked(found), balance=balance(found))
        return looked, self._server.with_missing(call, missing)

    async def _placing(self) -> r.Placing | None:
        """The coordinator's view; None when nobody coordinates, or who does is as silent as any node may be: what the
        others answered is not held back for it."""
        try:
            answer = await ask_coordinator(self._engine, r.GetPlacing(), most_ms=NODE_DEADLINE_MS)
        except p.AdminRefusal:
            return None
        return answer if isinstance(answer, r.Placing) else None

    async def _table(self) -> Placement:
        answer = await outcome_of(lambda done: self._engine.world.submit(ReadPlacement(), done))
        if not isinstance(answer, Placement):
            raise store_refusal(answer)
        return answer


def node_shards(reports: Mapping[str, NodeReport]) -> tuple[NodeShards, ...]:
    """The third and fourth view, from what nodes report."""
    return tuple(
        NodeShards(
            NodeId(report.node, report.incarnation),
            {shard: epoch for shard, epoch, _ in report.running},
            dict(report.living),
        )
        for report in reports.values()
    )


def shard_map(placing: r.Placing, capacities: Mapping[str, float]) -> p.ShardMap:
    """The coordinator's view by node."""
    owned: dict[str, list[int]] = {name: [] for name in capacities}
    for shard, owner in enumerate(placing.owners):
        if owner:
            owned.setdefault(owner.partition("@")[0], []).append(shard)
    moving = {move.shard for move in placing.moves}
    pinned = {pin.shard: pin for pin in placing.pins}
    cordoned = {cordon.node for cordon in placing.cordons}
    draining = {node.partition("@")[0] for node in placing.draining}
    weight = sum(capacities.values())
    rows = tuple(
        p.ShardMapRow(
            node=name,
            shards=len(numbers),
            share=round(len(placing.owners) * capacities.get(name, 0.0) / weight) if weight else 0,
            moving=sum(shard in moving for shard in numbers),
            pinned=sum(shard in pinned for shard in numbers),
            cordoned=name in cordoned,
            draining=name in draining,
            numbers=tuple(numbers),
        )
        for name, numbers in sorted(owned.items())
    )
    return p.ShardMap(
        version=placing.version,
        term=placing.term,
        epoch_max=max(placing.epochs, default=0),
        items=rows,
        pins=tuple(
            p.ShardPin(
                shard=pin.shard,
                node=pin.node,
                pending=pin.shard in placing.pending,
                reason=pin.reason,
                at=rfc3339(pin.at_ms),
            )
            for pin in placing.pins
        ),
        unallocated=tuple(shard for shard, owner in enumerate(placing.owners) if not owner),
        why_not_placing=placing.why_not_placing,
        why_not_rebalancing=placing.why_not_rebalancing,
        balance=_balance(placing),
    )


def _balance(placing: r.Placing) -> str:
    """A node that has just joined has none: who looks then wants to know whether it gets any."""
    if not placing.uneven:
        return ""
    return "; ".join(filter(None, (f"{placing.uneven} moves would even it out", placing.balancing)))


def _fault(fault: ShardFault) -> p.ShardFault:
    return p.ShardFault(kind=fault.kind.value, shard=fault.shard, detail=fault.detail, repair=fault.repair)


def _move_words(move: r.UnderWay) -> str:
    to = move.target or "whoever is best"
    return f"{move.state} for {move.age_ms / 1_000:.1f} s, from {move.source} to {to} ({move.cause})"


def _lines(answer: r.Answer) -> tuple[p.ShardOwnership, ...]:
    return tuple(_line(entry) for entry in answer.entries) if isinstance(answer, History) else ()


def _line(entry: Ownership) -> p.ShardOwnership:
    receipt = entry.receipt
    return p.ShardOwnership(
        node=entry.node,
        incarnation=entry.incarnation,
        epoch=entry.epoch,
        cause=entry.cause,
        at=rfc3339(entry.at_ms),
        receipt=None
        if receipt is None
        else p.ShardReceipt(
            arrived=receipt.arrived,
            handled=receipt.handled,
            returned=receipt.bounced,
            dropped=receipt.dropped,
            forwarded=receipt.forwarded,
            refused=receipt.refused,
            entities_stopped=receipt.entities,
            digest=receipt.digest,
        ),
    )


def _existing(shard: int) -> int:
    if not 0 <= shard < SHARD_COUNT:
        text = f"{shard} is not a shard: they are 0 to {SHARD_COUNT - 1}"
        raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, about="shard")
    return shard
