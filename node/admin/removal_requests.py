"""Requests about removals of ServeIndex keys: history, pending ones, tombstones, the roster; removing by majority."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from node.actors.actor import Failed
from node.actors.runtime import outcome_of
from node.admin import index_views, removal_views
from node.admin import protocol as p
from node.admin.caller import ASKED_BY
from node.admin.coordinator import ask_coordinator
from node.admin.held_plans import HeldPlans, Result
from node.admin.index_requests import IndexRequests
from node.admin.outcomes import CONFLICT, FAILED, NOT_FOUND, REFUSED, TIMED_OUT, not_found, refusal
from node.core.hashing import map_of
from node.core.ids import ServiceRef
from node.core.limits import removal_wait_ms_max
from node.engine import removal_messages as n
from node.engine.index_messages import IndexRow
from node.engine.registries import sharded_by
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replica_views import parse_token
from node.sharding.requests import GetReplicas, LeaveReplicas

if TYPE_CHECKING:
    from node.admin.server import AdminServer

Answer = TypeVar("Answer", bound=msgspec.Struct)
_PENDING = "promovolvectl serveindex pending"


class RemovalRequests:
    """Handlers by request type."""

    def __init__(self, server: AdminServer, index: IndexRequests, held: HeldPlans) -> None:
        self._server = server
        self._engine = server.engine
        self._index = index
        self._held = held
        server.handlers |= {
            p.GetKeyHistory: self.history,
            p.GetPendingRemovals: self.pending,
            p.GetTombstones: self.tombstones,
            p.StageKeyRemoval: self.stage_removal,
            p.GetRoster: self.roster,
            p.StageRosterRemove: self.stage_roster_remove,
            p.GetSeen: self.seen,
        }

    # ---- reading

    async def history(self, request: p.GetKeyHistory, call: p.Meta) -> tuple[p.ServeIndexHistory, p.Meta]:
        sharded_by(request.key)  # a key at all
        found, meta = await self._all(n.GetKeyHistory(request.key), n.KeyHistory, call)
        reply = removal_views.history(request.key, found)
        if not (reply.items or reply.removal or meta.missing):
            text = f"no replica holds a sound {request.key!r}, or remembers to have held one since its node's start"
            hint = f"promovolvectl serveindex get {request.key!r}"
            raise p.AdminRefusal(NOT_FOUND, "E-NOT-FOUND", text, hint=hint, about=request.key)
        return reply, meta

    async def pending(self, request: p.GetPendingRemovals, call: p.Meta) -> tuple[p.ServeIndexPending, p.Meta]:
        found, meta = await self._all(n.GetRemovals(request.limit), n.Removals, call)
        return removal_views.pending(found), meta

    async def tombstones(self, request: p.GetTombstones, call: p.Meta) -> tuple[p.ServeIndexTombstones, p.Meta]:
        found, meta = await self._all(n.GetRemovals(request.limit), n.Removals, call)
        return removal_views.tombstones(found, request.limit), meta

    async def seen(self, request: p.GetSeen, call: p.Meta) -> tuple[p.ServeIndexSeen, p.Meta]:
        parse_token(request.token)
        found, meta = await self._all(n.GetSeen(request.token), n.Seen, call)
        items = tuple(p.SeenItem(node=one.node, seen=one.seen) for one in found)
        everywhere = bool(items) and all(item.seen for item in items) and not meta.missing
        return p.ServeIndexSeen(token=request.token, everywhere=everywhere, items=items), meta

    async def roster(self, _request: p.GetRoster, call: p.Meta) -> tuple[p.ServeIndexRoster, p.Meta]:
        roster = await self._roster()
        phases, meta = await self._all(n.GetReplicaPhase(), n.ReplicaPhase, call)
        return removal_views.roster(roster, self._engine.view, {one.node: one for one in phases}), meta

    async def _roster(self) -> ReplicaRoster:
        answer = await ask_coordinator(self._engine, GetReplicas())
        assert isinstance(answer, ReplicaRoster)
        return answer

    async def _all(self, message: msgspec.Struct, answer: type[Answer], call: p.Meta) -> tuple[list[Answer], p.Meta]:
        found, missing = await self._server.gatherer.each(self._engine.view.members, message, answer)
        return found, self._server.with_missing(call, tuple(missing))

    # ---- removing a key

    async def stage_removal(self, request: p.StageKeyRemoval, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        place, _ = await self._index.place(p.GetKeyPlace(key=request.key), call)
        members = self._engine.view.members
        if place.owner is None or place.owner not in members or not self._engine.view.reachable(place.owner):
            text = f"shard {place.shard} has no owner in reach, who alone may remove its keys"
            raise p.AdminRefusal(CONFLICT, "E-UNAVAILABLE", text, hint="promovolvectl shard list", about=request.key)
        rows, _ = await self._index.rows_of(place.owner, [request.key])
        row, owner = rows.get(request.key), place.owner
        if row is None:
            text = f"{owner}, its owner, holds no {request.key!r}"
            raise p.AdminRefusal(NOT_FOUND, "E-NOT-FOUND", text, about=request.key)
        roster = await self._roster()
        available = self._in_reach(replica.node for replica in roster.replicas)
        why = "it was removed already" if row.tombstone else "it is gone on every node; the next auction may fill it"
        plan = self._held.hold(
            "remove",
            f"key/{request.key}",
            lambda reason: self._remove(owner, row, reason or request.reason),
            moves=(p.PlanMove(shard=place.shard, from_node=owner, entities=1, why=why),),
            changed=not row.tombstone,
            notes=(
                f"{request.key} of {row.size} bytes in {index_views.map_name(map_of(request.key))}",
                f"acknowledged by a majority: required {roster.needed} of {len(roster.replicas)} replicas, "
                f"available {available}",
            ),
            before=(
                p.Counter(name="required", count=roster.needed),
                p.Counter(name="available", count=available),
            ),
            after=(),
        )
        return plan, call

    def _in_reach(self, nodes: Iterable[str]) -> int:
        view = self._engine.view
        return sum(node in view.members and view.reachable(node) for node in nodes)

    async def _remove(self, owner: str, row: IndexRow, reason: str) -> Result:
        by = ASKED_BY.get() + (f": {reason}" if reason else "")
        order = n.RemoveKey(row.key, n.VersionRow(row.epoch, row.hlc, row.origin), by)
        engine = self._engine
        done = await outcome_of(lambda ended: engine.ask(ServiceRef(owner, "/node"), order, removal_wait_ms_max, ended))
        if isinstance(done, Failed):
            raise refusal(done, f"key/{row.key}")
        if not isinstance(done, n.KeyRemoved):
            raise p.AdminRefusal(FAILED, "E-PROTOCOL", f"{owner} answered with {type(done).__name__}", about=owner)
        held = len(done.certificate.held) if done.certificate else 0
        needed = done.certificate.needed if done.certificate else 0
        match done.outcome:
            case "removed":
                return {"removed": True, "token": done.token, "required": needed, "available": held}
            case "pending":
                text = (
                    f"{row.key} is removed at {owner} and on no majority of the replicas yet: required {needed}, "
                    f"available {held}; it is retried until it succeeds"
                )
                raise p.AdminRefusal(
                    TIMED_OUT, "E-REMOVAL-PENDING", text, hint=_PENDING, about=row.key, operation=done.token
                )
            case "refused":
                text = f"{owner} does not own the shard of {row.key} any more"
            case _:
                text = f"{row.key} was written since the plan was made"
        raise p.AdminRefusal(CONFLICT, "E-STALE-PLAN", text, hint="make the plan again", about=row.key)

    # ---- the roster

    async def stage_roster_remove(self, request: p.StageRosterRemove, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        roster = await self._roster()
        names = sorted(roster.names())
        if request.node not in names:
            raise not_found("replica on the roster", request.node, names)
        view = self._engine.view
        left = [name for name in names if name != request.node]
        needed, available = len(left) // 2 + 1, self._in_reach(left)
        violations = []
        if request.node in view.members and view.reachable(request.node):
            violations.append(f"{request.node} can be reached: its replica comes back by itself; stop the node first")
        if not left:
            violations.append("it is the last replica")
        plan = self._held.hold(
            "roster remove",
            f"replica/{request.node}",
            lambda reason: self._leave(request.node, roster.version, reason or request.reason),
            violations=tuple(violations),
            notes=(
                f"{request.node} owes no acknowledgements any more; if it returns, its replica takes over what the "
                "others have and discards the rest",
                f"a majority is then {needed} of {len(left)} replicas, available {available}",
            ),
            before=(p.Counter(name="replicas", count=len(names)), p.Counter(name="required", count=roster.needed)),
            after=(p.Counter(name="replicas", count=len(left)), p.Counter(name="required", count=needed)),
        )
        return plan, call

    async def _leave(self, node: str, version: int, reason: str) -> Result:
        if (await self._roster()).version != version:
            text = "the roster has changed since the plan was made"
            raise p.AdminRefusal(CONFLICT, "E-STALE-PLAN", text, hint="make the plan again", about=node)
        if node in self._engine.view.members and self._engine.view.reachable(node):
            raise p.AdminRefusal(REFUSED, "E-REFUSED", f"{node} is back", about=node)
        cause = ASKED_BY.get() + (f": {reason}" if reason else "")
        answer = await ask_coordinator(self._engine, LeaveReplicas(node, cause))
        assert isinstance(answer, ReplicaRoster)
        return {"replicas": len(answer.replicas), "required": answer.needed, "roster_version": answer.version}
