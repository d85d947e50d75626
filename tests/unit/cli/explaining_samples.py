"""Answers that explain a site, a campaign, and who follows the log of facts."""

from __future__ import annotations

import msgspec

from node.admin.protocol import explaining as x
from node.admin.protocol import facts

AT = "2026-11-29T14:03:11.204Z"


def samples(nasty: str) -> dict[str, msgspec.Struct]:
    return {
        "SiteExplanation": x.SiteExplanation(
            site="example.com",
            ok=False,
            checks=(
                x.SiteCheck(check="fresh pages that the ad server lacks", result="ok", count=0, detail=""),
                x.SiteCheck(check="candidates that must not be served", result="fail", count=1, detail=nasty),
                x.SiteCheck(check="aged pages", result="unknown", count=0, detail="did not answer"),
            ),
            pages=x.SitePages(
                total=5,
                fresh=4,
                outdated=1,
                fallback=1,
                classifying=1,
                classifying_ms=1_500,
                waiting=2,
                unknown_last_minute=3,
            ),
            today=x.SiteDay(filled=7, paced=2, without_money=1, without_candidates=4, spent="0.0213", too_old=3),
            counts=(
                x.Counted(of="auctions", label="periodic", this_hour=1, last_hour=12, day=13, day_ratio=1.0),
                x.Counted(of="late", label="653 rail", this_hour=0, last_hour=2, day=2, day_ratio=1.0),
                x.Counted(of="slots", label="filled", this_hour=7, last_hour=0, day=7, day_ratio=0.7),
            ),
            unknown=(
                x.UnknownPage(url=nasty, views=9, last_view_at=AT, nearest="https://example.com/food/"),
                x.UnknownPage(url="https://example.com/x", views=1, last_view_at=AT, nearest=None),
            ),
            waiting=(
                x.WaitingCreative(creative="cr-2", campaign="rail", since=AT, slots=("top", "side"), hidden=nasty),
            ),
            bidders=(
                x.HeardBidder(
                    category="653", name="Travel", stripe=2, shard=17, node="node-1", answered_at=AT, complete=True
                ),
                x.HeardBidder(
                    category="1", name=nasty, stripe=2, shard=18, node=None, answered_at=None, complete=False
                ),
            ),
            floors=(
                x.LearnedFloor(
                    category="", name="the site's own", floor_cpm="0.50", least_cpm="0.50", most_cpm=None, phase="init"
                ),
            ),
            weights=(x.CategoryWeight(category="653", name=nasty, mean=0.0213, draw=0.0187, told_at=AT),),
        ),
        "CampaignExplanation": x.CampaignExplanation(
            campaign="rail",
            advertiser="acme",
            standing="active",
            ok=False,
            money=x.CampaignMoney(
                daily_budget="50.00",
                spent="1.25",
                reserved="0.004",
                held="0.10",
                charged="31.20",
                charged_to_advertiser="31.20",
                untold="0.00",
            ),
            without_product=("cr-1", nasty),
            stripes=(
                x.CampaignStripe(
                    category="653",
                    name="Travel",
                    stripe=0,
                    shard=3,
                    node="node-1",
                    quote="counts",
                    quote_age_s=12.5,
                    answered_at=AT,
                    complete=True,
                    quotes=3,
                    ok=True,
                ),
                x.CampaignStripe(
                    category="653",
                    name=nasty,
                    stripe=1,
                    shard=4,
                    node=None,
                    quote="silent",
                    quote_age_s=None,
                    answered_at=None,
                    complete=False,
                    quotes=0,
                    ok=False,
                ),
            ),
        ),
        "FactStatus": facts.FactStatus(
            ok=True,
            last=120_034,
            items=(
                facts.FactFollower(
                    projection="ledger",
                    offset=120_030,
                    behind=4,
                    node="node-1",
                    failures=2,
                    conflicts=0,
                    last_failure=nasty,
                    last_failure_at=AT,
                ),
                facts.FactFollower(
                    projection="totals",
                    offset=120_034,
                    behind=0,
                    node=None,
                    failures=0,
                    conflicts=0,
                    last_failure="",
                    last_failure_at=None,
                ),
            ),
        ),
    }
