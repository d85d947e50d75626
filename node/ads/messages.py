"""What the ad core's entities say to each other and to the edges. Money in CPM or account micros, times in wall ms."""

from __future__ import annotations

import msgspec

from node.ads.auction import Offer
from node.ads.view import AuctionInfo, CandidateView
from node.wire.registry import wire_type

# Topics, cluster-wide.
CAMPAIGN_CHANGED = "campaign-changed"
DIRECTORY_STARTED = "directory-started"


@wire_type("ads.slot_spec")
class SlotSpec(msgspec.Struct, frozen=True):
    """A place on a site's pages, in CSS pixels."""

    slot: str
    width: int
    height: int


@wire_type("ads.page_entry")
class PageEntry(msgspec.Struct, frozen=True):
    """One classified page: its categories with confidences, the slots seen on it, when and by whom it was judged."""

    url: str
    categories: tuple[tuple[str, float], ...]
    slots: tuple[str, ...]
    classified_at_ms: int
    provider: str = "local"
    fallback: bool = False


@wire_type("ads.accepted")
class Accepted(msgspec.Struct, frozen=True):
    """It holds; `changed` is false when it held already."""

    changed: bool = True


# ---- publisher


@wire_type("ads.register_site")
class RegisterSite(msgspec.Struct, frozen=True):
    site: str
    host: str


@wire_type("ads.publisher_secret")
class PublisherSecret(msgspec.Struct, frozen=True):
    secret: bytes


@wire_type("ads.resolve_site")
class ResolveSite(msgspec.Struct, frozen=True):
    """Which of the publisher's sites has this host?"""

    host: str


@wire_type("ads.resolved_site")
class ResolvedSite(msgspec.Struct, frozen=True):
    """`site` is empty when no site has the host."""

    site: str


# ---- site


@wire_type("ads.create_site")
class CreateSite(msgspec.Struct, frozen=True):
    site: str
    host: str
    publisher: str
    slots: tuple[SlotSpec, ...]
    floor_micros: int


@wire_type("ads.get_site")
class GetSite(msgspec.Struct, frozen=True):
    pass


@wire_type("ads.site_info")
class SiteInfo(msgspec.Struct, frozen=True):
    site: str
    host: str
    publisher: str
    slots: tuple[SlotSpec, ...]
    floor_micros: int
    suspended: bool
    pages_fresh: int
    approved: tuple[str, ...]
    pending: tuple[str, ...]
    changed: bool = True


@wire_type("ads.get_pages")
class GetPages(msgspec.Struct, frozen=True):
    pass


@wire_type("ads.pages")
class Pages(msgspec.Struct, frozen=True):
    entries: tuple[PageEntry, ...]


@wire_type("ads.classify_page")
class ClassifyPage(msgspec.Struct, frozen=True):
    """`slots` are those the page's tag reports; unknown ones join the site's list. Answered by ClassifyAck at once."""

    url: str
    text: str
    hint: str = ""
    slots: tuple[SlotSpec, ...] = ()


@wire_type("ads.classify_ack")
class ClassifyAck(msgspec.Struct, frozen=True):
    """`reason`: accepted, in_flight or unchanged."""

    accepted: bool
    reason: str


@wire_type("ads.auctioneer_started")
class AuctioneerStarted(msgspec.Struct, frozen=True):
    pass


@wire_type("ads.adserver_started")
class AdServerStarted(msgspec.Struct, frozen=True):
    pass


@wire_type("ads.pending_creative")
class PendingCreative(msgspec.Struct, frozen=True):
    """A creative that won somewhere on the site and waits for the publisher."""

    creative: str
    campaign: str
    advertiser: str
    slots: tuple[str, ...]
    first_seen_ms: int


@wire_type("ads.queue_pending")
class QueuePending(msgspec.Struct, frozen=True):
    creatives: tuple[PendingCreative, ...]


@wire_type("ads.approve_creative")
class ApproveCreative(msgspec.Struct, frozen=True):
    creative: str


@wire_type("ads.auction_report")
class AuctionReport(msgspec.Struct, frozen=True):
    """What an auction found, per slot: `(slot, offers of fitting size, bids below the floor, late bidders)`."""

    url: str
    slots: tuple[tuple[str, int, int, int], ...]


# ---- auctioneer


