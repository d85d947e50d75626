"""Administration by HTTP as a table: which request of the admin protocol each route is.

So everything that a command may do, and its checks, guard and audit, are the same here; a route only names it. What
is no order of that protocol is carried out by the handler of its name, in `administration`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from node.admin import protocol as p
from node.ads.money import parse_money
from node.http import admin_answers as answers
from node.http import admin_bodies as b
from node.http.route import DELETE, EVENTS, GET, GUARDED, PATCH, POST, PUT, Order, Params, Route
from node.http.webhook_body import WebhookBody

_SITES: Final = "/v1/publishers/{publisher}/sites"
_SITE: Final = f"{_SITES}/{{site}}"
_APPROVAL: Final = f"{_SITE}/approval"
_ADVERTISERS: Final = "/v1/advertisers"
_ADVERTISER: Final = f"{_ADVERTISERS}/{{advertiser}}"
_CAMPAIGNS: Final = f"{_ADVERTISER}/campaigns"
_CAMPAIGN: Final = f"{_CAMPAIGNS}/{{campaign}}"
_CREATIVES: Final = f"{_CAMPAIGN}/creatives"
_CREATIVE: Final = f"{_CREATIVES}/{{creative}}"


def _route(method: str, path: str, name: str, summary: str, scope: str, **more: Any) -> Route:
    body = more.get("body") is not None
    problems = (*GUARDED, 400, *((408, 413) if body else ()), *((422,) if method != GET else ()))
    return Route(method=method, path=path, name=name, summary=summary, scope=scope, problems=problems, **more)


def _site(order: Callable[[str, Any], msgspec.Struct]) -> Order:
    return lambda params, _query, body: order(params["site"], body)


def _status(campaign: str, status: str) -> p.SetCampaignStatus:
    return p.SetCampaignStatus(campaign=campaign, status=status)


def _create_site(params: Params, _query: None, body: b.CreateSite) -> p.CreateSite:
    return p.CreateSite(
        site=body.site,
        host=body.host,
        publisher=params["publisher"],
        slots=tuple(p.Slot(slot=s.slot, width=s.width, height=s.height) for s in body.slots),
        floor_cpm=body.floor_cpm,
    )


def _slot_floor(params: Params, _query: None, body: b.SlotFloor) -> p.UpdateSite:
    if body.floor_cpm is None:
        return p.UpdateSite(site=params["site"], clear_slot_floors=(params["slot"],))
    parse_money(body.floor_cpm, "floor_cpm")  # refused under the name that it has here
    floor = p.SlotFloor(slot=params["slot"], floor_cpm=body.floor_cpm)
    return p.UpdateSite(site=params["site"], slot_floors=(floor,))


def _create_campaign(params: Params, _query: None, body: b.CreateCampaign) -> p.CreateCampaign:
    return p.CreateCampaign(
        campaign=body.campaign,
        advertiser=params["advertiser"],
        name=body.name,
        max_cpm=body.max_cpm,
        daily_budget=body.daily_budget,
        categories=body.categories,
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


def _show_site(params: Params, _query: Any, _body: Any) -> p.GetSite:
    return p.GetSite(site=params["site"])


SITES: Final = (
    _route(
        *(GET, _SITES, "listSites", "A publisher's sites", "sites:read"),
        query=b.PageQuery,
        answer=p.SiteList,
        order=lambda at, q, _: p.GetSites(publisher=at["publisher"], after=q.after, limit=q.limit),
    ),
    _route(
        *(POST, _SITES, "createSite", "Create a site", "sites:write"),
        body=b.CreateSite,
        answer=p.SiteShow,
        status=201,
        order=_create_site,
    ),
    _route(
        *(GET, _SITE, "showSite", "A site, and what it has approved, blocked and learned", "sites:read"),
        answer=p.SiteShow,
        order=_show_site,
    ),
    _route(
        *(PATCH, _SITE, "updateSite", "Change a site's settings", "sites:write"),
        body=b.UpdateSite,
        answer=p.SiteShow,
        order=_site(
            lambda site, body: p.UpdateSite(
                site=site, floor_cpm=body.floor_cpm, paced=body.paced, auto_approve=body.auto_approve
            )
        ),
    ),
    _route(
        *(PUT, f"{_SITE}/slots/{{slot}}/floor", "setSlotFloor", "Set or clear a slot's own floor", "sites:write"),
        body=b.SlotFloor,
        answer=p.SiteShow,
        order=_slot_floor,
    ),
    _route(
        *(POST, f"{_SITE}/blocklist", "blockDomains", "Block domains that ads land on", "sites:write"),
        body=b.Domains,
        answer=p.SiteShow,
        order=_site(lambda site, body: p.UpdateSite(site=site, block_domains=body.domains)),
    ),
    _route(
        *(DELETE, f"{_SITE}/blocklist", "unblockDomains", "Take domains from those blocked", "sites:write"),
        body=b.Domains,
        answer=p.SiteShow,
        order=_site(lambda site, body: p.UpdateSite(site=site, unblock_domains=body.domains)),
    ),
    _route(
        *(POST, f"{_SITE}/ad-product-blocklist", "blockProducts", "Block product categories", "sites:write"),
        body=b.Products,
        answer=p.SiteShow,
        order=_site(lambda site, body: p.UpdateSite(site=site, block_products=body.categories)),
    ),
    _route(
        *(DELETE, f"{_SITE}/ad-product-blocklist", "unblockProducts", "Unblock product categories", "sites:write"),
        body=b.Products,
        answer=p.SiteShow,
        order=_site(lambda site, body: p.UpdateSite(site=site, unblock_products=body.categories)),
    ),
    _route(
        *(GET, f"{_SITE}/pages", "listPages", "A site's classified pages, the oldest first", "sites:read"),
        query=b.UrlsQuery,
        answer=p.PageList,
        order=lambda at, q, _: p.GetPages(site=at["site"], after=q.after, limit=q.limit),
    ),
    _route(
        *(GET, f"{_SITE}/coverage", "explainCoverage", "Why each slot is filled or empty", "sites:read"),
        answer=p.CoverageExplanation,
        order=_site(lambda site, _: p.ExplainCoverage(site=site)),
    ),
    _route(
        *(GET, f"{_APPROVAL}/pending", "listPending", "Creatives that wait for the publisher", "sites:read"),
        answer=answers.Pending,
    ),
    _route(
        *(GET, f"{_APPROVAL}/flagged", "listFlagged", "Creatives that the publisher flagged", "sites:read"),
        answer=answers.Flagged,
    ),
    _route(
        *(POST, f"{_APPROVAL}/approve", "approve", "Let a creative be served on the site", "approvals:write"),
        body=b.Creative,
        answer=p.Approved,
        order=_site(lambda site, body: p.ApproveCreative(creative=body.creative, site=site)),
    ),
    _route(
        *(POST, f"{_APPROVAL}/revoke", "revoke", "Take an approval back", "approvals:write"),
        body=b.Creative,
        status=204,
        order=_site(lambda site, body: p.RevokeCreative(creative=body.creative, site=site)),
    ),
    _route(
        *(POST, f"{_APPROVAL}/reject", "reject", "Reject a creative, for good", "approvals:write"),
        body=b.Creative,
        status=204,
        order=_site(lambda site, body: p.RevokeCreative(creative=body.creative, site=site, reject=True)),
    ),
    _route(
        *(POST, f"{_APPROVAL}/flag", "flag", "Reject a creative, and say why", "approvals:write"),
        body=b.Flag,
        answer=answers.Changed,
    ),
    _route(
        *(POST, f"{_APPROVAL}/unflag", "unflag", "Let a flagged creative wait for approval again", "approvals:write"),
        body=b.Creative,
        answer=answers.Changed,
    ),
    _route(
        *(POST, f"{_APPROVAL}/bulk", "approveAll", "Approve everything that waits", "approvals:write"),
        answer=answers.Bulk,
    ),
    _route(
        *(GET, f"{_SITE}/verification-token", "showToken", "The token for the site's tag, made at need", "sites:write"),
        answer=answers.SiteToken,
    ),
    _route(
        *(GET, f"{_SITE}/auto-approve", "showAutoApprove", "Whether what is trusted skips the queue", "sites:read"),
        answer=answers.AutoApprove,
    ),
)

ADVERTISERS: Final = (
    _route(
        *(GET, _ADVERTISERS, "listAdvertisers", "All advertisers", "campaigns:read"),
        query=b.PageQuery,
        answer=p.AdvertiserList,
        order=lambda _, q, __: p.GetAdvertisers(after=q.after, limit=q.limit),
    ),
    _route(
        *(POST, _ADVERTISERS, "createAdvertiser", "Create an advertiser", "campaigns:write"),
        body=b.CreateAdvertiser,
        answer=p.AdvertiserShow,
        status=201,
        order=lambda _, __, body: p.CreateAdvertiser(
            advertiser=body.advertiser, name=body.name, daily_budget=body.daily_budget, timezone=body.timezone
        ),
    ),
    _route(
        *(GET, _ADVERTISER, "showAdvertiser", "An advertiser, its budget and campaigns", "campaigns:read"),
        answer=p.AdvertiserShow,
        order=lambda at, _, __: p.GetAdvertiser(advertiser=at["advertiser"]),
    ),
    _route(
        *(PATCH, _ADVERTISER, "updateAdvertiser", "Change an advertiser's name or budget", "campaigns:write"),
        body=b.UpdateAdvertiser,
        answer=p.AdvertiserShow,
        order=lambda at, _, body: p.UpdateAdvertiser(
            advertiser=at["advertiser"], name=body.name, daily_budget=body.daily_budget
        ),
    ),
    _route(
        *(PUT, f"{_ADVERTISER}/budget", "setBudget", "Set an advertiser's daily budget", "campaigns:write"),
        body=b.Budget,
        answer=p.AdvertiserShow,
        order=lambda at, _, body: p.UpdateAdvertiser(advertiser=at["advertiser"], daily_budget=body.daily_budget),
    ),
)

CAMPAIGNS: Final = (
    _route(
        *(GET, _CAMPAIGNS, "listCampaigns", "An advertiser's campaigns", "campaigns:read"),
        query=b.PageQuery,
        answer=p.CampaignList,
        order=lambda at, q, _: p.GetCampaigns(advertiser=at["advertiser"], after=q.after, limit=q.limit),
    ),
    _route(
        *(POST, _CAMPAIGNS, "createCampaign", "Create a campaign", "campaigns:write"),
        body=b.CreateCampaign,
        answer=p.CampaignShow,
        status=201,
        order=_create_campaign,
    ),
    _route(
        *(GET, _CAMPAIGN, "showCampaign", "A campaign, its spend and creatives", "campaigns:read"),
        answer=p.CampaignShow,
        order=lambda at, _, __: p.GetCampaign(campaign=at["campaign"]),
    ),
    _route(
        *(PATCH, _CAMPAIGN, "updateCampaign", "Change a campaign's name, bid or budget", "campaigns:write"),
        body=b.UpdateCampaign,
        answer=p.CampaignShow,
        order=lambda at, _, body: p.UpdateCampaign(
            campaign=at["campaign"], name=body.name, max_cpm=body.max_cpm, daily_budget=body.daily_budget
        ),
    ),
    _route(
        *(PUT, f"{_CAMPAIGN}/status", "setCampaignStatus", "Pause or resume a campaign", "campaigns:write"),
        body=b.Status,
        answer=p.CampaignShow,
        order=lambda at, _, body: _status(at["campaign"], body.status),
        shown=lambda at, _, __: p.GetCampaign(campaign=at["campaign"]),
    ),
    _route(
        *(DELETE, _CAMPAIGN, "deleteCampaign", "Delete a campaign, for ever", "campaigns:write"),
        status=204,
        order=lambda at, _, __: _status(at["campaign"], "deleted"),
    ),
    _route(
        *(GET, _CREATIVES, "listCreatives", "A campaign's creatives", "campaigns:read"),
        answer=p.CreativeList,
        order=lambda at, _, __: p.GetCreatives(campaign=at["campaign"]),
    ),
    _route(
        *(POST, _CREATIVES, "createCreative", "Register a creative", "campaigns:write"),
        body=b.CreateCreative,
        answer=p.CreativeShow,
        status=201,
        order=_create_creative,
    ),
    _route(
        *(PATCH, f"{_CREATIVE}/status", "setCreativeStatus", "Pause or resume a creative", "campaigns:write"),
        body=b.Status,
        answer=p.CreativeShow,
        order=lambda at, _, body: p.SetCreativeStatus(creative=at["creative"], status=body.status),
    ),
    _route(
        *(DELETE, _CREATIVE, "deleteCreative", "Delete a creative, for ever", "campaigns:write"),
        status=204,
        order=lambda at, _, __: p.SetCreativeStatus(creative=at["creative"], status="deleted"),
    ),
)


def _account(kind: str, verb: str, order: Callable[[str], msgspec.Struct]) -> Route:
    return _route(
        *(POST, f"/v1/internal/{kind}s/{{{kind}}}/{verb}", f"{verb}{kind.capitalize()}"),
        *(f"{verb.capitalize()} the {kind} named so: nothing is lost by it", "accounts:write"),
        status=204,
        order=lambda at, _, __: order(at[kind]),
    )


SHARED: Final = (
    _account("advertiser", "suspend", lambda name: p.SetAdvertiserStatus(advertiser=name, status="suspended")),
    _account("advertiser", "resume", lambda name: p.SetAdvertiserStatus(advertiser=name, status="active")),
    _account("site", "suspend", lambda name: p.UpdateSite(site=name, suspended=True)),
    _account("site", "resume", lambda name: p.UpdateSite(site=name, suspended=False)),
    _route(
        *(GET, "/v1/taxonomy/categories", "listCategories", "The content categories", "campaigns:read"),
        query=b.SearchQuery,
        answer=answers.Categories,
    ),
)

EVENT_STREAMS: Final = tuple(
    _route(
        *(GET, f"{path}/events", name, "Approvals, flags, floors and pages as they happen", "events:read"),
        media=EVENTS,
    )
    for path, name in (("/v1/publishers/{publisher}", "watchPublisher"), (_SITE, "watchSite"))
)

WEBHOOK: Final = Route(
    method=POST,
    path="/v1/webhooks/{sender}",
    name="webhook",
    summary="Take a signed message (Standard Webhooks) that suspends or resumes an account",
    body=WebhookBody,
    status=204,
    problems=(400, 401, 404, 408, 409, 413, 503),
)

ADMIN: Final = (*SITES, *ADVERTISERS, *CAMPAIGNS, *SHARED, *EVENT_STREAMS)
