"""Which sites a decision about a creative is for, and whether there is such a creative."""

from __future__ import annotations

from collections.abc import Iterable

from node.admin import protocol as p
from node.admin.outcomes import not_found
from node.admin.states import States
from node.ads import messages as m
from node.ads.entities.campaign_state import CampaignState
from node.ads.entities.site_state import SiteState
from node.ads.keys import site_id


async def creative_of(states: States, creative: str) -> tuple[CampaignState, m.CreativeSpec]:
    """The campaign of a creative; raises AdminRefusal (3)."""
    known: list[str] = []
    for campaign in await states.all("campaign", CampaignState):
        for spec in campaign.creatives:
            if spec.creative == creative:
                return campaign, spec
            known.append(spec.creative)
    raise not_found("creative", creative, sorted(known))


def sites_that_know(sites: Iterable[SiteState], creative: str) -> list[str]:
    """Where it is approved, waits or was rejected."""
    return [s.site for s in sites if creative in s.approved or creative in s.pending or creative in s.rejected]


async def approving_sites(states: States, order: p.ApproveCreative) -> list[str]:
    """The one that is named, or every site where it waits."""
    if order.site:
        return [site_id(order.site)]
    return [site.site for site in await states.all("site", SiteState) if order.creative in site.pending]


async def revoking_sites(states: States, order: p.RevokeCreative) -> list[str]:
    """The one that is named, or every site where it is approved; to be rejected, where it waits too."""
    if order.site:
        return [site_id(order.site)]
    return [
        site.site
        for site in await states.all("site", SiteState)
        if order.creative in site.approved or (order.reject and order.creative in site.pending)
    ]
