"""Answers about the ad business, for `samples`: sites, campaigns, money, and why a slot shows what it shows."""

from __future__ import annotations

import msgspec
from sample_words import AT, NASTY, VERSION

from node.admin import protocol as p
from node.admin.protocol import facts
from node.admin.protocol.serving import ExplainedTurnedAway

_CATEGORY = p.CategoryScore(id="653", name="Travel", confidence=0.91, path=f"Travel > {NASTY}")
_SITE = p.SiteShow(
    site="example.com",
    host="example.com",
    publisher=NASTY,
    verified_host=None,
    slots=(p.Slot(slot="top", width=728, height=90),),
    pages_fresh=3,
    suspended=False,
)
_ADVERTISER = p.AdvertiserShow(
    advertiser="acme",
    name=NASTY,
    status="active",
    daily_budget="100.00",
    spent_today="0.25",
    timezone="UTC",
    campaigns=("rail",),
    creatives=2,
)
_CAMPAIGN = p.CampaignShow(
    campaign="rail",
    advertiser="acme",
    name=NASTY,
    status="active",
    max_cpm="4.00",
    daily_budget="50.00",
    spent_today="0.01",
    reserved="0",
    impressions_count=3,
    clicks_count=0,
    categories=("653",),
    creatives=("cr-1",),
)
_CREATIVE = p.CreativeShow(
    creative="cr-1",
    campaign="rail",
    advertiser="acme",
    asset_url="https://cdn.example/a.png",
    landing_url="https://rail.example/",
    width=728,
    height=90,
    mime="image/png",
)

SAMPLES: dict[str, msgspec.Struct] = {
    "AdvertiserList": p.AdvertiserList(items=(_ADVERTISER,)),
    "AdvertiserShow": _ADVERTISER,
    "Approved": p.Approved(creative="cr-1", sites=("example.com",), changed=True),
    "CampaignList": p.CampaignList(items=(_CAMPAIGN,)),
    "CampaignShow": _CAMPAIGN,
    "Classification": p.ClassificationShow(categories=(_CATEGORY,), provider="local", elapsed_ms=1.25),
    "Coverage": p.Coverage(
        expected=2,
        present=1,
        ratio=0.5,
        sites=(
            p.SiteCoverage(
                site="example.com",
                expected=2,
                present=1,
                ratio=0.5,
                missing=(p.EmptySlot(slot="side", reason=NASTY),),
            ),
        ),
        nodes=(p.NodeCoverage(node="node-1", expected=2, present=1, ratio=0.5),),
    ),
    "CoverageExplanation": p.CoverageExplanation(
        site="example.com",
        expected=2,
        present=1,
        ratio=0.5,
        slots=(
            p.ExplainedSlot(slot="side", reason="no_demand", why=NASTY, fill=NASTY, pages=1),
            p.ExplainedSlot(
                slot="top", reason="filled", why="2 candidates in its pool", fill="", pages=1, lacking=("node-2",)
            ),
        ),
    ),
    "CreativeList": p.CreativeList(items=(_CREATIVE,)),
    "CreativeShow": _CREATIVE,
    "FactList": facts.FactList(
        items=(
            facts.FactItem(
                offset=17, at=AT, type="impression", about="campaign/rail", fields={"site": NASTY, "price": "0.003"}
            ),
            facts.FactItem(
                offset=18, at=AT, type="click", about="campaign/rail", problem=f"malformed: {NASTY}", size_bytes=3
            ),
        ),
        next=18,
        first=1,
    ),
    "LedgerShow": facts.LedgerShow(
        items=(
            facts.LedgerItem(
                id=f"rail held/{NASTY}",
                account=f"held/{NASTY}",
                campaign="rail",
                received="3.00",
                given="1.00",
                balance="2.00",
                postings=4,
            ),
            facts.LedgerItem(id="margin", account="margin", received="3.00", given="0.00", balance="3.00", postings=1),
        ),
        by="campaign",
        offset=17,
        behind=3,
        balanced=False,
        unreadable=2,
    ),
    "LedgerVerify": facts.LedgerVerify(
        ok=False,
        facts=17,
        rows=5,
        entities=2,
        unreadable=1,
        differing=1,
        items=(facts.LedgerDifference(kind="clicks", about=f"campaign/{NASTY}", found="2", expected=NASTY),),
        busy=("campaign/bus",),
    ),
    "PageList": p.PageList(
        items=(
            p.PageItem(
                url="https://example.com/a?b=1,2",
                classified_at="2026-11-29T14:00:00.000Z",
                fresh=True,
                categories=(_CATEGORY,),
            ),
        )
    ),
    "Revoked": p.Revoked(creative="cr-1", sites=("example.com",), rejected=True, changed=True),
    "ServeExplanation": p.ServeExplanation(
        site="example.com",
        slot="top",
        page="https://example.com/a",
        served=True,
        winner="cr-1",
        price="2.31",
        floor="0.50",
        runner_up=None,
        candidates=(
            p.ExplainedCandidate(
                creative="cr-1",
                campaign="rail",
                cpm="4.00",
                score=0.4,
                ctr_mean=0.01,
                fold_mean=0.5,
                hops=0,
                outcome="winner",
                reason=NASTY,
            ),
        ),
        auction=p.ExplainedAuction(at="2026-11-29T14:00:00.000Z", trigger="classified", categories=("653",)),
        turned_away=(ExplainedTurnedAway(campaign="jp", reason="place_not_allowed"),),
        at="2026-11-29T14:03:10.004Z",
        why="cr-1 drew the best score; cr-2, its rival, sets the price 2.00",
        pool=p.ExplainedPool(version=VERSION, age_s=61.0, origin="node-1"),
    ),
    "SiteList": p.SiteList(items=(_SITE,)),
    "SiteShow": _SITE,
}
