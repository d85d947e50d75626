"""Requests that decide what may be served: campaigns, advertisers, sites, approvals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from node.admin import domain_views as views
from node.admin import order_messages
from node.admin import protocol as p
from node.admin.approvals import creative_of, revoking_sites
from node.admin.outcomes import ask
from node.ads import messages as m
from node.ads.entities.campaign import CampaignState
from node.ads.keys import entity_id, site_id
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
        order = order_messages.site_update(request)
        return views.site(await ask(self._engine, EntityRef("site", site_id(request.site)), order)), call

    async def revoke(self, request: p.RevokeCreative, call: p.Meta) -> tuple[p.Revoked, p.Meta]:
        await creative_of(self._server.states, request.creative)
        sites = await revoking_sites(self._server.states, request)
        changed = False
        for site in sites:
            order = m.RevokeCreative(request.creative, request.reject)
            changed |= (await ask(self._engine, EntityRef("site", site), order)).changed
        return p.Revoked(creative=request.creative, sites=tuple(sites), rejected=request.reject, changed=changed), call
