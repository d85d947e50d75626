"""What operators change about actors: restart, passivate, release; replay and discard dead letters.

Staged and committed like every change, and done when the commit is answered: see `held_plans.py`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from node.admin import protocol as p
from node.admin.actor_requests import ActorRequests
from node.admin.held_plans import HeldPlans, Result
from node.admin.outcomes import CONFLICT, USAGE, ask
from node.core.hashing import shard_of
from node.core.ids import ServiceRef
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


class ActorChanges:
    """Stages them, and carries them out once they are committed."""

    def __init__(self, server: AdminServer, actors: ActorRequests, held: HeldPlans) -> None:
        self._server = server
        self._engine = server.engine
        self._actors = actors
        self._held = held
        server.handlers |= {p.StageEntity: self.stage_entity, p.StageDeadLetters: self.stage_letters}

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
        plan = self._held.hold(
            request.verb,
            f"{request.kind}/{request.id}",
            lambda _reason: self._command(request),
            moves=(move,),
            violations=violations,
            changed=not holds[request.verb],
        )
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
        target = ",".join(f"deadletter/{identity}" for identity in dict.fromkeys(request.ids))
        plan = self._held.hold(
            request.verb,
            target,
            lambda _reason: self._settle(request),
            moves=tuple(moves),
            violations=tuple(violations),
        )
        return plan, call

    async def _command(self, staged: p.StageEntity) -> Result:
        """Sent to whoever owns the shard now, which need not be who owned it when the plan was made."""
        home = self._engine.sharding.region.homes()[shard_of(staged.id)]
        to = ServiceRef(home.node, "/node")
        done: NodeDone = await ask(self._engine, to, EntityCommand(staged.verb, staged.kind, staged.id))
        return {"changed": done.changed, "node": home.node}

    async def _settle(self, staged: p.StageDeadLetters) -> Result:
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
