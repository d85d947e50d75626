"""Sites and campaigns as their operator asks about them: what is counted where it happens, and what must agree."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type

# ---- sites


@wire_type("admin.site_explanation_get")
class ExplainSite(msgspec.Struct, frozen=True, kw_only=True):
    site: str


@wire_type("admin.site_check")
class SiteCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that must be 0: `result` is ok, fail, or unknown where somebody did not answer."""

    check: str
    result: str
    count: int
    detail: str


@wire_type("admin.counted")
class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """How often in this hour of UTC, in the one before it and in all the last 24, and its share of all of its kind in
    those. `of`: auctions (by what made them), late (bids that auctions went without, by category and campaign), slots
    (filled, or why not), hops (of filled slots), floors, or texts (by who judged them)."""

    of: str
    label: str
    this_hour: int
    last_hour: int
    day: int
    day_ratio: float


@wire_type("admin.unknown_page")
class UnknownPage(msgspec.Struct, frozen=True, kw_only=True):
    """An url that was viewed and that nothing is known of, and the known one that is written most like it."""

    url: str
    views: int
    last_view_at: str
    nearest: str | None


@wire_type("admin.waiting_creative")
class WaitingCreative(msgspec.Struct, frozen=True, kw_only=True):
    """What waits for the publisher, and why its approval would change nothing now: empty where it would."""

    creative: str
    campaign: str
    since: str
    slots: tuple[str, ...]
    hidden: str


@wire_type("admin.heard_bidder")
class HeardBidder(msgspec.Struct, frozen=True, kw_only=True):
    """A category that the site's auctions ask for: its stripe, where that lives, and when it answered last."""

    category: str
    name: str
    stripe: int
    shard: int
    node: str | None
    answered_at: str | None
    complete: bool


@wire_type("admin.learned_floor")
class LearnedFloor(msgspec.Struct, frozen=True, kw_only=True):
    """`category` is empty for the site's own. `least_cpm` is the publisher's; `most_cpm`, null where no bid was seen,
    the most that is worth asking by the bids of this sweep."""

    category: str
    name: str
    floor_cpm: str
    least_cpm: str
    most_cpm: str | None
    phase: str


@wire_type("admin.category_weight")
class CategoryWeight(msgspec.Struct, frozen=True, kw_only=True):
    """What a category is worth on the site, in clicks for an impression, as its ranker said last: `mean` is expected;
    by `draw`, a guess at random within what is known, a page's categories are ranked until the next one is told."""

    category: str
    name: str
    mean: float
    draw: float
    told_at: str


@wire_type("admin.site_pages")
class SitePages(msgspec.Struct, frozen=True, kw_only=True):
    """`outdated`: fresh ones that were judged before what is judged now; `fallback`: by what stood in for the provider.
    `classifying`: texts under way, the oldest for `classifying_ms`; `waiting`: pages that are to be auctioned.
    `unknown_last_minute`: views of unknown urls in the last whole minute of the clock, not in the running one. Null is
    what site, auctioneer or ad server did not tell."""

    total: int
    fresh: int
    outdated: int
    fallback: int
    classifying: int | None
    classifying_ms: int | None
    waiting: int | None
    unknown_last_minute: int | None


@wire_type("admin.site_day")
class SiteDay(msgspec.Struct, frozen=True, kw_only=True):
    """Since midnight, UTC, at the site's ad server: slots that were filled, and page views without an ad; `too_old`:
    for the page was judged too long ago."""

    filled: int
    paced: int
    without_money: int
    without_candidates: int
    spent: str
    too_old: int = 0


@wire_type("admin.site_explanation")
class SiteExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """`counts` and all that ad server, auctioneer and site keep in memory begin with their start. Of one that does not
    answer, `today` is null and the lists have nothing; its node is missing."""

    site: str
    ok: bool
    checks: tuple[SiteCheck, ...]
    pages: SitePages
    today: SiteDay | None
    counts: tuple[Counted, ...]
    unknown: tuple[UnknownPage, ...]
    waiting: tuple[WaitingCreative, ...]
    bidders: tuple[HeardBidder, ...]
    floors: tuple[LearnedFloor, ...]
    weights: tuple[CategoryWeight, ...] = ()


# ---- campaigns


@wire_type("admin.campaign_explanation_get")
class ExplainCampaign(msgspec.Struct, frozen=True, kw_only=True):
    campaign: str


@wire_type("admin.campaign_money")
class CampaignMoney(msgspec.Struct, frozen=True, kw_only=True):
    """Today: `spent` is what impressions cost, `reserved` what is promised to ads that are not seen yet, `held` the
    durable cover of such promises. In its life: `charged`, and what its advertiser has taken in of that; `untold` is
    what it has not: some minutes' impressions, of an ad server that died."""

    daily_budget: str
    spent: str
    reserved: str
    held: str
    charged: str
    charged_to_advertiser: str
    untold: str


@wire_type("admin.campaign_stripe")
class CampaignStripe(msgspec.Struct, frozen=True, kw_only=True):
    """One stripe of a category that the campaign bids in. `quote`: counts, stale (two renewals were missed), expired,
    withdrawn, unregistered, missing, unknown (nobody has sent one) or silent (the stripe does not answer).
    `answered_at`: the last auction that it answered, null for none since its start. `quotes`: how many it has."""

    category: str
    name: str
    stripe: int
    shard: int
    node: str | None
    quote: str
    quote_age_s: float | None
    answered_at: str | None
    complete: bool
    quotes: int
    ok: bool


@wire_type("admin.campaign_explanation")
class CampaignExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """`without_product`: creatives that no block of a product can reach. `ok`: every stripe has its standing bid, if it
    bids, and none of them has one, if it does not."""

    campaign: str
    advertiser: str
    standing: str
    ok: bool
    money: CampaignMoney
    without_product: tuple[str, ...]
    stripes: tuple[CampaignStripe, ...]
