"""What is said to publishers and sites. Times in wall milliseconds."""

from __future__ import annotations

import msgspec

from node.ads.auction import AuctionOutcome
from node.ads.edits import SiteEdit
from node.ads.floors.demand import Demand
from node.ads.floors.quality import Placement
from node.ads.fraud import Flag, SiteDay
from node.ads.messages.shared import PageEntry, SlotSpec
from node.ads.pacing.shape import TrafficShape
from node.ads.view import TurnedAway
from node.wire.registry import wire_type

# ---- publisher


@wire_type("ads.register_site")
class RegisterSite(msgspec.Struct, frozen=True):
    site: str
    host: str


@wire_type("ads.publisher_terms")
class PublisherTerms(msgspec.Struct, frozen=True):
    """What holds on each of a publisher's sites, besides the site's own settings. Answered by SiteInfo."""

    suspended: bool = False
    blocked_domains: tuple[str, ...] = ()


@wire_type("ads.publisher_secret")
class PublisherSecret(msgspec.Struct, frozen=True):
    secret: bytes
    terms: PublisherTerms = PublisherTerms()


@wire_type("ads.get_publisher")
class GetPublisher(msgspec.Struct, frozen=True):
    """Answered by PublisherInfo."""


@wire_type("ads.update_publisher")
class UpdatePublisher(msgspec.Struct, frozen=True):
    """What is None or empty stays as it is; said again, all its sites are told again. Answered by PublisherInfo."""

    suspended: bool | None = None
    block_domains: tuple[str, ...] = ()
    unblock_domains: tuple[str, ...] = ()


@wire_type("ads.publisher_info")
class PublisherInfo(msgspec.Struct, frozen=True):
    """`sites` maps a site's id to its host; `untold` have not confirmed yet that they know the present terms."""

    publisher: str
    suspended: bool
    sites: dict[str, str]
    blocked_domains: tuple[str, ...]
    untold: tuple[str, ...]
    changed: bool = True


@wire_type("ads.unregister_site")
class UnregisterSite(msgspec.Struct, frozen=True):
    """The site is no more. Answered by Accepted."""

    site: str


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


@wire_type("ads.delete_site")
class DeleteSite(msgspec.Struct, frozen=True):
    """Serve nothing on it any more, and forget it: answered by SiteInfo as soon as that is durable, and nothing takes
    it back. It goes on by itself; who is told that there is no such site knows that it is over."""


@wire_type("ads.get_site")
class GetSite(msgspec.Struct, frozen=True):
    pass


@wire_type("ads.suspicion")
class Suspicion(msgspec.Struct, frozen=True):
    """A day (from 1970, UTC) on which something was odd."""

    day: int
    flag: Flag


@wire_type("ads.site_info")
class SiteInfo(msgspec.Struct, frozen=True):
    """`trusted`: campaigns and domains, as `campaign|id` and `domain|name`; `flagged` maps a creative to why;
    `qualities`, in [0, 1], are those of the slots that page tags have measured; `pages_fallback`: how many of the
    fresh pages were not judged by the provider that should have. `suspended`: nothing is served, because of what
    `suspended_by` names: the site, its publisher, its deletion, or several. `publisher_domains` are blocked on all of
    the publisher's sites. `audience`: where its readers are, by the publisher's word, with distance 0, and what that
    lies in."""

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
    rejected: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    blocked_products: tuple[str, ...] = ()
    learned_floor_micros: int = 0
    category_floors: dict[str, int] = msgspec.field(default_factory=dict)
    paced: bool = False
    auto_approve: bool = False
    trusted: tuple[str, ...] = ()
    flagged: dict[str, str] = msgspec.field(default_factory=dict)
    slot_floors: dict[str, int] = msgspec.field(default_factory=dict)
    suspicions: tuple[Suspicion, ...] = ()
    qualities: dict[str, float] = {}
    timezone: str = "UTC"
    margin_ppm: int = 0
    pages_fallback: int = 0
    suspended_by: tuple[str, ...] = ()
    publisher_domains: tuple[str, ...] = ()
    audience: tuple[tuple[str, int], ...] = ()


