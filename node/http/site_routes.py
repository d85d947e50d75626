"""Administration of sites: settings, approvals, what happens to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from node.admin import protocol as p
from node.admin.protocol import publishers
from node.admin.protocol.explaining import ExplainSite, SiteExplanation
from node.ads.money import parse_money
from node.http import admin_answers as answers
from node.http import admin_bodies as b
from node.http.guarded_route import guarded
from node.http.route import DELETE, EVENTS, GET, PATCH, POST, PUT, Order, Params

_SITES: Final = "/v1/publishers/{publisher}/sites"
_SITE: Final = f"{_SITES}/{{site}}"
_APPROVAL: Final = f"{_SITE}/approval"


def _site(order: Callable[[str, Any], msgspec.Struct]) -> Order:
    return lambda params, _query, body: order(params["site"], body)


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


def _show_site(params: Params, _query: Any, _body: Any) -> p.GetSite:
    return p.GetSite(site=params["site"])


SITES: Final = (
    guarded(
        *(GET, _SITES, "listSites", "A publisher's sites", "sites:read"),
        query=b.PageQuery,
        answer=p.SiteList,
        order=lambda at, q, _: p.GetSites(publisher=at["publisher"], after=q.after, limit=q.limit),
    ),
    guarded(
        *(POST, _SITES, "createSite", "Create a site", "sites:write"),
        body=b.CreateSite,
        answer=p.SiteShow,
        status=201,
        order=_create_site,
    ),
    guarded(
        *(GET, _SITE, "showSite", "A site, and what it has approved, blocked and learned", "sites:read"),
        answer=p.SiteShow,
        order=_show_site,
    ),
    guarded(
        *(PATCH, _SITE, "updateSite", "Change a site's settings", "sites:write"),
        body=b.UpdateSite,
        answer=p.SiteShow,
        order=_site(
            lambda site, body: p.UpdateSite(
                site=site,
                floor_cpm=body.floor_cpm,
                paced=body.paced,
                auto_approve=body.auto_approve,
                timezone=body.timezone,
            )
        ),
    ),
    guarded(
        *(DELETE, _SITE, "deleteSite", "Delete a site, its pages, approvals and pools, for ever", "sites:write"),
        status=204,
        order=_site(lambda site, _: publishers.DeleteSite(site=site)),
    ),
    guarded(
        *(PUT, f"{_SITE}/slots/{{slot}}", "setSlot", "Declare a slot, or another size of one", "sites:write"),
        body=b.SlotSize,
        answer=p.SiteShow,
        order=lambda at, _, body: p.UpdateSite(
            site=at["site"], slots=(p.Slot(slot=at["slot"], width=body.width, height=body.height),)
        ),
    ),
    guarded(
        *(DELETE, f"{_SITE}/slots/{{slot}}", "dropSlot", "Declare a slot no more", "sites:write"),
        answer=p.SiteShow,
        order=lambda at, _, __: p.UpdateSite(site=at["site"], drop_slots=(at["slot"],)),
    ),
    guarded(
        *(PUT, f"{_SITE}/slots/{{slot}}/floor", "setSlotFloor", "Set or clear a slot's own floor", "sites:write"),
        body=b.SlotFloor,
        answer=p.SiteShow,
        order=_slot_floor,
    ),
    guarded(
        *(POST, f"{_SITE}/blocklist", "blockDomains", "Block domains that ads land on", "sites:write"),
        body=b.Domains,
        answer=p.SiteShow,
        order=_site(lambda site, body: p.UpdateSite(site=site, block_domains=body.domains)),
    ),
    guarded(
        *(DELETE, f"{_SITE}/blocklist", "unblockDomains", "Take domains from those blocked", "sites:write"),
        body=b.Domains,
        answer=p.SiteShow,
        order=_site(lambda site, body: p.UpdateSite(site=site, unblock_domains=body.domains)),
    ),
    guarded(
        *(POST, f"{_SITE}/ad-product-blocklist", "blockProducts", "Block product categories", "sites:write"),
        body=b.Products,
        answer=p.SiteShow,
        order=_site(lambda site, body: p.UpdateSite(site=site, block_products=body.categories)),
    ),
    guarded(
        *(DELETE, f"{_SITE}/ad-product-blocklist", "unblockProducts", "Unblock product categories", "sites:write"),
        body=b.Products,
        answer=p.SiteShow,
        order=_site(lambda site, body: p.UpdateSite(site=site, unblock_products=body.categories)),
    ),
    guarded(
        *(GET, f"{_SITE}/pages", "listPages", "A site's classified pages, the oldest first", "sites:read"),
        query=b.UrlsQuery,
        answer=p.PageList,
        order=lambda at, q, _: p.GetPages(site=at["site"], after=q.after, limit=q.limit),
    ),
    guarded(
        *(GET, f"{_SITE}/coverage", "explainCoverage", "Why each slot is filled or empty", "sites:read"),
        answer=p.CoverageExplanation,
        order=_site(lambda site, _: p.ExplainCoverage(site=site)),
    ),
    guarded(
        *(GET, f"{_SITE}/explanation", "explainSite", "What happens at a site and why, by the hour", "sites:read"),
        answer=SiteExplanation,
        order=_site(lambda site, _: ExplainSite(site=site)),
    ),
    guarded(
        *(GET, f"{_APPROVAL}/pending", "listPending", "Creatives that wait for the publisher", "sites:read"),
        query=b.PageQuery,
        answer=answers.Pending,
    ),
    guarded(
        *(GET, f"{_APPROVAL}/serving", "listServing", "Creatives that the publisher has approved", "sites:read"),
        query=b.PageQuery,
        answer=answers.Serving,
    ),
    guarded(
        *(GET, f"{_APPROVAL}/flagged", "listFlagged", "Creatives that the publisher flagged", "sites:read"),
        query=b.PageQuery,
        answer=answers.Flagged,
    ),
    guarded(
        *(POST, f"{_APPROVAL}/approve", "approve", "Let a creative be served on the site", "approvals:write"),
        body=b.Creative,
        answer=p.Approved,
        order=_site(lambda site, body: p.ApproveCreative(creative=body.creative, site=site)),
    ),
    guarded(
        *(POST, f"{_APPROVAL}/revoke", "revoke", "Take an approval back", "approvals:write"),
        body=b.Creative,
        status=204,
        order=_site(lambda site, body: p.RevokeCreative(creative=body.creative, site=site)),
    ),
    guarded(
        *(POST, f"{_APPROVAL}/reject", "reject", "Reject a creative, for good", "approvals:write"),
        body=b.Creative,
        status=204,
        order=_site(lambda site, body: p.RevokeCreative(creative=body.creative, site=site, reject=True)),
    ),
    guarded(
        *(POST, f"{_APPROVAL}/flag", "flag", "Reject a creative, and say why", "approvals:write"),
        body=b.Flag,
        answer=answers.Changed,
    ),
    guarded(
        *(POST, f"{_APPROVAL}/unflag", "unflag", "Let a flagged creative wait for approval again", "approvals:write"),
        body=b.Creative,
        answer=answers.Changed,
    ),
    guarded(
        *(POST, f"{_APPROVAL}/bulk", "approveAll", "Approve everything that waits", "approvals:write"),
        answer=answers.Bulk,
    ),
    guarded(
        *(GET, f"{_SITE}/verification-token", "showToken", "The token for the site's tag, made at need", "sites:write"),
        answer=answers.SiteToken,
    ),
    guarded(
        *(GET, f"{_SITE}/auto-approve", "showAutoApprove", "Whether what is trusted skips the queue", "sites:read"),
        answer=answers.AutoApprove,
    ),
    guarded(
        *(PUT, f"{_SITE}/auto-approve", "setAutoApprove", "Let what is trusted skip the queue or not", "sites:write"),
        body=b.AutoApproval,
        answer=p.SiteShow,
        order=_site(lambda site, body: p.UpdateSite(site=site, auto_approve=body.enabled)),
    ),
    guarded(
        *(DELETE, f"{_SITE}/auto-approve/anchors", "forgetAnchor", "Trust a campaign or domain no more", "sites:write"),
        body=b.Anchor,
        answer=p.SiteShow,
        order=_site(lambda site, body: p.UpdateSite(site=site, distrust=(f"{body.kind}|{body.value}",))),
    ),
)

EVENT_STREAMS: Final = tuple(
    guarded(
        *(GET, f"{path}/events", name, "Approvals, flags, floors and pages as they happen", "events:read"),
        media=EVENTS,
    )
    for path, name in (("/v1/publishers/{publisher}", "watchPublisher"), (_SITE, "watchSite"))
)
