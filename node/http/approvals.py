"""A publisher's decisions about creatives, by HTTP: what waits, what is served, what it flagged, whom it trusts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from node.admin import protocol as p
from node.admin.outcomes import not_found
from node.admin.pages import page, wanted
from node.ads import messages as m
from node.ads.entities.campaign_state import CampaignState
from node.ads.entities.site_state import SiteState
from node.ads.keys import entity_id
from node.core.clock import rfc3339
from node.core.ids import EntityRef
from node.http import admin_answers as answers
from node.http import admin_bodies as b
from node.http.access import SCOPES, Token
from node.http.call import Call
from node.http.cluster import ClusterGate
from node.http.orders import Orders
from node.http.special import Special

if TYPE_CHECKING:
    from node.admin.server import AdminServer


class Approvals:
    """The handlers, by their routes' names."""

    def __init__(self, gate: ClusterGate, server: AdminServer, orders: Orders) -> None:
        self._gate = gate
        self._states = server.states
        self._orders = orders

    def handlers(self) -> dict[str, Special]:
        return {
            "listPending": self._pending,
            "listServing": self._serving,
            "listFlagged": self._flagged,
            "flag": self._flag,
            "unflag": self._unflag,
            "approveAll": self._approve_all,
            "showAutoApprove": self._auto_approve,
        }

    # ---- lists

    async def _pending(self, _token: Token, call: Call, query: b.PageQuery, _body: Any) -> msgspec.Struct:
        state = await self._state(call)
        names = sorted(name for name in state.pending if name > query.after)
        shown = names[: wanted(query.limit)]
        known = await self._creatives(shown, {name: state.pending[name].campaign for name in shown})
        found = (
            (
                name,
                answers.PendingCreative(
                    **known[name],
                    slots=state.pending[name].slots,
                    first_seen_at=rfc3339(state.pending[name].first_seen_ms),
                    landing_domain=state.pending[name].landing_domain,
                ),
            )
            for name in shown
        )
        items, following = page(found, query.limit, more=len(shown) < len(names))
        return answers.Pending(items, following)

    async def _serving(self, _token: Token, call: Call, query: b.PageQuery, _body: Any) -> msgspec.Struct:
        state = await self._state(call)
        names = sorted(name for name in state.approved if name > query.after)
        shown = names[: wanted(query.limit)]
        campaigns = {name: state.origins[name][0] for name in shown if name in state.origins}
        known = await self._creatives(shown, campaigns)
        found = (
            (name, answers.ServingCreative(**known[name], approved_at=rfc3339(state.approved[name]))) for name in shown
        )
        items, following = page(found, query.limit, more=len(shown) < len(names))
        return answers.Serving(items, following)

    async def _flagged(self, _token: Token, call: Call, query: b.PageQuery, _body: Any) -> msgspec.Struct:
        state = await self._state(call)
        pairs = sorted(pair for pair in state.flagged.items() if pair[0] > query.after)
        found = ((name, answers.FlaggedCreative(name, reason)) for name, reason in pairs)
        items, following = page(found, query.limit)
        return answers.Flagged(items, following)

    async def _creatives(self, names: Iterable[str], campaigns: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        """The fields of `answers.Shown`, as far as the creatives' campaigns are known."""
        owners = sorted(set(campaigns.values()) - {""})
        states = {state.campaign: state for state in await self._states.some("campaign", owners, CampaignState)}
        found = {name: _shown(name, states.get(campaigns.get(name, ""))) for name in names}
        return {name: msgspec.structs.asdict(shown) for name, shown in found.items()}

    # ---- decisions

    async def _flag(self, _token: Token, call: Call, _query: Any, body: b.Flag) -> msgspec.Struct:
        return await self._decided(call, body.creative, m.FlagCreative(body.creative, body.reason))

    async def _unflag(self, _token: Token, call: Call, _query: Any, body: b.Creative) -> msgspec.Struct:
        return await self._decided(call, body.creative, m.UnflagCreative(body.creative))

    async def _decided(self, call: Call, creative: str, order: msgspec.Struct) -> msgspec.Struct:
        """The publisher's word, which the site keeps as a fact."""
        entity_id(creative, "creative")
        accepted: m.Accepted = await self._gate.ask(EntityRef("site", call.params["site"]), order)
        return answers.Changed(call.params["site"], creative, accepted.changed)

    async def _approve_all(self, token: Token, call: Call, _query: Any, _body: Any) -> msgspec.Struct:
        approved: list[str] = []
        failed: list[str] = []
        for creative in (await self._site(call)).pending:
            order = p.ApproveCreative(creative=creative, site=call.params["site"])
            try:
                await self._orders.ask(token.who, SCOPES["approvals:write"], order)
                approved.append(creative)
            except p.AdminRefusal:
                failed.append(creative)
        return answers.Bulk(tuple(approved), tuple(failed))

    async def _auto_approve(self, _token: Token, call: Call, _query: Any, _body: Any) -> msgspec.Struct:
        info = await self._site(call)
        return answers.AutoApprove(info.auto_approve, info.trusted)

    async def _site(self, call: Call) -> m.SiteInfo:
        info: m.SiteInfo = await self._gate.ask(EntityRef("site", call.params["site"]), m.GetSite())
        return info

    async def _state(self, call: Call) -> SiteState:
        state = await self._states.one("site", call.params["site"], SiteState)
        if state is None:
            raise not_found("site", call.params["site"])
        return state


def _shown(name: str, campaign: CampaignState | None) -> answers.Shown:
    spec = next((spec for spec in campaign.creatives if spec.creative == name), None) if campaign else None
    if campaign is None or spec is None:
        return answers.Shown(name)
    return answers.Shown(
        name,
        campaign.campaign,
        campaign.advertiser,
        spec.asset_url,
        spec.landing_url,
        spec.mime,
        spec.width,
        spec.height,
    )
