"""What the cluster serves: publishers' sites, pages, advertisers, campaigns, creatives."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.slot")
class Slot(msgspec.Struct, frozen=True, kw_only=True):
    slot: str
    width: int
    height: int


@wire_type("admin.site_create")
class CreateSite(msgspec.Struct, frozen=True, kw_only=True):
    site: str
    host: str
    publisher: str
    slots: tuple[Slot, ...]
    floor_cpm: str = "0.50"
    reason: str = ""
    request_id: str = ""


@wire_type("admin.site_list_get")
class GetSites(msgspec.Struct, frozen=True, kw_only=True):
    """The first `limit` (0: as many as an answer holds) behind the id `after`. So with the other lists here.
    `publisher` empty: of all."""

    after: str = ""
    limit: int = 0
    publisher: str = ""


@wire_type("admin.site_get")
class GetSite(msgspec.Struct, frozen=True, kw_only=True):
    site: str


@wire_type("admin.category_floor")
class CategoryFloor(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for a category, learned from who bids for it and what is paid."""

    category: str
    name: str
    floor_cpm: str


@wire_type("admin.slot_floor")
class SlotFloor(msgspec.Struct, frozen=True, kw_only=True):
    """The publisher's own floor of a slot, in place of any that was learned."""

    slot: str
    floor_cpm: str


@wire_type("admin.slot_quality")
class SlotQuality(msgspec.Struct, frozen=True, kw_only=True):
    """What page tags have measured of a slot, in [0, 1]: below 0.5 it is asked less than its learned floor."""

    slot: str
    quality: float


@wire_type("admin.site")
class SiteShow(msgspec.Struct, frozen=True, kw_only=True):
    """`pages_fallback`: of the fresh pages, those that were not judged by the provider that should have.
    `suspended_by`: the site, its publisher, its deletion, or several. `publisher_domains`: those that its publisher
    blocks on all its sites. `audience`: where its readers are, by the publisher's word.
    `shard` and `node`: where its entity lives; `node` is null while nobody has the shard. `changed`: whether what this
    answers changed anything, which no question does. So with the others here."""

    site: str
    host: str
    publisher: str
    verified_host: str | None
    slots: tuple[Slot, ...]
    pages_fresh: int
    suspended: bool
    floor_cpm: str = "0"
    approved: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    changed: bool = True
    rejected: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    blocked_products: tuple[str, ...] = ()
    learned_floor_cpm: str = "0"
    category_floors: tuple[CategoryFloor, ...] = ()
    paced: bool = False
    auto_approve: bool = False
    trusted: tuple[str, ...] = ()
    flagged: tuple[str, ...] = ()
    slot_floors: tuple[SlotFloor, ...] = ()
    suspicions: tuple[str, ...] = ()
    slot_qualities: tuple[SlotQuality, ...] = ()
    timezone: str = "UTC"
    margin: str = "0.00"
    pages_fallback: int = 0
    suspended_by: tuple[str, ...] = ()
    publisher_domains: tuple[str, ...] = ()
    audience: tuple[str, ...] = ()
    shard: int | None = None
    node: str | None = None


@wire_type("admin.site_list")
class SiteList(msgspec.Struct, frozen=True, kw_only=True):
    """`next`: what to ask for `after`; empty when these are the last. So with the other lists here."""

    items: tuple[SiteShow, ...]
    next: str = ""


@wire_type("admin.page_list_get")
class GetPages(msgspec.Struct, frozen=True, kw_only=True):
    """`after`: a page's url; the oldest come first."""

    site: str
    after: str = ""
    limit: int = 0


