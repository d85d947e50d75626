"""Administration of advertisers, campaigns and creatives; suspending and resuming; look-ups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from node.admin import protocol as p
from node.admin.protocol import publishers
from node.admin.protocol.explaining import CampaignExplanation, ExplainCampaign
from node.http import admin_answers as answers
from node.http import admin_bodies as b
from node.http.guarded_route import guarded
from node.http.route import DELETE, GET, PATCH, POST, PUT, Params, Route

_ADVERTISERS: Final = "/v1/advertisers"
_ADVERTISER: Final = f"{_ADVERTISERS}/{{advertiser}}"
_CAMPAIGNS: Final = f"{_ADVERTISER}/campaigns"
_CAMPAIGN: Final = f"{_CAMPAIGNS}/{{campaign}}"
_CREATIVES: Final = f"{_CAMPAIGN}/creatives"
_CREATIVE: Final = f"{_CREATIVES}/{{creative}}"


def _status(campaign: str, status: str) -> p.SetCampaignStatus:
    return p.SetCampaignStatus(campaign=campaign, status=status)


def _targets(body: b.CreateCampaign | b.UpdateCampaign) -> dict[str, Any]:
    """Where and when it bids."""
    return {
        "sites": body.sites,
        "places": body.places,
        "blocked_categories": body.blocked_categories,
        "start_at": body.start_at,
        "end_at": body.end_at,
        "unmatched": body.unmatched,
    }


def _create_campaign(params: Params, _query: None, body: b.CreateCampaign) -> p.CreateCampaign:
    return p.CreateCampaign(
        campaign=body.campaign,
        advertiser=params["advertiser"],
        name=body.name,
        max_cpm=body.max_cpm,
        daily_budget=body.daily_budget,
        categories=body.categories,
        **_targets(body),
    )


def _create_creative(params: Params, _query: None, body: b.CreateCreative) -> p.CreateCreative:
    return p.CreateCreative(
        creative=body.creative,
        campaign=params["campaign"],
        asset_url=body.asset_url,
        landing_url=body.landing_url,
        width=body.width,
        height=body.height,
        mime=body.mime,
        product=body.product,
    )


ADVERTISERS: Final = (
    guarded(
        *(GET, _ADVERTISERS, "listAdvertisers", "All advertisers", "campaigns:read"),
        query=b.PageQuery,
        answer=p.AdvertiserList,
        order=lambda _, q, __: p.GetAdvertisers(after=q.after, limit=q.limit),
    ),
    guarded(
        *(POST, _ADVERTISERS, "createAdvertiser", "Create an advertiser", "campaigns:write"),
        body=b.CreateAdvertiser,
        answer=p.AdvertiserShow,
        status=201,
        order=lambda _, __, body: p.CreateAdvertiser(
            advertiser=body.advertiser, name=body.name, daily_budget=body.daily_budget, timezone=body.timezone
        ),
    ),
    guarded(
        *(GET, _ADVERTISER, "showAdvertiser", "An advertiser, its budget and campaigns", "campaigns:read"),
        answer=p.AdvertiserShow,
        order=lambda at, _, __: p.GetAdvertiser(advertiser=at["advertiser"]),
    ),
    guarded(
        *(PATCH, _ADVERTISER, "updateAdvertiser", "Change an advertiser's name or budget", "campaigns:write"),
        body=b.UpdateAdvertiser,
        answer=p.AdvertiserShow,
        order=lambda at, _, body: p.UpdateAdvertiser(
            advertiser=at["advertiser"], name=body.name, daily_budget=body.daily_budget
        ),
    ),
    guarded(
        *(PUT, f"{_ADVERTISER}/budget", "setBudget", "Set an advertiser's daily budget", "campaigns:write"),
        body=b.Budget,
        answer=p.AdvertiserShow,
        order=lambda at, _, body: p.UpdateAdvertiser(advertiser=at["advertiser"], daily_budget=body.daily_budget),
    ),
)

CAMPAIGNS: Final = (
    guarded(
        *(GET, _CAMPAIGNS, "listCampaigns", "An advertiser's campaigns", "campaigns:read"),
        query=b.PageQuery,
        answer=p.CampaignList,
        order=lambda at, q, _: p.GetCampaigns(advertiser=at["advertiser"], after=q.after, limit=q.limit),
    ),
    guarded(
        *(POST, _CAMPAIGNS, "createCampaign", "Create a campaign", "campaigns:write"),
        body=b.CreateCampaign,
        answer=p.CampaignShow,
        status=201,
        order=_create_campaign,
    ),
    guarded(
        *(GET, _CAMPAIGN, "showCampaign", "A campaign, its spend and creatives", "campaigns:read"),
        answer=p.CampaignShow,
        order=lambda at, _, __: p.GetCampaign(campaign=at["campaign"]),
    ),
    guarded(
        *(PATCH, _CAMPAIGN, "updateCampaign", "Change a campaign's name, bid, budget or targeting", "campaigns:write"),
        body=b.UpdateCampaign,
        answer=p.CampaignShow,
        order=lambda at, _, body: p.UpdateCampaign(
            campaign=at["campaign"],
            name=body.name,
            max_cpm=body.max_cpm,
            daily_budget=body.daily_budget,
            **_targets(body),
        ),
    ),
    guarded(
        *(GET, f"{_CAMPAIGN}/explanation", "explainCampaign", "Whether its bids are heard, and why not"),
        "campaigns:read",
        answer=CampaignExplanation,
        order=lambda at, _, __: ExplainCampaign(campaign=at["campaign"]),
    ),
    guarded(
        *(PUT, f"{_CAMPAIGN}/status", "setCampaignStatus", "Pause or resume a campaign", "campaigns:write"),
        body=b.Status,
        answer=p.CampaignShow,
        order=lambda at, _, body: _status(at["campaign"], body.status),
        shown=lambda at, _, __: p.GetCampaign(campaign=at["campaign"]),
    ),
    guarded(
        *(DELETE, _CAMPAIGN, "deleteCampaign", "Delete a campaign, for ever", "campaigns:write"),
        status=204,
        order=lambda at, _, __: _status(at["campaign"], "deleted"),
    ),
    guarded(
        *(GET, _CREATIVES, "listCreatives", "A campaign's creatives", "campaigns:read"),
        answer=p.CreativeList,
        order=lambda at, _, __: p.GetCreatives(campaign=at["campaign"]),
    ),
    guarded(
        *(POST, _CREATIVES, "createCreative", "Register a creative", "campaigns:write"),
        body=b.CreateCreative,
        answer=p.CreativeShow,
        status=201,
        order=_create_creative,
    ),
    guarded(
        *(PATCH, f"{_CREATIVE}/status", "setCreativeStatus", "Pause or resume a creative", "campaigns:write"),
        body=b.Status,
        answer=p.CreativeShow,
        order=lambda at, _, body: p.SetCreativeStatus(creative=at["creative"], status=body.status),
    ),
    guarded(
        *(DELETE, _CREATIVE, "deleteCreative", "Delete a creative, for ever", "campaigns:write"),
        status=204,
        order=lambda at, _, __: p.SetCreativeStatus(creative=at["creative"], status="deleted"),
    ),
)


def _account(kind: str, verb: str, order: Callable[[str], msgspec.Struct]) -> Route:
    return guarded(
        *(POST, f"/v1/internal/{kind}s/{{{kind}}}/{verb}", f"{verb}{kind.capitalize()}"),
        *(f"{verb.capitalize()} the {kind} named so: nothing is lost by it", "accounts:write"),
        status=204,
        order=lambda at, _, __: order(at[kind]),
    )


SHARED: Final = (
    _account("advertiser", "suspend", lambda name: p.SetAdvertiserStatus(advertiser=name, status="suspended")),
    _account("advertiser", "resume", lambda name: p.SetAdvertiserStatus(advertiser=name, status="active")),
    _account("publisher", "suspend", lambda name: publishers.UpdatePublisher(publisher=name, suspended=True)),
    _account("publisher", "resume", lambda name: publishers.UpdatePublisher(publisher=name, suspended=False)),
    _account("site", "suspend", lambda name: p.UpdateSite(site=name, suspended=True)),
    _account("site", "resume", lambda name: p.UpdateSite(site=name, suspended=False)),
    guarded(
        *(GET, "/v1/sites", "listAllSites", "The sites of all publishers", "sites:read"),
        query=b.PageQuery,
        answer=p.SiteList,
        order=lambda _, q, __: p.GetSites(after=q.after, limit=q.limit),
    ),
    guarded(
        *(GET, "/v1/taxonomy/categories", "listCategories", "The content categories", "campaigns:read"),
        query=b.SearchQuery,
        answer=answers.Categories,
    ),
)
