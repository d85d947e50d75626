"""Requests about members: taking one out for good, and whether one can stop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from node.actors.bus import Subscription
from node.admin import protocol as p
from node.admin.caller import ASKED_BY
from node.admin.can_stop import can_stop, takers_of
from node.admin.held_plans import HeldPlans, Result
from node.admin.outcomes import CONFLICT, REFUSED, USAGE, ask, no_member
from node.core.hashing import shard_of
from node.core.ids import ServiceRef
from node.core.limits import remove_wait_ms_max
from node.engine import topology
from node.engine.events import EVENTS
from node.engine.messages import NodeDone, RemoveMember
from node.gossip import rehearse
from node.gossip.departure import Departure, Tally, departure
from node.gossip.member import Member, Status
from node.store.port import ShardState

if TYPE_CHECKING:
    from node.admin.server import AdminServer

LIVE_NODE, MAJORITY, LAST_ENTITY_NODE = RULES = ("live-node", "majority", "last-entity-node")


class MemberRequests:
    """Handlers by request type."""

    def __init__(self, server: AdminServer, held: HeldPlans) -> None:
        self._server = server
        self._engine = server.engine
        self._held = held
        server.handlers |= {p.StageRemove: self.stage_remove, p.GetCanStop: self.can_stop}

    async def can_stop(self, request: p.GetCanStop, call: p.Meta) -> tuple[p.CanStop, p.Meta]:
        engine = self._engine
        if engine.view.member(request.node) is None:
            raise no_member(engine, request.node)
        reports, missing = await self._server.gatherer.reports(coverage=False)
        moving = sum(row.state is ShardState.MOVING for row in engine.sharding.region.homes())
        if engine.view.member(request.node) is None:  # it went while the others were asked
            raise no_member(engine, request.node)
        settings = engine.config.membership
        takers = takers_of(self._server.guard.roster().nodes, engine.view)
        reply = can_stop(engine.view, settings, request.node, engine.going_nodes(), moving, reports, takers)
        meta = self._server.with_missing(call, missing)
        return reply, replace(meta, warnings=(*meta.warnings, *self._on_the_edge(request.node)))

    def _on_the_edge(self, node: str) -> tuple[p.Warned, ...]:
        """What a stop does not do, but the next crash would: the same rule that will decide is asked beforehand."""
        view, settings = self._engine.view, self._engine.config.membership
        for without, when in (("", "now"), (node, f"once {node} is away")):
            found = rehearse.fatal(view, settings, without)
            if found:
                names = " or ".join(name for case in found for name in case.lost)
                text = f"{when} the crash of {names} alone stops the whole cluster: {found[0].decisions[0].reason}"
                return (p.Warned(code="W-ONE-CRASH", text=text),)
        return ()

    # ---- removing

    async def stage_remove(self, request: p.StageRemove, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        for rule in request.force:
            if rule not in RULES:
                text = f"there is no rule {rule!r}; there are {', '.join(RULES)}"
                raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, about="force")
        known = self._engine.membership.state.members
        member = known.get(request.node)
        if member is None:
            raise no_member(self._engine, request.node)
        target = f"node/{request.node}"

        async def remove(reason: str) -> Result:
            return await self._remove(member, request.force, reason or request.reason)

        if member.status >= Status.DOWN:
            word = "was removed" if member.status is Status.REMOVED else "is being removed"
            note = f"{member.id} {word} {member.cause}".strip()
            return self._held.hold("remove", target, remove, changed=False, notes=(note,)), call
        broken = self._broken(member)
        effect = departure(self._engine.view, self._engine.config.membership, member.node)
        shards = self._shards(member)
        plan = self._held.hold(
            "remove",
            target,
            remove,
            moves=tuple(
                p.PlanMove(shard=shard, from_node=member.node, why="placed again once it is removed")
                for shard in shards
            ),
            violations=tuple(text for rule, text in broken.items() if rule not in request.force),
            overridden=tuple(text for rule, text in broken.items() if rule in request.force),
            notes=self._notes(member, shards, effect),
            before=_counters(effect.before),
            after=_counters(effect.after),
        )
        return plan, call

    def _broken(self, member: Member) -> dict[str, str]:
        """The rules that its removal breaks, with words and how to override them."""
        view, name = self._engine.view, member.node
        if not view.reachable(name):
            return {}
        found = {LIVE_NODE: f"{name} is {member.status.word} and can be reached: 'node stop {name}' lets it hand over"}
        left = departure(view, self._engine.config.membership, name)
        if left.loses_majority:
            found[MAJORITY] = f"a majority would be lost: without it {left.after.words()}"
        others = [m for m in view.up("entity") if m.node != name and view.reachable(m.node)]
        if "entity" in member.roles and not others:
            found[LAST_ENTITY_NODE] = f"{name} is the last entity node in reach: nobody could take its shards"
        return {rule: f"{text}; --force {rule} overrides it" for rule, text in found.items()}

    def _shards(self, member: Member) -> tuple[int, ...]:
        rows = self._engine.sharding.region.homes()
        return tuple(r.shard for r in rows if (r.node, r.incarnation) == (member.node, member.incarnation))

    def _notes(self, member: Member, shards: tuple[int, ...], effect: Departure) -> tuple[str, ...]:
        replica = self._engine.replication.machine
        owned = frozenset(shards)
        keys = sum(len(replica.keys_of_site(s)) for s in replica.sites() if shard_of(s) in owned)
        return (
            f"ends {member.id} for good: only a restart, as another incarnation, brings {member.node} back",
            f"{len(shards)} shards are placed again; {keys} keys of them are on every replica",
            f"majority: now {effect.before.words()}; then {effect.after.words()}",
        )

    async def _remove(self, member: Member, force: tuple[str, ...], reason: str) -> Result:
        """The rules are asked once more: the node may have come back since the plan was made."""
        engine = self._engine
        now = engine.membership.state.members[member.node]
        if now.incarnation != member.incarnation:
            text = f"{member.node} is another start by now, {now.id}"
            raise p.AdminRefusal(CONFLICT, "E-STALE-PLAN", text, hint="make the plan again", about=member.node)
        standing = [text for rule, text in self._broken(now).items() if rule not in force]
        if now.status < Status.DOWN and standing:
            raise p.AdminRefusal(CONFLICT, "E-STALE-PLAN", "; ".join(standing), about=member.node)
        by = ASKED_BY.get() + (f": {reason}" if reason else "")
        done = await self._order(member, by)
        if member.node != engine.me.name:
            await self._gone(member)
        return {"changed": done.changed, "node": member.node, "removed": not self._is_member(member)}

    async def _order(self, member: Member, by: str) -> NodeDone:
        """A node can't answer for its own end: another one is told to bring it about."""
        engine = self._engine
        if member.node != engine.me.name:
            return NodeDone(engine.members.remove(member.id, by))
        others = sorted(topology.peers(engine.view))
        if not others:
            text = f"{member.node} is the only node in reach"
            raise p.AdminRefusal(REFUSED, "E-REFUSED", text, hint=f"promovolvectl node stop {member.node}")
        done: NodeDone = await ask(engine, ServiceRef(others[0], "/node"), RemoveMember(member.id, by))
        return done

    async def _gone(self, member: Member) -> None:
        """Until the others have agreed and it is listed no more, or for as long as that takes where all are well."""
        gone = asyncio.Event()

        def look(subscription: Subscription) -> None:
            while subscription.take() is not None:
                pass
            if not self._is_member(member):
                gone.set()

        subscription = self._engine.system.bus.subscribe(EVENTS, look)
        try:
            look(subscription)
            async with asyncio.timeout(remove_wait_ms_max / 1_000):
                await gone.wait()
        except TimeoutError:
            pass  # the answer says that it is still listed
        finally:
            subscription.close()

    def _is_member(self, member: Member) -> bool:
        found = self._engine.membership.state.members[member.node]
        return found.incarnation == member.incarnation and found.status is not Status.REMOVED


def _counters(tally: Tally) -> tuple[p.Counter, ...]:
    return (
        p.Counter(name="counted", count=tally.counted),
        p.Counter(name="required", count=tally.required),
        p.Counter(name="available", count=tally.available),
    )