@wire_type("ads.classify_page")
class ClassifyPage(msgspec.Struct, frozen=True):
    """`slots` are those the page's tag reports; unknown ones join the site's list. `placements`: what it measured of
    some of them. Answered by ClassifyAck at once."""

    url: str
    text: str
    hint: str = ""
    slots: tuple[SlotSpec, ...] = ()
    placements: dict[str, Placement] = {}


@wire_type("ads.activate_slots")
class ActivateSlots(msgspec.Struct, frozen=True):
    """A classified page was asked for slots that it was not auctioned for: a slot was added or renamed."""

    url: str
    slots: tuple[SlotSpec, ...]


@wire_type("ads.classify_ack")
class ClassifyAck(msgspec.Struct, frozen=True):
    """`reason`: accepted, in_flight or host_refused."""

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
    landing_domain: str = ""


@wire_type("ads.queue_pending")
class QueuePending(msgspec.Struct, frozen=True):
    creatives: tuple[PendingCreative, ...]


@wire_type("ads.leave_queue")
class LeaveQueue(msgspec.Struct, frozen=True):
    """From the ad server: campaigns, creatives or advertisers whose candidates were taken out of the pools; what they
    have waiting waits no more."""

    edits: tuple[SiteEdit, ...]


@wire_type("ads.approve_creative")
class ApproveCreative(msgspec.Struct, frozen=True):
    creative: str


@wire_type("ads.forget_creative")
class ForgetCreative(msgspec.Struct, frozen=True):
    """There is no such creative any more: it is neither approved nor waits. Answered by Accepted."""

    creative: str


@wire_type("ads.revoke_creative")
class RevokeCreative(msgspec.Struct, frozen=True):
    """Take an approval back; with `reject` the creative is not offered to the publisher again either. Answered by
    Accepted."""

    creative: str
    reject: bool = False


@wire_type("ads.flag_creative")
class FlagCreative(msgspec.Struct, frozen=True):
    """Reject a creative, and say why. Answered by Accepted."""

    creative: str
    reason: str


@wire_type("ads.unflag_creative")
class UnflagCreative(msgspec.Struct, frozen=True):
    """It may wait for approval again. Answered by Accepted."""

    creative: str


@wire_type("ads.remove_trust_anchor")
class RemoveTrustAnchor(msgspec.Struct, frozen=True):
    """`kind`: campaign or domain. Answered by Accepted."""

    kind: str
    value: str


@wire_type("ads.get_site_token")
class GetSiteToken(msgspec.Struct, frozen=True):
    """The token of the site's tag, made when it is first asked for. Answered by SiteToken, once it is durable."""


@wire_type("ads.site_token")
class SiteToken(msgspec.Struct, frozen=True):
    token: str


@wire_type("ads.check_site_token")
class CheckSiteToken(msgspec.Struct, frozen=True):
    """What a tag's token is worth; asking makes none. Answered by SiteTokenChecked."""

    token: str


@wire_type("ads.site_token_checked")
class SiteTokenChecked(msgspec.Struct, frozen=True):
    """`state`: valid, stale or unknown."""

    state: str


@wire_type("ads.update_site")
class UpdateSite(msgspec.Struct, frozen=True):
    """What is None or empty stays as it is. Domains and products are added to those blocked, or taken from them;
    `slot_floors` set the floors of slots, whatever the site's are; `distrust` names anchors of trust, as `campaign|id`
    and `domain|name`, that count no more; `slots` are declared or get another size, `drop_slots` are declared no more,
    and their own floors go with them. `audience`: where the readers are, as in SiteInfo; empty:
    nothing is said. Answered by SiteInfo."""

    floor_micros: int | None = None
    suspended: bool | None = None
    block_domains: tuple[str, ...] = ()
    unblock_domains: tuple[str, ...] = ()
    block_products: tuple[str, ...] = ()
    unblock_products: tuple[str, ...] = ()
    paced: bool | None = None
    auto_approve: bool | None = None
    slot_floors: tuple[tuple[str, int], ...] = ()
    clear_slot_floors: tuple[str, ...] = ()
    timezone: str = ""
    margin_ppm: int | None = None
    distrust: tuple[str, ...] = ()
    slots: tuple[SlotSpec, ...] = ()
    drop_slots: tuple[str, ...] = ()
    audience: tuple[tuple[str, int], ...] | None = None


