"""Requests that decide what may be served: campaigns, advertisers, sites, approvals."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from node.admin import domain_views as views
from node.admin import order_messages
from node.admin import protocol as p
from node.admin.approvals import creative_of, revoking_sites, sites_that_know
from node.admin.asking import patience_ms
from node.admin.homes import at_home
from node.admin.outcomes import NOT_FOUND, TIMED_OUT, ask, read
from node.admin.protocol.publishers import DeleteSite, GetPublisher, PublisherShow, UpdatePublisher
from node.admin.targets import ready_for
from node.ads import messages as m
from node.ads.entities.campaign_state import CampaignState
from node.ads.entities.site_state import SiteState
from node.ads.keys import entity_id, site_id
from node.core.clock import MS
from node.core.ids import EntityRef

if TYPE_CHECKING:
    from node.admin.server import AdminServer

_GONE_MS: Final = 4_000  # a deleted site needs a few milliseconds for each of its shelves
_LOOK_S: Final = 0.02


class BusinessRequests:
    """Handlers by request type."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers |= {
            p.SetCampaignStatus: self.campaign_status,
            p.SetAdvertiserStatus: self.advertiser_status,
            p.UpdateAdvertiser: self.update_advertiser,
            p.UpdateCampaign: self.update_campaign,
            p.SetCreativeStatus: self.creative_status,
            p.UpdateSite: self.update_site,
            DeleteSite: self.delete_site,
            GetPublisher: self.publisher,
            UpdatePublisher: self.update_publisher,
            p.RevokeCreative: self.revoke,
        }

    async def campaign_status(self, request: p.SetCampaignStatus, call: p.Meta) -> tuple[p.CampaignShow, p.Meta]:
        name = entity_id(request.campaign, "campaign")
        info = await ask(self._engine, EntityRef("campaign", name), m.SetCampaignStatus(request.status))
        return at_home(self._engine, views.campaign(info), name), call

    async def advertiser_status(self, request: p.SetAdvertiserStatus, call: p.Meta) -> tuple[p.AdvertiserShow, p.Meta]:
        name = entity_id(request.advertiser, "advertiser")
        return await self._advertiser(name, m.SetAdvertiserStatus(request.status)), call

    async def update_advertiser(self, request: p.UpdateAdvertiser, call: p.Meta) -> tuple[p.AdvertiserShow, p.Meta]:
        name = entity_id(request.advertiser, "advertiser")
        return await self._advertiser(name, order_messages.advertiser_update(request)), call

    async def _advertiser(self, name: str, order: m.SetAdvertiserStatus | m.UpdateAdvertiser) -> p.AdvertiserShow:
        info: m.AdvertiserInfo = await ask(self._engine, EntityRef("advertiser", name), order)
        campaigns = await self._server.states.all("campaign", CampaignState)
        shown = views.advertiser(info, sum(len(c.creatives) for c in campaigns if c.advertiser == name))
        return at_home(self._engine, shown, name)

    async def update_campaign(self, request: p.UpdateCampaign, call: p.Meta) -> tuple[p.CampaignShow, p.Meta]:
        name = entity_id(request.campaign, "campaign")
        await ready_for(request)
        order = order_messages.campaign_update(request)
        info = await ask(self._engine, EntityRef("campaign", name), order)
        return at_home(self._engine, views.campaign(info), name), call

    async def creative_status(self, request: p.SetCreativeStatus, call: p.Meta) -> tuple[p.CreativeShow, p.Meta]:
        """One that is deleted is forgotten by the sites, too; said again it reaches those that did not hear of it."""
        campaign, spec = await creative_of(self._server.states, request.creative)
        order = m.SetCreativeStatus(spec.creative, request.status)
        changed = (await ask(self._engine, EntityRef("campaign", campaign.campaign), order)).changed
        sites = await self._server.states.all("site", SiteState)
        if request.status == "deleted":
            for site in sites_that_know(sites, spec.creative):
                told = await ask(self._engine, EntityRef("site", site), m.ForgetCreative(spec.creative))
                changed |= told.changed
            sites = []
        approved = tuple(site.site for site in sites if spec.creative in site.approved)
        state = msgspec.structs.replace(campaign, withdrawn={spec.creative: request.status})
        return views.creative(spec, state, approved, changed=changed), call

    async def update_site(self, request: p.UpdateSite, call: p.Meta) -> tuple[p.SiteShow, p.Meta]:
        await ready_for(request)
        order = order_messages.site_update(request)
        info = await ask(self._engine, EntityRef("site", site_id(request.site)), order)
        return at_home(self._engine, views.site(info), info.site), call

    async def delete_site(self, request: DeleteSite, call: p.Meta) -> tuple[p.SiteShow, p.Meta]:
        """It goes by itself; the answer waits until it is gone."""
        site = EntityRef("site", site_id(request.site))
        left: m.SiteInfo = await ask(self._engine, site, m.DeleteSite())
        clock = self._engine.world.clock
        until_ns = clock.mono_ns() + patience_ms(clock, _GONE_MS) * MS
        while clock.mono_ns() < until_ns:
            try:
                await ask(self._engine, site, m.GetSite())
            except p.AdminRefusal as refusal:
                if refusal.exit_status == NOT_FOUND:
                    return views.site(left), call
            await asyncio.sleep(_LOOK_S)
        text = f"{site} is served nowhere and goes on being deleted: somebody that has to confirm it is away"
        raise p.AdminRefusal(TIMED_OUT, "E-NO-ANSWER", text, hint=f"promovolvectl site show {site.id}", about=str(site))

    async def publisher(self, request: GetPublisher, call: p.Meta) -> tuple[PublisherShow, p.Meta]:
        name = entity_id(request.publisher, "publisher")
        info = await read(self._engine, EntityRef("publisher", name), m.GetPublisher())
        return msgspec.structs.replace(views.publisher(info), changed=False), call

    async def update_publisher(self, request: UpdatePublisher, call: p.Meta) -> tuple[PublisherShow, p.Meta]:
        name = entity_id(request.publisher, "publisher")
        order = order_messages.publisher_update(request)
        return views.publisher(await ask(self._engine, EntityRef("publisher", name), order)), call

    async def revoke(self, request: p.RevokeCreative, call: p.Meta) -> tuple[p.Revoked, p.Meta]:
        await creative_of(self._server.states, request.creative)
        sites = await revoking_sites(self._server.states, request)
        changed = False
        for site in sites:
            order = m.RevokeCreative(request.creative, request.reject)
            changed |= (await ask(self._engine, EntityRef("site", site), order)).changed
        return p.Revoked(creative=request.creative, sites=tuple(sites), rejected=request.reject, changed=changed), call
