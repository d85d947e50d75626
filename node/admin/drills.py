"""`cluster drill`: failures rehearsed on the living cluster, where they hurt nobody; refused when it is not healthy.

What came of each is told to every node as an event, so that whoever asks later learns when it was last proven.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from node.actors.runtime import outcome_of
from node.admin import protocol as p
from node.admin import views
from node.admin.coordinator import ask_coordinator
from node.admin.coverage_requests import placement_nodes
from node.admin.held_plans import HeldPlans, Result
from node.admin.outcomes import CONFLICT, not_found
from node.admin.protocol import diagnosis as d
from node.admin.protocol.drills import PROVES
from node.ads.messages import GetSite
from node.core.clock import rfc3339
from node.core.hashing import shard_of
from node.core.ids import EntityRef
from node.engine import diagnosis_messages as n
from node.sharding import requests as r
from node.sharding.coordinator import LEASE
from node.store.port import Fenced, Record, WritePlacement, WriteState

if TYPE_CHECKING:
    from node.admin.server import AdminServer

POLL_S = 0.2
S = TypeVar("S", bound=msgspec.Struct)
# An entity type that there is not: nobody handles what it is told, and nothing can come of it.
NOBODY: Final = "drill"
LETTER_S: Final = 5.0
# Based on no revision that there is: were the fence broken, this write would still change nothing.
_NO_REVISION = 1 << 40


class Drills:
    """Handlers by request type."""

    def __init__(self, server: AdminServer, held: HeldPlans) -> None:
        self._server = server
        self._engine = server.engine
        self._held = held
        self._drills: dict[str, Callable[[str, p.Meta], Awaitable[str]]] = {
            "deadletter": self._deadletter,
            "fence": self._fence,
            "move": self._move,
            "term": self._term,
        }
        server.handlers |= {d.GetDrills: self.list, d.StageDrill: self.stage}

    async def list(self, request: d.GetDrills, call: p.Meta) -> tuple[d.DrillList, p.Meta]:
        if request.drill and request.drill not in PROVES:
            raise not_found("drill", request.drill, sorted(PROVES))
        members = self._engine.view.members
        pages, missing = await self._server.gatherer.each(members, n.GetEvents(), n.EventPage)
        events = {event for page in pages for event in page.events if event.topic.startswith("drill.")}
        items = []
        for name in [request.drill] if request.drill else sorted(PROVES):
            of_it = sorted((e for e in events if e.object == f"drill/{name}"), key=lambda e: e.at_ms)
            runs = tuple(
                d.DrillRun(at=rfc3339(e.at_ms), outcome=e.topic.partition(".")[2], node=e.node, text=e.text)
                for e in of_it
            )
            items.append(d.DrillItem(drill=name, proves=PROVES[name], last=runs[-1] if runs else None, runs=runs))
        return d.DrillList(items=tuple(items)), self._server.with_missing(call, tuple(missing))

    async def stage(self, request: d.StageDrill, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        if request.drill not in PROVES:
            raise not_found("drill", request.drill, sorted(PROVES))
        sites = await self._server.states.ids("site")
        if request.site not in sites:
            raise not_found("site", request.site, sites)
        status, meta = await self._server.status(call)
        health = views.health(status)
        hindered = await self._hindered(request.site) if request.drill == "move" else ()
        plan = self._held.hold(
            "drill run",
            f"drill/{request.drill} at site/{request.site}",
            lambda _reason: self._carry_out(request, call),
            violations=(*(f"the cluster is {health.state}: {reason.text}" for reason in health.reasons), *hindered),
            notes=(f"proves that {PROVES[request.drill]}",),
        )
        return plan, meta

    async def _carry_out(self, request: d.StageDrill, call: p.Meta) -> Result:
        try:
            text = await self._drills[request.drill](request.site, call)
            failed = 0
        except p.AdminRefusal as refused:
            text, failed = refused.message, 1
        outcome = "failed" if failed else "passed"
        self._engine.emit(f"drill.{outcome}", f"drill/{request.drill}", f"{request.site}: {text}", cluster=True)
        return {"drill": request.drill, "found": text, "missed_count": failed}

    # ---- the drills

    async def _fence(self, site: str, _call: p.Meta) -> str:
        record = await self._record(site)
        row = self._engine.sharding.region.homes()[shard_of(site)]
        stale = WriteState("site", site, row.shard, row.epoch - 1, _NO_REVISION, record.body)
        answer = await outcome_of(lambda done: self._engine.world.submit(stale, done))
        if not isinstance(answer, Fenced):
            raise _broken(f"a write under epoch {stale.epoch} was answered with {type(answer).__name__}, not fenced")
        if await self._record(site) != record:
            raise _broken(f"site {site} changed while its fence was tried: try again when nobody edits it")
        return fenced_words(row.shard, stale.epoch, answer.found)

    async def _term(self, _site: str, call: p.Meta) -> str:
        status, _ = await self._server.status(call)
        stale = WritePlacement(LEASE, str(self._engine.me), status.term - 1, _NO_REVISION, ())
        answer = await outcome_of(lambda done: self._engine.world.submit(stale, done))
        if not isinstance(answer, Fenced):
            raise _broken(f"a write under term {stale.term} was answered with {type(answer).__name__}, not fenced")
        return f"term {stale.term} is refused, {answer.found} writes"

    async def _deadletter(self, site: str, call: p.Meta) -> str:
        before = {letter.id for letter in await self._letters(site, call)}
        self._engine.system.tell(EntityRef(NOBODY, site), GetSite())
        first = await self._kept(site, before, call)
        await self._settle("replay", first, call)
        second = await self._kept(site, {*before, first.id}, call)
        await self._settle("discard", second, call)
        left = {letter.id for letter in await self._letters(site, call)} & {first.id, second.id}
        if left:
            raise _broken(f"{', '.join(sorted(left))} is kept although it was sent again or forgotten")
        return f"kept on {first.node} as {first.reason}, sent again once, and forgotten"

    async def _letters(self, site: str, call: p.Meta) -> tuple[p.DeadLetterShow, ...]:
        found = await self._ask(p.GetDeadLetters(limit=500), call, p.DeadLetterList)
        return tuple(letter for letter in found.items if letter.to == f"{NOBODY}:{site}")

    async def _kept(self, site: str, but: set[str], call: p.Meta) -> p.DeadLetterShow:
        """The letter that is new, once it is there."""
        until_ns = self._engine.world.clock.mono_ns() + int(LETTER_S * 1e9)
        while True:
            new = [letter for letter in await self._letters(site, call) if letter.id not in but]
            if new:
                return new[0]
            if self._engine.world.clock.mono_ns() >= until_ns:
                raise _broken(f"what was told to {NOBODY}/{site} is nowhere among the dead letters")
            await asyncio.sleep(POLL_S)

    async def _settle(self, verb: str, letter: p.DeadLetterShow, call: p.Meta) -> None:
        plan = await self._ask(p.StageDeadLetters(verb=verb, ids=(letter.id,)), call, p.Plan)
        done = await self._ask(p.CommitPlan(id=plan.id, reason="drill"), call, p.Operation)
        if done.state != "done":
            raise _broken(f"to {verb} {letter.id} is {done.state}: {done.result}")

    async def _placing(self) -> r.Placing:
        found = await ask_coordinator(self._engine, r.GetPlacing())
        assert isinstance(found, r.Placing)
        return found

    async def _hindered(self, site: str) -> tuple[str, ...]:
        """What keeps the site's shard from going to another node and back, told before anything moves."""
        placing, row = await self._placing(), self._engine.sharding.region.homes()[shard_of(site)]
        found = [
            f"shard {pin.shard} is pinned to {pin.node}: 'shard unpin {pin.shard}' lets it move"
            for pin in placing.pins
            if pin.shard == row.shard
        ]
        nodes = self._takers(placing)
        if row.node not in nodes:
            found.append(f"shard {row.shard} could not come back: {row.node or 'nobody'} takes no shards now")
        if not nodes - {row.node}:
            found.append("there is no other entity node to move to")
        return tuple(found)

    def _takers(self, placing: r.Placing) -> set[str]:
        view = self._engine.view
        capacities = {member.node: float(member.capacity) for member in view.up("entity")}
        return {one.node for one in placement_nodes(placing, capacities) if one.takes and view.reachable(one.node)}

    async def _move(self, site: str, call: p.Meta) -> str:
        before = await self._record(site)
        row = self._engine.sharding.region.homes()[shard_of(site)]
        others = sorted(self._takers(await self._placing()) - {row.node})
        if not others:
            raise _broken("there is no other entity node to move to")
        lost = 0
        for target in (others[0], row.node):
            plan = await self._ask(p.StageMove(shard=row.shard, to=target, reason="drill"), call, p.Plan)
            if plan.violations:
                raise _broken(f"the move to {target} is refused: {'; '.join(plan.violations)}")
            done = await self._ask(p.CommitPlan(id=plan.id, reason="drill"), call, p.Operation)
            while done.state == "running":
                await asyncio.sleep(POLL_S)
                done = await self._ask(p.GetOperation(id=done.id), call, p.Operation)
            if done.state != "done":
                raise _broken(f"the move to {target}, {done.id}, is {done.state}")
            counted = done.result.get("messages_lost", 0)
            lost += int(counted) if isinstance(counted, int) else 0
            await self._ask(p.GetSite(site=site), call, p.SiteShow)  # it answers where it is now
        if lost:
            raise _broken(f"{lost} messages were lost on the way")
        after = await self._record(site)
        if after.body != before.body:
            raise _broken(f"the state of site {site} is another than before: was it edited meanwhile?")
        return f"shard {row.shard} went from {row.node} to {others[0]} and back, its state is the same"

    async def _record(self, site: str) -> Record:
        record = await self._server.states.record("site", site)
        if record is None:
            raise not_found("site", site)
        return record

    async def _ask(self, request: msgspec.Struct, call: p.Meta, answer: type[S]) -> S:
        found, _ = await self._server.handlers[type(request)](request, call)
        assert isinstance(found, answer)
        return found


def fenced_words(shard: int, epoch: int, found: int) -> str:
    """What a write under the epoch before a shard's own came to."""
    if epoch == 0:
        return f"shard {shard} never moved: epoch {found} is its first, and a write as from before that is refused"
    return f"a write under epoch {epoch}, that of the owner before, is refused; epoch {found} writes"


def _broken(text: str) -> p.AdminRefusal:
    return p.AdminRefusal(CONFLICT, "E-DRILL", text)