@wire_type("ads.restore_classifications")
class RestoreClassifications(msgspec.Struct, frozen=True):
    """The site's fresh pages. A page already held with the same or a newer time is ignored unless `force`."""

    entries: tuple[PageEntry, ...]
    slots: tuple[SlotSpec, ...]
    floor_micros: int
    trigger: str
    force: bool = False


@wire_type("ads.restored")
class Restored(msgspec.Struct, frozen=True):
    replayed: int
    ignored: int


@wire_type("ads.reevaluate")
class Reevaluate(msgspec.Struct, frozen=True):
    """Auction pages again; no urls: all of them."""

    urls: tuple[str, ...]
    trigger: str


# ---- category bidder, campaign directory


@wire_type("ads.quoted_creative")
class QuotedCreative(msgspec.Struct, frozen=True):
    creative: str
    asset_url: str
    landing_url: str
    landing_domain: str
    mime: str
    width: int
    height: int


@wire_type("ads.quote")
class Quote(msgspec.Struct, frozen=True):
    """A campaign's standing bid: state, so that an auction never waits for the campaign. `active` false withdraws it.

    `as_of_ms` orders quotes of one campaign: an older one never replaces a newer."""

    campaign: str
    advertiser: str
    active: bool
    max_cpm_micros: int
    categories: tuple[str, ...]
    creatives: tuple[QuotedCreative, ...]
    as_of_ms: int


@wire_type("ads.get_quote")
class GetQuote(msgspec.Struct, frozen=True):
    pass


@wire_type("ads.category_bid_request")
class CategoryBidRequest(msgspec.Struct, frozen=True):
    site: str
    sizes: tuple[tuple[int, int], ...]
    floor_micros: int


@wire_type("ads.category_bid_response")
class CategoryBidResponse(msgspec.Struct, frozen=True):
    """`complete` false: quotes of registered campaigns are still missing, so absence says nothing yet."""

    category: str
    offers: tuple[Offer, ...]
    rejected_by_floor: int
    complete: bool
    missing: tuple[str, ...] = ()


@wire_type("ads.campaign_ready")
class CampaignReady(msgspec.Struct, frozen=True):
    """A campaign's registration with the directory; no categories: it bids no more. Answered by Accepted."""

    campaign: str
    categories: tuple[str, ...]


@wire_type("ads.get_campaigns_for")
class GetCampaignsFor(msgspec.Struct, frozen=True):
    category: str


@wire_type("ads.campaigns_for")
class CampaignsFor(msgspec.Struct, frozen=True):
    """`settled` false: the directory has just started and campaigns may still be registering."""

    category: str
    campaigns: tuple[str, ...]
    settled: bool


@wire_type("ads.directory_started_event")
class DirectoryStarted(msgspec.Struct, frozen=True):
    node: str


@wire_type("ads.campaign_changed_event")
class CampaignChanged(msgspec.Struct, frozen=True):
    campaign: str
    categories: tuple[str, ...]


# ---- ad server


@wire_type("ads.site_settings")
class SiteSettings(msgspec.Struct, frozen=True):
    """Everything an ad server needs from its site; sent when it starts and whenever something in it changes."""

    site: str
    host: str
    publisher: str
    slots: tuple[SlotSpec, ...]
    floor_micros: int
    bid_weight: float
    suspended: bool
    approved: tuple[str, ...]
    secret: bytes
    window_ms: int
    pages: tuple[PageEntry, ...]


@wire_type("ads.page_marked")
class PageMarked(msgspec.Struct, frozen=True):
    entry: PageEntry


@wire_type("ads.slot_pool")
class SlotPool(msgspec.Struct, frozen=True):
    slot: str
    candidates: tuple[CandidateView, ...]


@wire_type("ads.candidates_collected")
class CandidatesCollected(msgspec.Struct, frozen=True):
    """One page's auction: a pool for each of its slots. `absent` campaigns said that they have nothing to offer."""

    url: str
    classified_at_ms: int
    auction: AuctionInfo
    pools: tuple[SlotPool, ...]
    absent: tuple[str, ...]


@wire_type("ads.slot_request")
class SlotRequest(msgspec.Struct, frozen=True):
    slot: str
    width: int
    height: int


@wire_type("ads.batch_select")
class BatchSelect(msgspec.Struct, frozen=True):
    url: str
    host: str
    slots: tuple[SlotRequest, ...]


@wire_type("ads.winner")
class Winner(msgspec.Struct, frozen=True):
    creative: str
    campaign: str
    advertiser: str
    asset_url: str
    landing_url: str
    mime: str
    width: int
    height: int
    category: str
    price_micros: int
    request_id: str
    impression_query: str
    click_query: str