@wire_type("ads.slot_report")
class SlotReport(msgspec.Struct, frozen=True):
    """What the last auction of a page found for one of its slots.

    `creatives`: those offered in the slot's size, the best bids first, at most so many as an explanation shows;
    `other_sizes`: offers that fit only other slots; `rejected`: campaigns below the floor, the best of them at
    `best_rejected_micros`; `blocked`: offers that the publisher has blocked; `late`: categories without an answer that
    is complete; `turned_away`: some of the campaigns that don't want the site, or the page; `outcome`: the slot's
    bids."""

    slot: str
    creatives: tuple[str, ...] = ()
    offers: int = 0
    other_sizes: int = 0
    rejected: int = 0
    best_rejected_micros: int = 0
    floor_micros: int = 0
    blocked: int = 0
    late: int = 0
    turned_away: tuple[TurnedAway, ...] = ()
    outcome: AuctionOutcome = AuctionOutcome(0, 0, 0, 0, 0)


@wire_type("ads.auction_found")
class AuctionReport(msgspec.Struct, frozen=True):
    """What an auction of a page found."""

    url: str
    at_ms: int
    slots: tuple[SlotReport, ...]


@wire_type("ads.demand_seen")
class DemandSeen(msgspec.Struct, frozen=True):
    """What approved campaigns bid in a round of auctions, by category; the site's as a whole under no category. Of a
    category that is missing nothing is known."""

    demands: dict[str, Demand]


@wire_type("ads.impression_served")
class ImpressionServed(msgspec.Struct, frozen=True):
    """An impression was counted: what it brought, and the category that its candidate won under, empty if unknown."""

    category: str
    revenue_micros: int


@wire_type("ads.traffic_learned")
class TrafficLearned(msgspec.Struct, frozen=True):
    """An hour has ended: what the ad server knows of when the site's visitors come, and what has come in it."""

    shape: TrafficShape
    seen: SiteDay = SiteDay(0, 0, 0)


# ---- page shelves


@wire_type("ads.get_shelf")
class GetShelf(msgspec.Struct, frozen=True):
    """Answered by ShelfPages."""


@wire_type("ads.shelf_pages")
class ShelfPages(msgspec.Struct, frozen=True):
    pages: tuple[PageEntry, ...]


@wire_type("ads.put_on_shelf")
class PutOnShelf(msgspec.Struct, frozen=True):
    """Keep these, and forget those. The shelf tells the site `Shelved` when it is durable."""

    site: str
    number: int
    pages: tuple[PageEntry, ...]
    drops: tuple[str, ...] = ()


@wire_type("ads.clear_shelf")
class ClearShelf(msgspec.Struct, frozen=True):
    """Its site is no more, nor is the shelf. Answered by Accepted."""


@wire_type("ads.shelved")
class Shelved(msgspec.Struct, frozen=True):
    """The shelf has these, or a newer record of them."""

    number: int
    pages: tuple[PageEntry, ...]


# ---- coverage


@wire_type("ads.explain_coverage")
class ExplainCoverage(msgspec.Struct, frozen=True):
    """Of a site: answered by CoverageExplained."""


@wire_type("ads.slot_explained")
class SlotExplained(msgspec.Struct, frozen=True):
    """`reason` as in `node.ads.entities.coverage`, or "filled"; `why` it is so and what would `fill` it, in an
    operator's words; `pages`: how many fresh pages show the slot; `reach`: the categories that a campaign could bid on,
    where nobody does."""

    slot: str
    reason: str
    why: str
    fill: str
    pages: int
    reach: tuple[str, ...] = ()


@wire_type("ads.coverage_explained")
class CoverageExplained(msgspec.Struct, frozen=True):
    site: str
    slots: tuple[SlotExplained, ...]
