"""Requests about replays: start, list, show, cancel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from node.admin import protocol as p
from node.admin.gather import NODE_DEADLINE_MS
from node.admin.outcomes import CONFLICT, NOT_FOUND, USAGE, ask, no_member, not_found, owner, read
from node.ads.keys import entity_id
from node.core.clock import rfc3339
from node.core.hashing import shard_of
from node.core.ids import EntityRef
from node.core.limits import operations_listed_max, replay_rate_max
from node.flows import messages as f
from node.flows.replay_register import REGISTER
from node.flows.replay_state import ReplayState

if TYPE_CHECKING:
    from node.admin.server import AdminServer

STATES: Final = ("running", "done", "failed", "cancelled")


class ReplayRequests:
    """Handlers by request type."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers |= {
            p.StartReplay: self.start,
            p.GetReplay: self.show,
            p.ListReplays: self.list,
            p.CancelReplay: self.cancel,
        }

    async def start(self, request: p.StartReplay, call: p.Meta) -> tuple[p.Replay, p.Meta]:
        name = entity_id(f"r-{request.request_id or self._random_name()}", "request_id")
        _check(request)
        if request.request_id:
            known = await self._server.states.one("replay", name, ReplayState)
            if known is not None:  # the same request once more, perhaps long after its end
                return await self.show(p.GetReplay(id=name), call)
        sites = await self._sites(request)
        wanted = (request.missing, request.rate, request.until_coverage)
        order = f.StartReplay(sites, scope(request), *wanted, request.reason)
        over: tuple[str, ...] = ()
        while True:
            answer = await ask(self._engine, REGISTER, f.OpenReplay(name, order, over))
            if isinstance(answer, f.ReplayRefused):
                raise _refused(answer)
            if not isinstance(answer, f.ReplaySilent):
                return self._replay(answer), call
            rival = await self._server.states.one("replay", answer.id, ReplayState)
            if rival is None or rival.status.state == "running" or answer.id in over:
                raise _silent(answer.id, owner(self._engine, EntityRef("replay", answer.id)))
            over = (*over, answer.id)

    def _random_name(self) -> str:
        return f"{self._engine.world.rng.getrandbits(40):010x}"

    async def _sites(self, request: p.StartReplay) -> tuple[str, ...]:
        known = await self._server.states.ids("site")
        for site in request.sites:
            if site not in known:
                raise not_found("site", site, known)
        if not request.nodes:
            return tuple(dict.fromkeys(request.sites)) or tuple(known)
        members = sorted(self._engine.view.members)
        for node in request.nodes:
            if node not in members:
                raise no_member(self._engine, node)
        homes = self._engine.sharding.region.homes()
        there = {site for site in known if homes[shard_of(site)].node in request.nodes}
        return tuple(site for site in known if site in there or site in request.sites)

    async def show(self, request: p.GetReplay, call: p.Meta) -> tuple[p.Replay, p.Meta]:
        name = entity_id(request.id, "id")
        try:
            status = await read(self._engine, EntityRef("replay", name), f.GetReplay(), NODE_DEADLINE_MS)
        except p.AdminRefusal as refused:
            # Its entity may be on its way to another node: what is durable can be read all the same.
            state = await self._server.states.one("replay", name, ReplayState)
            if refused.exit_status == NOT_FOUND or state is None:
                raise
            status = state.status
        return self._replay(status), call

    async def list(self, request: p.ListReplays, call: p.Meta) -> tuple[p.ReplayList, p.Meta]:
        if request.state and request.state not in STATES:
            text = f"{request.state!r} is no state of a replay: {', '.join(STATES)}"
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, about="state")
        states = await self._server.states.all("replay", ReplayState)
        found = [state.status for state in states if request.state in ("", state.status.state)]
        found.sort(key=lambda status: (-status.started_ms, status.id))
        items = tuple(self._replay(status, slots=False) for status in found[:operations_listed_max])
        return p.ReplayList(items=items), call

    async def cancel(self, request: p.CancelReplay, call: p.Meta) -> tuple[p.Replay, p.Meta]:
        name = entity_id(request.id, "id")
        return self._replay(await ask(self._engine, EntityRef("replay", name), f.CancelReplay(request.reason))), call

    def _replay(self, status: f.ReplayStatus, *, slots: bool = True) -> p.Replay:
        now_ms = self._engine.world.clock.wall_ms()
        return p.Replay(
            id=status.id,
            state=status.state,
            scope=status.scope,
            pages=p.ReplayPages(
                total=status.total, replayed=status.replayed, ignored=status.ignored, failed=status.failed
            ),
            coverage_before=status.coverage_before,
            coverage_after=status.coverage_after,
            elapsed_s=((status.ended_ms or now_ms) - status.started_ms) / 1_000,
            reason=status.reason,
            empty=tuple(
                p.ReplayEmptySlot(site=site, slot=slot, reason=reason)
                for site, slot, reason in (status.missing if slots else ())
            ),
            reasons=dict(status.reasons),
            started_at=rfc3339(status.started_ms),
            started_for=status.why,
        )


def scope(request: p.StartReplay) -> str:
    """What a replay is about, in an operator's words."""
    named = [*request.sites, *(f"node/{node}" for node in request.nodes)]
    text = ", ".join(named[:8]) + (f" and {len(named) - 8} more" if len(named) > 8 else "") or "all sites"
    return f"{text}, what is missing" if request.missing else text


def _check(request: p.StartReplay) -> None:
    if not 0 <= request.rate <= replay_rate_max:
        text = f"{request.rate} pages a second: 1 to {replay_rate_max}, or none at all for no limit"
        raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, about="rate")
    if not 0.0 <= request.until_coverage <= 1.0:
        text = f"a coverage of {request.until_coverage:g}: it is a ratio, 0 to 1"
        raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, about="until_coverage")


def _silent(rival: str, node: str) -> p.AdminRefusal:
    """Another replay stands in the way, and whether it still runs is not known."""
    who = f"{node}, which runs it, does" if node else "whoever runs it does"
    return p.AdminRefusal(
        CONFLICT,
        "E-CONFLICT",
        f"replay {rival} goes through some of these sites and may still run: {who} not answer",
        hint=f"promovolvectl cluster health; once the node answers or is removed: promovolvectl replay show {rival}",
        about=f"replay/{rival}",
    )


def _refused(answer: f.ReplayRefused) -> p.AdminRefusal:
    running = answer.running
    some = f"goes through {answer.sites} of these sites" if answer.sites else "and as many others as may are running"
    return p.AdminRefusal(
        CONFLICT,
        "E-CONFLICT",
        f"replay {running.id} ({running.scope}) {some}",
        hint=f"promovolvectl replay watch {running.id}, or to end it: promovolvectl replay cancel {running.id}",
        about=f"replay/{running.id}",
    )
