"""Requests about the cluster itself: status, nodes, shards, ServeIndex, plans, operations, replays."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec

from node.admin import protocol as p
from node.admin import views
from node.admin.gather import NODE_DEADLINE_MS
from node.admin.operation_requests import drain_name, operation
from node.admin.outcomes import CONFLICT, REFUSED, USAGE, ask, not_found
from node.ads.keys import entity_id, split_serve_key
from node.ads.money import format_money
from node.ads.view import ServeView
from node.core.clock import rfc3339
from node.core.errors import RemoteProtocolError
from node.core.hashing import SHARD_COUNT, map_of, shard_of
from node.core.ids import EntityRef, ServiceRef
from node.core.limits import plans_kept_max
from node.engine import topology
from node.engine.messages import Freeze, ReplicaEntryReport, StopNode
from node.flows import messages as f
from node.gossip.member import Status
from node.sharding.allocation import drained
from node.wire.codec import CODEC

if TYPE_CHECKING:
    from node.admin.server import AdminServer


class ClusterRequests:
    """Handlers by request type. Plans are kept here, bounded, from stage to commit."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        self._plans: OrderedDict[str, tuple[p.Plan, f.StartOperation | None]] = OrderedDict()
        server.handlers |= {
            p.GetClusterStatus: self.status,
            p.GetClusterHealth: self.health,
            p.GetNodes: self.nodes,
            p.GetNode: self.node,
            p.GetShards: self.shards,
            p.GetShardOf: self.shard_of,
            p.StageMove: self.stage_move,
            p.StageDrain: self.stage_drain,
            p.CommitPlan: self.commit,
            p.GetMaps: self.maps,
            p.GetEntry: self.entry,
            p.StartReplay: self.start_replay,
            p.GetReplay: self.replay,
            p.GetCoverage: self.coverage,
            p.StopNode: self.stop_node,
            p.FreezePlacement: self.freeze,
        }

    # ---- reading

    async def status(self, _request: p.GetClusterStatus, call: p.Meta) -> tuple[p.ClusterStatus, p.Meta]:
        return await self._server.status(call)

    async def health(self, _request: p.GetClusterHealth, call: p.Meta) -> tuple[p.Health, p.Meta]:
        status, meta = await self._server.status(call)
        return views.health(status, self._server.roster), meta

    async def nodes(self, _request: p.GetNodes, call: p.Meta) -> tuple[p.NodeList, p.Meta]:
        reports, missing = await self._server.gatherer.reports(coverage=False)
        return p.NodeList(items=views.node_rows(self._engine.view, reports)), self._server.with_missing(call, missing)

    async def node(self, request: p.GetNode, call: p.Meta) -> tuple[p.NodeShow, p.Meta]:
        reports, missing = await self._server.gatherer.reports(coverage=False)
        rows = {row.name: row for row in views.node_rows(self._engine.view, reports)}
        row = rows.get(request.node)
        if row is None:
            raise not_found("node", request.node, sorted(rows))
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
        )
        return show, self._server.with_missing(call, missing)

    async def shards(self, request: p.GetShards, call: p.Meta) -> tuple[p.ShardList, p.Meta]:
        reports, missing = await self._server.gatherer.reports(coverage=False)
        items = views.shard_items(self._engine.view, self._engine.sharding.region.homes(), reports)
        if request.node is not None:
            if self._engine.view.member(request.node) is None:
                raise not_found("node", request.node, sorted(self._engine.view.members))
            items = tuple(item for item in items if item.node == request.node)
        return p.ShardList(items=items), self._server.with_missing(call, missing)

    async def shard_of(self, request: p.GetShardOf, call: p.Meta) -> tuple[p.ShardPlace, p.Meta]:
        row = self._engine.sharding.region.homes()[shard_of(request.id)]
        return p.ShardPlace(shard=row.shard, node=row.node or None, epoch=row.epoch), call

    async def maps(self, _request: p.GetMaps, call: p.Meta) -> tuple[p.ServeIndexMaps, p.Meta]:
        reports, missing = await self._server.gatherer.reports(coverage=False)
        return p.ServeIndexMaps(items=views.maps(reports)), self._server.with_missing(call, missing)

    async def entry(self, request: p.GetEntry, call: p.Meta) -> tuple[p.ServeIndexEntry, p.Meta]:
        split_serve_key(request.key)
        entries, missing = await self._server.gatherer.entries(request.key)
        if not any(entry.present or entry.tombstone for entry in entries.values()):
            raise p.AdminRefusal(3, "E-NOT-FOUND", f"no replica holds the key {request.key!r}", about=request.key)
        shard = shard_of(request.key.partition("|")[0])
        reply = p.ServeIndexEntry(
            key=request.key,
            map=f"serve-{map_of(request.key):02d}",
            shard=shard,
            owner=self._engine.sharding.region.homes()[shard].node or None,
            replicas=tuple(_replica(entries[name]) for name in sorted(entries)),
        )
        return reply, self._server.with_missing(call, missing)

    async def coverage(self, request: p.GetCoverage, call: p.Meta) -> tuple[p.Coverage, p.Meta]:
        reports, missing = await self._server.gatherer.reports()
        known = await self._server.states.ids("site")
        for site in request.sites:
            if site not in known:
                raise not_found("site", site, known)
        return views.coverage(reports, request.sites), self._server.with_missing(call, missing)

    # ---- plans and operations

    async def stage_move(self, request: p.StageMove, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        engine = self._engine
        if not 0 <= request.shard < SHARD_COUNT:
            text = f"{request.shard} is not a shard: they are 0 to {SHARD_COUNT - 1}"
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, about="shard")
        targets = sorted(m.node for m in engine.view.up("entity") if engine.view.reachable(m.node))
        if request.to not in targets:
            raise not_found("entity node that is up", request.to, targets)
        row = engine.sharding.region.homes()[request.shard]
        reports, _ = await self._server.gatherer.reports(coverage=False)
        entities = next((n for s, _, n in reports[row.node].running if s == row.shard), 0) if row.node in reports else 0
        changed = row.node != request.to
        moves = (
            (p.PlanMove(shard=row.shard, from_node=row.node, to=request.to, entities=entities, why="asked for"),)
            if changed
            else ()
        )
        start = f.StartOperation("move", request.to, shard=request.shard)
        return self._stage("move", f"shard/{request.shard}", moves, start if changed else None), call

    async def stage_drain(self, request: p.StageDrain, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        engine = self._engine
        member = engine.view.member(request.node)
        if member is None:
            raise not_found("node", request.node, sorted(engine.view.members))
        others = [
            m.node
            for m in engine.view.up("entity")
            if m.node != request.node and engine.view.reachable(m.node) and m.id not in engine.going_nodes()
        ]
        overridden: tuple[str, ...] = ()
        if "entity" in member.roles and not others:
            text = f"{request.node} is the last entity node: nobody could take its shards"
            if not request.force:
                hint = "start another entity node first, or say --force last-entity-node"
                raise p.AdminRefusal(REFUSED, "E-LAST-ENTITY-NODE", text, hint=hint, about=request.node)
            overridden = (text,)
        reports, _ = await self._server.gatherer.reports(coverage=False)
        entities = {s: n for s, _, n in reports[request.node].running} if request.node in reports else {}
        nodes = topology.entity_nodes(engine.view, engine.going_nodes()).nodes
        targets = [n for n in nodes if n.takes_shards and n.node.name != request.node]
        moves = tuple(
            p.PlanMove(shard=shard, from_node=request.node, to=to.name, entities=entities.get(shard, 0), why="drain")
            for shard, to in drained(engine.sharding.region.homes(), request.node, targets).items()
        )
        leaving = member.status is not Status.UP or member.id in engine.going_nodes()
        start = f.StartOperation("drain", request.node, member.incarnation)
        plan = self._stage("drain", f"node/{request.node}", moves, None if leaving else start)
        under_way = await drain_name(self._server, request.node) if leaving else ""
        return msgspec.structs.replace(plan, overridden=overridden, operation=under_way), call

    def _stage(
        self,
        verb: str,
        target: str,
        moves: tuple[p.PlanMove, ...],
        start: f.StartOperation | None,
        violations: tuple[str, ...] = (),
    ) -> p.Plan:
        rows = self._engine.sharding.region.homes()
        owners = sorted({row.node for row in rows if row.node} | {move.to for move in moves})
        moved = {move.shard: move.to for move in moves}
        plan = p.Plan(
            id=f"p-{self._random_name()}",
            verb=verb,
            target=target,
            base_version=self._engine.sharding.region.version,
            moves=moves,
            violations=violations,
            before=tuple(p.Counter(name=n, count=sum(row.node == n for row in rows)) for n in owners),
            after=tuple(
                p.Counter(name=n, count=sum(moved.get(row.shard, row.node) == n for row in rows)) for n in owners
            ),
            changed=start is not None,
        )
        self._plans[plan.id] = (plan, start)
        while len(self._plans) > plans_kept_max:
            self._plans.popitem(last=False)
        return plan

    async def commit(self, request: p.CommitPlan, call: p.Meta) -> tuple[p.Operation, p.Meta]:
        plan, start = self._plans.get(request.id, (None, None))
        if plan is None:
            hint = "stage it again"
            raise p.AdminRefusal(3, "E-NOT-FOUND", f"there is no plan {request.id!r} at this node", hint=hint)
        if start is None:
            raise p.AdminRefusal(CONFLICT, "E-NOTHING-TO-DO", "the plan changes nothing", about=plan.target)
        now = self._engine.sharding.region.version
        if now != plan.base_version:
            text = f"plan {plan.id} was made against placement {plan.base_version}, now {now}"
            raise p.AdminRefusal(CONFLICT, "E-STALE-PLAN", text, hint="make the plan again", about=plan.id)
        # Named after the plan, so that a commit whose answer was lost can be repeated and starts nothing twice.
        name = entity_id(f"op-{request.request_id or plan.id}", "request_id")
        if start.verb == "drain":
            name = await drain_name(self._server, start.node) or name
        start = msgspec.structs.replace(start, reason=request.reason)
        status = await ask(self._engine, EntityRef("operation", name), start)
        self._plans.pop(plan.id, None)
        return operation(status, self._engine.world.clock.wall_ms()), call

    # ---- replays

    async def start_replay(self, request: p.StartReplay, call: p.Meta) -> tuple[p.Replay, p.Meta]:
        known = await self._server.states.ids("site")
        for site in request.sites:
            if site not in known:
                raise not_found("site", site, known)
        sites = tuple(request.sites) or tuple(known)
        name = entity_id(f"r-{request.request_id or self._random_name()}", "request_id")
        scope = "all sites" if not request.sites else ", ".join(request.sites)
        status = await ask(self._engine, EntityRef("replay", name), f.StartReplay(sites, scope))
        return _replay(status, self._engine.world.clock.wall_ms()), call

    def _random_name(self) -> str:
        return f"{self._engine.world.rng.getrandbits(40):010x}"

    async def replay(self, request: p.GetReplay, call: p.Meta) -> tuple[p.Replay, p.Meta]:
        status = await ask(self._engine, EntityRef("replay", entity_id(request.id, "id")), f.GetReplay())
        return _replay(status, self._engine.world.clock.wall_ms()), call

    # ---- processes

    async def stop_node(self, request: p.StopNode, call: p.Meta) -> tuple[p.Done, p.Meta]:
        if self._engine.view.member(request.node) is None:
            raise not_found("node", request.node, sorted(self._engine.view.members))
        done = await ask(self._engine, ServiceRef(request.node, "/node"), StopNode(request.drain))
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


def _replica(entry: ReplicaEntryReport) -> p.EntryReplica:
    candidates: tuple[p.EntryCandidate, ...] = ()
    if entry.value:
        candidates = _candidates(entry.value)
    known = entry.present or entry.tombstone
    return p.EntryReplica(
        node=entry.node,
        present=entry.present,
        version=p.EntryVersion(epoch=entry.epoch, hlc=entry.hlc, origin=entry.origin) if known else None,
        expires_at=rfc3339(entry.expires_at_ms) if entry.expires_at_ms else None,
        candidates=candidates,
    )


def _candidates(value: bytes) -> tuple[p.EntryCandidate, ...]:
    try:
        view = CODEC.decode(value)
    except RemoteProtocolError:
        return ()
    if not isinstance(view, ServeView):
        return ()
    return tuple(
        p.EntryCandidate(
            creative=c.creative_id,
            campaign=c.campaign_id,
            advertiser=c.advertiser_id,
            category=c.category,
            cpm=format_money(c.cpm_micros),
        )
        for c in view.candidates
    )


def _replay(status: f.ReplayStatus, now_ms: int) -> p.Replay:
    return p.Replay(
        id=status.id,
        state=status.state,
        scope=status.scope,
        pages=p.ReplayPages(total=status.total, replayed=status.replayed, ignored=status.ignored, failed=status.failed),
        coverage_before=status.coverage_before,
        coverage_after=status.coverage_after,
        elapsed_s=((status.ended_ms or now_ms) - status.started_ms) / 1_000,
    )
