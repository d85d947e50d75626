"""Requests that decide what may be served: campaigns, advertisers, sites, approvals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from node.admin import domain_views as views
from node.admin import protocol as p
from node.admin.outcomes import ask, not_found
from node.ads import messages as m
from node.ads.entities.campaign import CampaignState
from node.ads.entities.site_state import SiteState
from node.ads.hosts import domain_name
from node.ads.keys import entity_id, product_id, site_id
from node.ads.money import parse_money
from node.core.errors import BadInput
from node.core.ids import EntityRef

if TYPE_CHECKING:
    from node.admin.server import AdminServer


class BusinessRequests:
    """Handlers by request type."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers |= {
            p.SetCampaignStatus: self.campaign_status,
            p.SetAdvertiserStatus: self.advertiser_status,
            p.UpdateSite: self.update_site,
            p.RevokeCreative: self.revoke,
        }

    async def campaign_status(self, request: p.SetCampaignStatus, call: p.Meta) -> tuple[p.CampaignShow, p.Meta]:
        name = entity_id(request.campaign, "campaign")
        info = await ask(self._engine, EntityRef("campaign", name), m.SetCampaignStatus(request.status))
        return views.campaign(info), call

    async def advertiser_status(self, request: p.SetAdvertiserStatus, call: p.Meta) -> tuple[p.AdvertiserShow, p.Meta]:
        name = entity_id(request.advertiser, "advertiser")
        info: m.AdvertiserInfo = await ask(
            self._engine, EntityRef("advertiser", name), m.SetAdvertiserStatus(request.status)
        )
        campaigns = await self._server.states.all("campaign", CampaignState)
        return views.advertiser(info, sum(len(c.creatives) for c in campaigns if c.advertiser == name)), call

    async def update_site(self, request: p.UpdateSite, call: p.Meta) -> tuple[p.SiteShow, p.Meta]:
        order = m.UpdateSite(
            None if request.floor_cpm is None else parse_money(request.floor_cpm, "floor_cpm"),
            request.suspended,
            tuple(domain_name(text) for text in request.block_domains),
            tuple(domain_name(text) for text in request.unblock_domains),
            tuple(product_id(text) for text in request.block_products),
            tuple(product_id(text) for text in request.unblock_products),
        )
        if order == m.UpdateSite():
            raise BadInput("site", "nothing to change is named", hint="--floor-cpm 0.80, --block-domain shop.example")
        both = {*order.block_domains} & {*order.unblock_domains} | {*order.block_products} & {*order.unblock_products}
        if both:
            raise BadInput("block", f"{min(both)!r} is to be blocked and not to be")
        return views.site(await ask(self._engine, EntityRef("site", site_id(request.site)), order)), call

    async def revoke(self, request: p.RevokeCreative, call: p.Meta) -> tuple[p.Revoked, p.Meta]:
        creatives = {c.creative for s in await self._server.states.all("campaign", CampaignState) for c in s.creatives}
        if request.creative not in creatives:
            raise not_found("creative", request.creative, sorted(creatives))
        if request.site:
            sites = [site_id(request.site)]
        else:
            states = await self._server.states.all("site", SiteState)
            sites = [
                state.site
                for state in states
                if request.creative in state.approved or (request.reject and request.creative in state.pending)
            ]
        changed = False
        for site in sites:
            order = m.RevokeCreative(request.creative, request.reject)
            changed |= (await ask(self._engine, EntityRef("site", site), order)).changed
        return p.Revoked(creative=request.creative, sites=tuple(sites), rejected=request.reject, changed=changed), call