@wire_type("ads.slot_outcome")
class SlotOutcome(msgspec.Struct, frozen=True):
    slot: str
    winner: Winner | None
    reason: str = ""


@wire_type("ads.batch_selected")
class BatchSelected(msgspec.Struct, frozen=True):
    """`state`: served, suspended, host_refused or unknown_site. `reclassify_in_ms` <= 0 asks for the page's text."""

    state: str
    outcomes: tuple[SlotOutcome, ...] = ()
    reclassify_in_ms: int = 0


@wire_type("ads.track")
class Track(msgspec.Struct, frozen=True):
    """A beacon, unverified: the query's fields as they came."""

    event: str
    url: str
    slot: str
    creative: str
    version: str
    bucket: str
    token: str
    campaign: str
    advertiser: str
    cpm: str
    request_id: str


@wire_type("ads.tracked")
class Tracked(msgspec.Struct, frozen=True):
    """`verdict`: counted, repeated, expired, bad_signature, malformed or unknown_site."""

    verdict: str
    landing_url: str = ""


@wire_type("ads.get_decision")
class GetDecision(msgspec.Struct, frozen=True):
    """By request id, or the newest of a slot or page (empty: any)."""

    request_id: str = ""
    slot: str = ""
    page: str = ""


@wire_type("ads.get_stats")
class GetServeStats(msgspec.Struct, frozen=True):
    pass


# ---- money: the same questions to a campaign and to its advertiser


@wire_type("ads.reserve")
class Reserve(msgspec.Struct, frozen=True):
    request_id: str
    amount_micros: int
    requested_at_ms: int


@wire_type("ads.reserved")
class Reserved(msgspec.Struct, frozen=True):
    """`outcome` is an `account.ReserveOutcome` value; only reserved and repeated mean yes."""

    outcome: str


@wire_type("ads.release")
class Release(msgspec.Struct, frozen=True):
    request_id: str


@wire_type("ads.confirm")
class Confirm(msgspec.Struct, frozen=True):
    """An impression was seen: its reservation becomes spend. `amount_micros` is what its signed beacon says."""

    request_id: str
    site: str
    creative: str
    amount_micros: int


@wire_type("ads.confirmed")
class Confirmed(msgspec.Struct, frozen=True):
    counted: bool


@wire_type("ads.record_click")
class RecordClick(msgspec.Struct, frozen=True):
    request_id: str
    site: str
    creative: str


# ---- campaign, advertiser


@wire_type("ads.creative_spec")
class CreativeSpec(msgspec.Struct, frozen=True):
    creative: str
    asset_url: str
    landing_url: str
    width: int
    height: int
    mime: str


@wire_type("ads.create_campaign")
class CreateCampaign(msgspec.Struct, frozen=True):
    campaign: str
    advertiser: str
    name: str
    max_cpm_micros: int
    daily_budget_micros: int
    categories: tuple[str, ...]
    timezone: str


@wire_type("ads.add_creative")
class AddCreative(msgspec.Struct, frozen=True):
    spec: CreativeSpec


@wire_type("ads.get_campaign")
class GetCampaign(msgspec.Struct, frozen=True):
    pass


@wire_type("ads.campaign_info")
class CampaignInfo(msgspec.Struct, frozen=True):
    campaign: str
    advertiser: str
    name: str
    status: str
    max_cpm_micros: int
    daily_budget_micros: int
    spent_micros: int
    reserved_micros: int
    impressions: int
    clicks: int
    categories: tuple[str, ...]
    creatives: tuple[CreativeSpec, ...]
    changed: bool = True


@wire_type("ads.create_advertiser")
class CreateAdvertiser(msgspec.Struct, frozen=True):
    advertiser: str
    name: str
    daily_budget_micros: int
    timezone: str


@wire_type("ads.attach_campaign")
class AttachCampaign(msgspec.Struct, frozen=True):
    campaign: str


@wire_type("ads.get_advertiser")
class GetAdvertiser(msgspec.Struct, frozen=True):
    pass


@wire_type("ads.advertiser_info")
class AdvertiserInfo(msgspec.Struct, frozen=True):
    advertiser: str
    name: str
    status: str
    daily_budget_micros: int
    spent_micros: int
    timezone: str
    campaigns: tuple[str, ...]
    changed: bool = True
