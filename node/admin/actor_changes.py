"""What operators change about actors: restart, passivate, release; replay and discard dead letters.

Staged and committed like every change. It is done when the commit is answered, so the Operation that comes back is
over; it is kept here, bounded, only so that a repeated commit is answered and nothing is done twice.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

import msgspec

from node.admin import protocol as p
from node.admin.actor_requests import ActorRequests
from node.admin.outcomes import CONFLICT, USAGE, ask
from node.core.clock import rfc3339
from node.core.hashing import shard_of
from node.core.ids import ServiceRef
from node.core.limits import plans_kept_max
from node.engine.actor_messages import EntityCommand, Settled, SettleDeadLetters
from node.engine.messages import NodeDone

if TYPE_CHECKING:
    from node.admin.server import AdminServer

ENTITY_VERBS = {
    "restart": "starts again from the store; its messages wait meanwhile",
    "passivate": "stops when its mailbox is empty and its state is flushed; the next message starts it again",
    "release": "starts again with a clean record; what it refused meanwhile is not sent again",
}
LETTER_VERBS = {
    "replay": "is sent again, once, without an asker",
    "discard": "is forgotten; its counter stays",
}
Staged = p.StageEntity | p.StageDeadLetters
Kept = TypeVar("Kept")


class ActorChanges:
    """Stages and commits; a plan that was not staged here goes on to who staged it."""

    def __init__(self, server: AdminServer, actors: ActorRequests) -> None:
        self._server = server
        self._engine = server.engine
        self._actors = actors
        self._plans: OrderedDict[str, tuple[p.Plan, Staged]] = OrderedDict()
        self._done: OrderedDict[str, p.Operation] = OrderedDict()
        self._commit_others = server.handlers[p.CommitPlan]
        server.handlers |= {
            p.StageEntity: self.stage_entity,
            p.StageDeadLetters: self.stage_letters,
            p.CommitPlan: self.commit,
        }

    async def stage_entity(self, request: p.StageEntity, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        if request.verb not in ENTITY_VERBS:
            text = f"{request.verb!r} is not {', '.join(ENTITY_VERBS)}"
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, about="verb")
        show, _ = await self._actors.entity(p.GetEntity(kind=request.kind, id=request.id), call)
        if show.node is None or show.state == "unknown":
            text = f"shard {show.shard} has no owner that answers"
            raise p.AdminRefusal(CONFLICT, "E-UNAVAILABLE", text, hint="promovolvectl shard list", about=request.id)
        holds = {"restart": False, "passivate": show.state == "passivated", "release": show.state != "quarantined"}
        violations: tuple[str, ...] = ()
        if show.state == "quarantined" and request.verb != "release":
            violations = (f"{request.kind} {request.id} is quarantined: release it",)
        elif request.verb == "passivate" and not self._engine.system.passivates(request.kind):
            violations = (f"entities of the type {request.kind} are not made to be stopped, only restarted",)
        move = p.PlanMove(shard=show.shard, from_node=show.node, entities=1, why=ENTITY_VERBS[request.verb])
        plan = self._plan(request.verb, f"{request.kind}/{request.id}", (move,), violations, not holds[request.verb])
        _keep(self._plans, plan.id, (plan, request))
        return plan, call

    async def stage_letters(self, request: p.StageDeadLetters, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        if request.verb not in LETTER_VERBS or not request.ids:
            text = f"{request.verb!r} is not {' or '.join(LETTER_VERBS)}, or no letter is named"
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, about="verb")
        moves: list[p.PlanMove] = []
        violations: list[str] = []
        for identity in dict.fromkeys(request.ids):
            letter, _ = await self._actors.letter(p.GetDeadLetter(id=identity), call)
            shard = shard_of(letter.to.partition(":")[2])
            why = f"{letter.message_type} for {letter.to} {LETTER_VERBS[request.verb]}"
            moves.append(p.PlanMove(shard=shard, from_node=letter.node, why=why))
            if request.verb == "replay" and not letter.replayable:
                violations.append(f"{identity} was the entity's own message and can't be sent again")
        target = ", ".join(dict.fromkeys(request.ids))
        plan = self._plan(request.verb, target, tuple(moves), tuple(violations), changed=True)
        _keep(self._plans, plan.id, (plan, request))
        return plan, call

    async def commit(self, request: p.CommitPlan, call: p.Meta) -> tuple[msgspec.Struct, p.Meta]:
        key = request.request_id or request.id
        if key in self._done:
            return self._done[key], call
        if request.id not in self._plans:
            return await self._commit_others(request, call)
        plan, staged = self._plans[request.id]
        if not plan.changed or plan.violations:
            text = "; ".join(plan.violations) or "the plan changes nothing"
            raise p.AdminRefusal(CONFLICT, "E-NOTHING-TO-DO", text, about=plan.target)
        begun_ns = self._engine.world.clock.mono_ns()
        result = await (self._command(staged) if isinstance(staged, p.StageEntity) else self._settle(staged))
        operation = p.Operation(
            id=f"op-{key}",
            verb=plan.verb,
            target=plan.target,
            state="failed" if result.get("missed_count") else "done",
            phases=(),
            elapsed_s=(self._engine.world.clock.mono_ns() - begun_ns) / 1e9,
            result=result,
            started_at=rfc3339(self._engine.world.clock.wall_ms()),
            reason=request.reason,
        )
        self._plans.pop(request.id, None)
        _keep(self._done, key, operation)
        return operation, call

    async def _command(self, staged: p.StageEntity) -> dict[str, int | float | str | bool]:
        """Sent to whoever owns the shard now, which need not be who owned it when the plan was made."""
        home = self._engine.sharding.region.homes()[shard_of(staged.id)]
        to = ServiceRef(home.node, "/node")
        done: NodeDone = await ask(self._engine, to, EntityCommand(staged.verb, staged.kind, staged.id))
        return {"changed": done.changed, "node": home.node}

    async def _settle(self, staged: p.StageDeadLetters) -> dict[str, int | float | str | bool]:
        by_node: dict[tuple[str, int], list[int]] = {}
        for identity in dict.fromkeys(staged.ids):
            node, incarnation, number = self._actors.letter_of(identity)
            by_node.setdefault((node, incarnation), []).append(number)
        replay = staged.verb == "replay"
        answers = await asyncio.gather(
            *(
                self._server.gatherer.each([node], SettleDeadLetters(incarnation, tuple(numbers), replay), Settled)
                for (node, incarnation), numbers in sorted(by_node.items())
            )
        )
        taken = sum(settled.done for found, _ in answers for settled in found)
        wanted = sum(len(numbers) for numbers in by_node.values())
        return {f"{staged.verb}ed_count": taken, "missed_count": wanted - taken}

    def _plan(
        self, verb: str, target: str, moves: tuple[p.PlanMove, ...], violations: tuple[str, ...], changed: bool
    ) -> p.Plan:
        return p.Plan(
            id=f"p-{self._engine.world.rng.getrandbits(40):010x}",
            verb=verb,
            target=target,
            base_version=self._engine.sharding.region.version,
            moves=moves,
            violations=violations,
            changed=changed,
        )


def _keep(kept: OrderedDict[str, Kept], key: str, value: Kept) -> None:
    kept[key] = value
    while len(kept) > plans_kept_max:
        kept.popitem(last=False)
