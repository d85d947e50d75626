"""Requests about plans: each verb that moves shards stages one at the coordinator; only a commit changes anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from node.admin import expected, stop_rules
from node.admin import protocol as p
from node.admin.caller import ASKED_BY, ROLE
from node.admin.can_stop import can_stop, takers_of
from node.admin.coordinator import ask_coordinator
from node.admin.operation_requests import drain_name, operation
from node.admin.outcomes import CONFLICT, REFUSED, TIMED_OUT, USAGE, ask, no_member
from node.admin.permits import ADMIN, allows
from node.admin.views import Reports
from node.ads.keys import entity_id
from node.core.clock import rfc3339
from node.core.hashing import SHARD_COUNT
from node.core.ids import EntityRef
from node.flows import messages as f
from node.flows.state import OperationState
from node.gossip.member import Member, Status
from node.sharding import requests as r
from node.sharding.book import STAGED, Plan
from node.store.port import ShardState

if TYPE_CHECKING:
    from node.admin.server import AdminServer

_OVERRIDDEN = "overridden: "
START_TRIES = 3  # long enough for a dead node's shards to have found another


class PlanRequests:
    """Handlers by request type. Nothing is kept here: a plan is the coordinator's, and durable."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers |= {
            p.StageMove: self.stage_move,
            p.StagePin: self.stage_pin,
            p.StageCordon: self.stage_cordon,
            p.StageRebalance: self.stage_rebalance,
            p.StageRepair: self.stage_repair,
            p.StageDrain: self.stage_drain,
            p.StageRestart: self.stage_restart,
            p.GetPlans: self.plans,
            p.GetPlan: self.plan,
            p.CommitPlan: self.commit,
            p.CancelPlan: self.cancel,
            p.DiscardPlan: self.discard,
        }

    # ---- staging

    async def stage_move(self, request: p.StageMove, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        _shards_exist((request.shard,))
        self._member(request.to)
        return await self._stage(
            call,
            verb="move",
            shards=(request.shard,),
            node=request.to,
            force=request.force,
            reason=request.reason,
        )

    async def stage_pin(self, request: p.StagePin, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        if not request.shards:
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", "name at least one shard", about="shards")
        _shards_exist(request.shards)
        if request.to:
            entity_id(request.to, "to")  # a node of that name may come later: only its shape can be checked
            there = self._engine.view.member(request.to)
            if there is not None and "entity" not in there.roles:
                text = f"{request.to} is no entity node: it never takes a shard"
                raise p.AdminRefusal(REFUSED, "E-REFUSED", text, hint="promovolvectl node list", about=request.to)
        verb, shards = "pin" if request.to else "unpin", tuple(dict.fromkeys(request.shards))
        return await self._stage(call, verb=verb, shards=shards, node=request.to, reason=request.reason)

    async def stage_cordon(self, request: p.StageCordon, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        if request.on:
            self._member(request.node)  # one that is gone can be uncordoned, not cordoned
        verb = "cordon" if request.on else "uncordon"
        return await self._stage(call, verb=verb, node=request.node, force=request.force, reason=request.reason)

    async def stage_rebalance(self, request: p.StageRebalance, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        return await self._stage(call, verb="rebalance", force=request.force, reason=request.reason)

    async def stage_repair(self, request: p.StageRepair, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        found, meta = await self._server.shard_check(call)
        repairs = tuple(
            (fault.shard, fault.kind) for fault in found.faults if not request.kinds or fault.kind in request.kinds
        )
        return await self._stage(meta, verb="repair", repairs=repairs, reason=request.reason)

    async def stage_drain(self, request: p.StageDrain, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        _rules_exist(request.overrides)
        engine = self._engine
        member = self._member(request.node)
        others = [
            m.node
            for m in engine.view.up("entity")
            if m.node != request.node and engine.view.reachable(m.node) and m.id not in engine.going_nodes()
        ]
        if "entity" in member.roles and not others and not request.force:
            raise self._last_entity_node(request.node)
        # A node that does not answer says no more that it drains: what is on record does.
        under_way = await self._server.operations.running_drain(request.node, member.incarnation)
        if member.status is not Status.UP or member.id in engine.going_nodes() or under_way:
            under_way = under_way or await drain_name(self._server, request.node)
            version = engine.sharding.region.version
            target = f"node/{request.node}"
            held = p.Plan(
                id="", verb="drain", target=target, base_version=version, moves=(), changed=False, operation=under_way
            )
            return held, call
        states = await self._server.states.all("operation", OperationState)
        return await self._stage(
            call,
            verb="drain",
            node=request.node,
            force=request.force,
            stops=True,
            overrides=request.overrides,
            least_ms=expected.drain_ms(states),
        )

    async def stage_restart(self, request: p.StageRestart, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        _rules_exist(request.overrides)
        states = await self._server.states.all("operation", OperationState)
        running = next((s.status for s in states if s.start.verb == "restart" and s.status.state == "running"), None)
        if running is not None:
            version = self._engine.sharding.region.version
            held = p.Plan(
                id="",
                verb="restart",
                target=running.target,
                base_version=version,
                moves=(),
                changed=False,
                operation=running.id,
            )
            return held, call
        if request.node:
            self._member(request.node)
        turns = 1 if request.node else len(self._engine.view.up())
        return await self._stage(
            call,
            verb="restart",
            node=request.node,
            force=request.force,
            reason=request.reason,
            stops=True,
            overrides=request.overrides,
            least_ms=turns * expected.turn_ms(states),
        )

    async def _stage(
        self,
        call: p.Meta,
        *,
        verb: str,
        shards: tuple[int, ...] = (),
        node: str = "",
        repairs: tuple[tuple[int, str], ...] = (),
        force: bool = False,
        reason: str = "",
        stops: bool = False,
        overrides: tuple[str, ...] = (),
        least_ms: int = 0,
    ) -> tuple[p.Plan, p.Meta]:
        """`stops`: the plan stops `node`, or each in its turn, so that what `node can-stop` finds stands in it."""
        reports, missing = await self._server.gatherer.reports(coverage=False)
        entities = tuple((shard, n) for report in reports.values() for shard, _epoch, n in report.running if n)
        name = f"p-{self._engine.world.rng.getrandbits(40):010x}"
        broken, notes = self._stopping(node, overrides, reports) if stops else ((), ())
        if verb == "restart" and node:
            broken += stop_rules.out_of_reach(self._engine.view)
        request = r.Stage(name, verb, shards, node, repairs, entities, force, reason, broken, notes, least_ms)
        answer = await ask_coordinator(self._engine, request)
        return plan_of(answer), self._server.with_missing(call, missing)

    def _last_entity_node(self, node: str) -> p.AdminRefusal:
        """Somebody who could take the shards helps; what drains it all the same is told, and is not the advice."""
        view = self._engine.view
        text = (
            f"{node} is the last entity node: nobody could take its shards; --force last-entity-node drains it anyway"
        )
        helper = takers_of(self._server.guard.roster().nodes, view)["entity"]
        going = self._engine.going_nodes()
        leaving = sorted(
            m.node for m in view.members.values() if m.id in going and m.node != node and "entity" in m.roles
        )
        if helper:
            hint = f"promovolvectl node start {helper}"
        elif leaving:
            hint = f"promovolvectl node undrain {leaving[0]}"
        else:
            hint = "promovolvectl explain E-LAST-ENTITY-NODE"
        return p.AdminRefusal(REFUSED, "E-LAST-ENTITY-NODE", text, hint=hint, about=node)

    def _stopping(
        self, name: str, overrides: tuple[str, ...], reports: Reports
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        engine = self._engine
        going = engine.going_nodes()
        if not name:
            broken, notes = stop_rules.whole(engine.view, self._server.roster, overrides)
            return broken, (*stop_rules.meanwhile(engine.view, going), *notes)
        self._member(name)  # it may have gone while the others were asked
        moving = sum(row.state is ShardState.MOVING for row in engine.sharding.region.homes())
        takers = takers_of(self._server.guard.roster().nodes, engine.view)
        found = can_stop(engine.view, engine.config.membership, name, going, moving, reports, takers)
        return stop_rules.weighed(found, overrides)

    def _member(self, name: str) -> Member:
        member = self._engine.view.member(name)
        if member is None:
            raise no_member(self._engine, name)
        return member

    # ---- plans

    async def plans(self, _request: p.GetPlans, call: p.Meta) -> tuple[p.PlanList, p.Meta]:
        answer = await ask_coordinator(self._engine, r.GetPlans())
        items = answer.items if isinstance(answer, r.PlanViews) else ()
        return p.PlanList(items=tuple(plan_of(view) for view in items)), call

    async def plan(self, request: p.GetPlan, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        return plan_of(await self._view(request.id)), call

    async def _view(self, name: str) -> r.PlanView:
        answer = await ask_coordinator(self._engine, r.GetPlans(entity_id(name, "id")), name)
        assert isinstance(answer, r.PlanViews)
        return answer.items[0]

    async def commit(self, request: p.CommitPlan, call: p.Meta) -> tuple[p.Operation, p.Meta]:
        view = await self._view(request.id)
        plan = view.plan
        if any(note.startswith(_OVERRIDDEN) for note in plan.notes) and not allows(ROLE.get(), ADMIN):
            what = f"committing {plan.id}, which overrides a rule,"
            raise self._server.guard.not_allowed(ASKED_BY.get(), ROLE.get(), ADMIN, what)
        # Named after the plan, so that a commit whose answer was lost can be repeated and starts nothing twice.
        name = entity_id(f"op-{request.request_id or plan.id}", "request_id")
        start = f.StartOperation(plan.verb, reason=request.reason, plan=plan.id, target=plan.target)
        if plan.verb == "drain":
            node = plan.target.partition("/")[2]
            member = self._member(node)
            name = await drain_name(self._server, node) or name
            start = replace(start, node=node, incarnation=member.incarnation)
        elif plan.verb == "restart":
            every = self._in_order_of_restart()
            only = plan.target.partition("/")[2]
            going = tuple(life for life in every if only in ("", life[0]))
            start = replace(start, nodes=going, witnesses=tuple(name for name, _ in every))
        elif not plan.changes:
            raise p.AdminRefusal(CONFLICT, "E-NOTHING-TO-DO", "the plan changes nothing", about=plan.target)
        await ask_coordinator(self._engine, r.Commit(plan.id, name, request.reason), plan.id)
        status = await self._started(EntityRef("operation", name), start)
        return operation(status, self._engine.world.clock.wall_ms()), call

    async def _started(self, of: EntityRef, start: f.StartOperation) -> Any:
        """Asked again where nobody answers: the plan is under way, and the operation may have lived on a node that dies
        by it. Started twice it is one."""
        for _ in range(START_TRIES - 1):
            try:
                return await ask(self._engine, of, start)
            except p.AdminRefusal as refused:
                if refused.exit_status != TIMED_OUT:
                    raise
        return await ask(self._engine, of, start)

    def _in_order_of_restart(self) -> tuple[tuple[str, int], ...]:
        """The youngest first: singletons move once, when the oldest node's turn comes at the end."""
        members = self._engine.view.up()
        away = sorted(m.node for m in members if not self._engine.view.reachable(m.node))
        if away:
            text = f"not all nodes can be reached: {', '.join(away)}"
            raise p.AdminRefusal(REFUSED, "E-NODE-UNREACHABLE", text, hint="promovolvectl cluster health")
        return tuple((m.node, m.incarnation) for m in reversed(members))

    async def cancel(self, request: p.CancelPlan, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        name = entity_id(request.id, "id")
        return plan_of(await ask_coordinator(self._engine, r.Cancel(name), name)), call

    async def discard(self, request: p.DiscardPlan, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        name = entity_id(request.id, "id")
        return plan_of(await ask_coordinator(self._engine, r.Discard(name), name)), call


def plan_of(answer: r.Answer) -> p.Plan:
    """A plan as operators read it."""
    assert isinstance(answer, r.PlanView)
    plan = answer.plan
    states = {
        **dict.fromkeys(answer.moved, "moved"),
        **dict.fromkeys(answer.moving, "moving"),
        **dict.fromkeys(answer.dropped, "dropped"),
    }
    return p.Plan(
        id=plan.id,
        verb=plan.verb,
        target=plan.target,
        base_version=plan.base_version,
        moves=tuple(
            p.PlanMove(
                shard=move.shard,
                from_node=move.source,
                to=move.to,
                entities=move.entities,
                why=dict(plan.dropped).get(move.shard, move.why),
                state="waiting" if plan.state == STAGED else states.get(move.shard, "waiting"),
            )
            for move in plan.moves
        ),
        violations=plan.violations,
        before=tuple(p.Counter(name=name, count=count) for name, count in answer.before),
        after=tuple(p.Counter(name=name, count=count) for name, count in answer.after),
        changed=answer.changed,
        overridden=tuple(n.removeprefix(_OVERRIDDEN) for n in plan.notes if n.startswith(_OVERRIDDEN)),
        operation=plan.operation,
        notes=_notes(plan),
        expected_ms=plan.expected_ms,
        state=plan.state,
        reason=plan.reason,
        staged_at=rfc3339(plan.staged_ms),
        blockers=answer.blockers,
    )


def _notes(plan: Plan) -> tuple[str, ...]:
    """What else is to be known of it, pins and cordons among it."""
    found = [f"pins shard {pin.shard} to {pin.node}" for pin in plan.pins]
    found += [f"unpins shard {shard}" for shard in plan.unpins]
    found += [f"cordons {cordon.node}: it keeps its shards and gets no more" for cordon in plan.cordons]
    found += [f"uncordons {node}" for node in plan.uncordons]
    return (*found, *(note for note in plan.notes if not note.startswith(_OVERRIDDEN)))


def _rules_exist(overrides: tuple[str, ...]) -> None:
    for rule in overrides:
        if rule not in stop_rules.RULES:
            text = f"there is no rule {rule!r}; there are {', '.join(stop_rules.RULES)}"
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, about="overrides")


def _shards_exist(shards: tuple[int, ...]) -> None:
    for shard in shards:
        if not 0 <= shard < SHARD_COUNT:
            text = f"{shard} is not a shard: they are 0 to {SHARD_COUNT - 1}"
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, about="shard")