@wire_type("admin.category")
class CategoryScore(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    confidence: float
    path: str = ""


@wire_type("admin.page")
class PageItem(msgspec.Struct, frozen=True, kw_only=True):
    """`fallback`: `provider` judged it in place of the one that should have; `outdated`: before what is judged now."""

    url: str
    classified_at: str
    fresh: bool
    categories: tuple[CategoryScore, ...]
    places: tuple[str, ...] = ()
    provider: str = ""
    fallback: bool = False
    outdated: bool = False


@wire_type("admin.page_list")
class PageList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[PageItem, ...]
    next: str = ""


@wire_type("admin.page_classify")
class ClassifyText(msgspec.Struct, frozen=True, kw_only=True):
    """Classify a text, or the main text of an HTML page, without storing anything. One that is larger than a message
    was sent before, in UTF-8, as `transfer`. `html`: it is markup, although it may not look like it."""

    text: str = ""
    hint: str = ""
    transfer: str = ""
    html: bool = False


@wire_type("admin.classification")
class ClassificationShow(msgspec.Struct, frozen=True, kw_only=True):
    categories: tuple[CategoryScore, ...]
    provider: str
    elapsed_ms: float
    fallback: bool = False
    places: tuple[str, ...] = ()


@wire_type("admin.advertiser_create")
class CreateAdvertiser(msgspec.Struct, frozen=True, kw_only=True):
    advertiser: str
    name: str
    daily_budget: str
    timezone: str = "UTC"
    reason: str = ""
    request_id: str = ""


@wire_type("admin.advertiser_list_get")
class GetAdvertisers(msgspec.Struct, frozen=True, kw_only=True):
    after: str = ""
    limit: int = 0


@wire_type("admin.advertiser_get")
class GetAdvertiser(msgspec.Struct, frozen=True, kw_only=True):
    advertiser: str


@wire_type("admin.advertiser")
class AdvertiserShow(msgspec.Struct, frozen=True, kw_only=True):
    """`shard` and `node`: as of a site."""

    advertiser: str
    name: str
    status: str
    daily_budget: str
    spent_today: str
    timezone: str
    campaigns: tuple[str, ...]
    creatives: int
    changed: bool = True
    shard: int | None = None
    node: str | None = None


@wire_type("admin.advertiser_list")
class AdvertiserList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[AdvertiserShow, ...]
    next: str = ""


@wire_type("admin.campaign_create")
class CreateCampaign(msgspec.Struct, frozen=True, kw_only=True):
    """`sites` and `places`: where it bids, empty for anywhere; `audience`: on sites whose readers are there, empty for
    any; never on pages of `blocked_categories` or below them. From `start_at` until `end_at` (RFC 3339; empty: open).
    `unmatched`: on pages without a category, too."""

    campaign: str
    advertiser: str
    name: str
    max_cpm: str
    daily_budget: str
    categories: tuple[str, ...]
    reason: str = ""
    request_id: str = ""
    sites: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    blocked_categories: tuple[str, ...] = ()
    start_at: str = ""
    end_at: str = ""
    unmatched: bool = False
    audience: tuple[str, ...] = ()


@wire_type("admin.campaign_list_get")
class GetCampaigns(msgspec.Struct, frozen=True, kw_only=True):
    advertiser: str | None = None
    after: str = ""
    limit: int = 0


@wire_type("admin.campaign_get")
class GetCampaign(msgspec.Struct, frozen=True, kw_only=True):
    campaign: str


@wire_type("admin.campaign")
class CampaignShow(msgspec.Struct, frozen=True, kw_only=True):
    """`status` is what its operator said; `standing` is active, or what keeps it from bidding now: also suspended (its
    advertiser is), scheduled, ended or exhausted. `shard` and `node`: as of a site."""

    campaign: str
    advertiser: str
    name: str
    status: str
    max_cpm: str
    daily_budget: str
    spent_today: str
    reserved: str
    impressions_count: int
    clicks_count: int
    categories: tuple[str, ...]
    creatives: tuple[str, ...]
    changed: bool = True
    standing: str = "active"
    sites: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    blocked_categories: tuple[str, ...] = ()
    start_at: str | None = None
    end_at: str | None = None
    unmatched: bool = False
    ctas_count: int = 0
    folds_count: int = 0
    audience: tuple[str, ...] = ()
    shard: int | None = None
    node: str | None = None


@wire_type("admin.campaign_list")
class CampaignList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[CampaignShow, ...]
    next: str = ""


@wire_type("admin.creative_create")
class CreateCreative(msgspec.Struct, frozen=True, kw_only=True):
    creative: str
    campaign: str
    asset_url: str
    landing_url: str
    width: int
    height: int
    mime: str = "image/png"
    product: str = ""
    reason: str = ""
    request_id: str = ""


@wire_type("admin.creative_list_get")
class GetCreatives(msgspec.Struct, frozen=True, kw_only=True):
    """In the order of campaigns; `after`: a campaign, all of whose creatives were listed."""

    campaign: str | None = None
    after: str = ""
    limit: int = 0


@wire_type("admin.creative_get")
class GetCreative(msgspec.Struct, frozen=True, kw_only=True):
    creative: str


@wire_type("admin.creative")
class CreativeShow(msgspec.Struct, frozen=True, kw_only=True):
    creative: str
    campaign: str
    advertiser: str
    asset_url: str
    landing_url: str
    width: int
    height: int
    mime: str
    approved_sites: tuple[str, ...] = ()
    changed: bool = True
    product: str = ""
    status: str = "active"


@wire_type("admin.creative_list")
class CreativeList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[CreativeShow, ...]
    next: str = ""


@wire_type("admin.creative_approve")
class ApproveCreative(msgspec.Struct, frozen=True, kw_only=True):
    """`site` empty: every site where it waits."""

    creative: str
    site: str = ""
    reason: str = ""
    request_id: str = ""


@wire_type("admin.approved")
class Approved(msgspec.Struct, frozen=True, kw_only=True):
    creative: str
    sites: tuple[str, ...]
    changed: bool
