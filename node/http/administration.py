"""Carries out administration by HTTP: whose token it is, whose things they are, once for each idempotency key.

What a route orders goes through the admin protocol's guard in the bearer's name, so the audit log has it. What takes
something away is staged and committed as everywhere, in one request here: a program has nobody to show the plan to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from node.admin import protocol as p
from node.admin.outcomes import bad_input
from node.ads import messages as m
from node.ads.entities.publisher import PublisherState
from node.ads.guards.rate_gate import RateGate
from node.ads.keys import entity_id, site_id, slot_id
from node.ads.taxonomy import load_taxonomy
from node.core import limits
from node.core.clock import MS
from node.core.errors import BadInput
from node.core.ids import EntityRef
from node.http import admin_answers as answers
from node.http import bodies
from node.http.access import SCOPES, Access, Token, check_scope
from node.http.admin_bodies import SearchQuery
from node.http.admin_routes import ADMIN, WEBHOOK
from node.http.approvals import Approvals
from node.http.call import Answer, Call, Handler
from node.http.cluster import ClusterGate
from node.http.event_stream import EventStreams
from node.http.metering import Meters
from node.http.once import Once
from node.http.orders import Orders
from node.http.problem import ProblemError, Response
from node.http.refusals import problem_of
from node.http.route import EVENTS, Route
from node.http.special import Special
from node.http.stats import Stats
from node.http.webhooks_in import WebhooksIn
from node.http.wording import encoded

if TYPE_CHECKING:
    from node.admin.server import AdminServer

_CHECKS: Final[Mapping[str, Callable[[str], str]]] = {
    "publisher": lambda text: entity_id(text, "publisher"),
    "advertiser": lambda text: entity_id(text, "advertiser"),
    "campaign": lambda text: entity_id(text, "campaign"),
    "creative": lambda text: entity_id(text, "creative"),
    "site": site_id,
    "slot": slot_id,
}
# What holds nobody's things.
_ANYBODYS: Final = ("listCategories",)


class Administration:
    """The handlers of `admin_routes.ADMIN`. `access` gives the tokens that are accepted now."""

    def __init__(self, gate: ClusterGate, server: AdminServer, access: Callable[[], Access]) -> None:
        self._gate = gate
        self._server = server
        self._access = access
        self._once = Once(gate)
        self._orders = Orders(server)
        self._webhooks = WebhooksIn(server, self._orders, self._once, access)
        self._streams = EventStreams(server.engine)
        self._rates: dict[tuple[str, float], RateGate] = {}  # as many as there are tokens
        self._special: dict[str, Special] = {
            "showToken": self._token,
            "listCategories": self._categories,
            **Approvals(gate, server, self._orders).handlers(),
            **Stats(server).handlers(),
            **Meters(server).handlers(),
        }

    def handlers(self) -> dict[Route, Handler]:
        """By route."""
        return {route: self._handler(route) for route in ADMIN} | {WEBHOOK: self._webhooks.receive}

    def _handler(self, route: Route) -> Handler:
        carry_out = self._stream if route.media == EVENTS else self._handle

        async def handle(call: Call) -> Answer:
            return await carry_out(route, call)

        return handle

    async def admitted(self, route: Route, call: Call) -> Token:
        """The bearer, who may ask this, of those things. Raises ProblemError."""
        counters, clock = self._server.engine.counters, self._server.engine.world.clock
        try:
            token = self._access().bearer(call.header(b"authorization"), clock.wall_ms())
            self._in_time(token, clock.mono_ns() // MS)
        except ProblemError as problem:
            counters[f"http_refused_{problem.code or problem.status}"] += 1
            raise
        try:
            _in_reach(route, call, token)
        except ProblemError as problem:
            counters[f"http_refused_{problem.code}"] += 1
            if route.mutates:
                await self._server.guard.refused_elsewhere(token.who, f"http {route.name}", problem.code)
            raise
        for name, text in call.params.items():
            try:
                _CHECKS[name](text)
            except BadInput as error:
                raise bodies.as_problem(error) from None
        await self._owned(call.params)
        return token

    def _in_time(self, token: Token, now_ms: int) -> None:
        rate = token.requests_per_s
        gate = self._rates.get((token.name, rate))
        if gate is None:
            burst = max(1, int(rate * limits.http_token_burst_s))
            gate = self._rates[token.name, rate] = RateGate(rate_per_s=rate, burst=burst)
        if not gate.allows(token.name, now_ms):
            text = f"the token {token.name} asks more than {rate:g} times a second"
            raise ProblemError(429, "Too many requests", text, retry_after_s=1, code="too_many")

    async def _handle(self, route: Route, call: Call) -> Answer:
        token = await self.admitted(route, call)
        query = call.query(route.query) if route.query is not None else None
        body = bodies.parse(call.body, route.body) if route.body is not None else None
        if not route.mutates:
            return await self._carried_out(route, call, token, query, body)
        fingerprint = hashlib.sha256(f"{route.method} {call.scope['path']}\n".encode() + call.body).hexdigest()
        return await self._once.answered(
            token.who,
            call.header(b"idempotency-key"),
            fingerprint,
            lambda: self._carried_out(route, call, token, query, body),
        )

    async def _stream(self, route: Route, call: Call) -> Answer:
        """The events of a site, or of all of a publisher's, for as long as the token holds."""
        token = await self.admitted(route, call)
        states, wanted = self._server.states, frozenset((call.params.get("site", ""),))
        if "site" not in call.params:
            found = await states.one("publisher", call.params["publisher"], PublisherState)
            wanted = frozenset(found.sites if found is not None else ())
        clock = self._server.engine.world.clock

        def still() -> bool:
            return token in self._access().tokens and not 0 < token.expires_ms <= clock.wall_ms()

        return await self._streams.open(call, wanted.__contains__, still)

    async def _carried_out(self, route: Route, call: Call, token: Token, query: Any, body: Any) -> Response:
        try:
            special = self._special.get(route.name)
            if special is not None:
                answer = await special(token, call, query, body)
            elif route.order is not None:
                role = SCOPES[route.scope]
                answer = await self._orders.carry_out(token.who, role, route.order(call.params, query, body))
                if route.shown is not None:
                    answer = await self._orders.ask(token.who, role, route.shown(call.params, query, body))
            else:
                raise LookupError(f"nothing carries {route.name} out")
        except BadInput as error:
            raise problem_of(bad_input(error)) from None
        except p.AdminRefusal as refusal:
            raise problem_of(refusal) from None
        return Response(route.status, b"", "") if route.status == 204 else Response(route.status, encoded(answer))

    # ---- whose things they are

    async def _owned(self, params: Mapping[str, str]) -> None:
        """Raises ProblemError 404 for what is not below whom the path says: it does not exist there."""
        if "publisher" in params and "site" in params:
            info: m.SiteInfo = await self._gate.ask(EntityRef("site", params["site"]), m.GetSite())
            if info.publisher != params["publisher"]:
                raise _nothing("site", params["site"], "publisher", params["publisher"])
        if "advertiser" in params and "campaign" in params:
            campaign: m.CampaignInfo = await self._gate.ask(EntityRef("campaign", params["campaign"]), m.GetCampaign())
            if campaign.advertiser != params["advertiser"]:
                raise _nothing("campaign", params["campaign"], "advertiser", params["advertiser"])
            names = [spec.creative for spec in campaign.creatives]
            if "creative" in params and params["creative"] not in names:
                raise _nothing("creative", params["creative"], "campaign", params["campaign"])

    # ---- what is no order of the admin protocol

    async def _token(self, _token: Token, call: Call, _query: Any, _body: Any) -> msgspec.Struct:
        site = call.params["site"]
        made: m.SiteToken = await self._gate.ask(EntityRef("site", site), m.GetSiteToken())
        return answers.SiteToken(site, made.token)

    async def _categories(self, _token: Token, _call: Call, query: SearchQuery, _body: Any) -> msgspec.Struct:
        taxonomy, wanted = load_taxonomy(), query.q.lower()
        found = [
            c
            for c in sorted(category.id for category in taxonomy)
            if c > query.after and wanted in taxonomy.name(c).lower()
        ]
        page = found[: query.limit or limits.admin_page_items_max]
        items = tuple(answers.Category(c, taxonomy.name(c), " > ".join(taxonomy.path(c))) for c in page)
        return answers.Categories(items, page[-1] if len(page) < len(found) else "")


def _in_reach(route: Route, call: Call, token: Token) -> None:
    """Raises ProblemError 403 for what the token has no scope for, or is not for whom it is bound to."""
    check_scope(token, route.scope)
    bound, kind = token.publisher or token.advertiser, "publisher" if token.publisher else "advertiser"
    if bound and route.name not in _ANYBODYS and call.params.get(kind) != bound:
        text = f"the token {token.name} is for the {kind} {bound!r} alone"
        raise ProblemError(403, "Forbidden", text, about="Authorization", code="not_yours")


def _nothing(kind: str, name: str, of: str, owner: str) -> ProblemError:
    return ProblemError(404, "Not found", f"there is no {kind} {name!r} of the {of} {owner!r}", about=kind)
