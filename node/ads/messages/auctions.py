"""What is said to auctioneers, category bidders and the campaign directory. Prices are CPM micros."""

from __future__ import annotations

import msgspec

from node.ads.auction import Offer
from node.ads.messages.shared import PageEntry, SlotSpec
from node.ads.targeting import Targeting
from node.ads.view import TurnedAway
from node.wire.registry import wire_type

# ---- auctioneer


@wire_type("ads.restore_classifications")
class RestoreClassifications(msgspec.Struct, frozen=True):
    """Fresh pages of the site. A page already held with the same or a newer time is ignored unless `force`; with
    `all_pages` these are all that the site has, and any other is to be forgotten. `floor_micros` is what bidders are
    asked for where `category_floors` has no figure of their category, or less where one of `slot_floors` is, or the
    quality of a slot; but for the former never less than `least_floor_micros`. `approved`: creatives whose demand
    counts."""

    entries: tuple[PageEntry, ...]
    slots: tuple[SlotSpec, ...]
    floor_micros: int
    trigger: str
    force: bool = False
    all_pages: bool = False
    blocked_domains: tuple[str, ...] = ()
    blocked_products: tuple[str, ...] = ()
    suspended: bool = False
    approved: tuple[str, ...] = ()
    category_floors: dict[str, int] = msgspec.field(default_factory=dict)
    slot_floors: dict[str, int] = msgspec.field(default_factory=dict)
    qualities: dict[str, float] = {}
    least_floor_micros: int = 0
    audience: tuple[tuple[str, int], ...] = ()


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
    product: str = ""


@wire_type("ads.quote")
class Quote(msgspec.Struct, frozen=True):
    """A campaign's standing bid: state, so that an auction never waits for the campaign. `active` false withdraws it.

    `as_of_ms` orders quotes of one campaign: an older one never replaces a newer. `solvent` false: it has no money for
    one more impression now, and will have tomorrow. `targeting`: where it bids, besides its categories."""

    campaign: str
    advertiser: str
    active: bool
    max_cpm_micros: int
    categories: tuple[str, ...]
    creatives: tuple[QuotedCreative, ...]
    as_of_ms: int
    solvent: bool = True
    targeting: Targeting = Targeting()


@wire_type("ads.get_quote")
class GetQuote(msgspec.Struct, frozen=True):
    pass


@wire_type("ads.category_bid_request")
class CategoryBidRequest(msgspec.Struct, frozen=True):
    """`audience`: where the site's readers are, by its publisher's word, and what that lies in, with distances."""

    site: str
    sizes: tuple[tuple[int, int], ...]
    floor_micros: int
    audience: tuple[tuple[str, int], ...] = ()


@wire_type("ads.rejected_bid")
class RejectedBid(msgspec.Struct, frozen=True):
    """A campaign below the floor, and which creatives it would have shown."""

    campaign: str
    cpm_micros: int
    creatives: tuple[str, ...]


@wire_type("ads.category_bid_response")
class CategoryBidResponse(msgspec.Struct, frozen=True):
    """`complete` false: quotes of registered campaigns are still missing, so absence says nothing yet. `truncated`:
    there are more offers than one answer carries, so absence says nothing either. `best_rejected_micros`: the highest
    of the bids below the floor, `rejected` the best of them; `other_sizes`: creatives of bidders that fit none of the
    sizes asked for; `turned_away`: some of those that do not want the site."""

    category: str
    offers: tuple[Offer, ...]
    rejected_by_floor: int
    complete: bool
    missing: tuple[str, ...] = ()
    truncated: bool = False
    best_rejected_micros: int = 0
    other_sizes: int = 0
    rejected: tuple[RejectedBid, ...] = ()
    turned_away: tuple[TurnedAway, ...] = ()


@wire_type("ads.campaign_ready")
class CampaignReady(msgspec.Struct, frozen=True):
    """A campaign's registration with the directory; no categories: it bids no more. Answered by Accepted."""

    campaign: str
    categories: tuple[str, ...]


@wire_type("ads.get_campaigns_for")
class GetCampaignsFor(msgspec.Struct, frozen=True):
    """Those behind `after`, in order of their ids. `known`: the digest of those that the asker has, -1 for none."""

    category: str
    after: str = ""
    known: int = -1


@wire_type("ads.campaigns_for")
class CampaignsFor(msgspec.Struct, frozen=True):
    """`settled` false: the directory has just started and campaigns may still be registering. `unchanged`: they are
    those that the asker has, and not told again. `more`: there are others behind these."""

    category: str
    campaigns: tuple[str, ...]
    settled: bool
    unchanged: bool = False
    more: bool = False


@wire_type("ads.get_categories")
class GetCategories(msgspec.Struct, frozen=True):
    """Asked of the directory: every category that somebody bids on."""


@wire_type("ads.categories")
class Categories(msgspec.Struct, frozen=True):
    """`settled` as in CampaignsFor."""

    categories: tuple[str, ...]
    settled: bool


@wire_type("ads.get_bidder_state")
class GetBidderState(msgspec.Struct, frozen=True):
    """Asked of one stripe of a category's bidders, to see that it answers."""


@wire_type("ads.bidder_state")
class BidderState(msgspec.Struct, frozen=True):
    """How many bids it holds, and of how many registered campaigns it holds none that counts."""

    bids: int
    missing: int


@wire_type("ads.get_stripes")
class GetStripes(msgspec.Struct, frozen=True):
    """Asked of who watches the demand."""


@wire_type("ads.stripe_heard")
class StripeHeard(msgspec.Struct, frozen=True):
    """A stripe, by the id of its bidder, and how long ago it answered (ms), or since when it should."""

    bidder: str
    ago_ms: int


@wire_type("ads.stripes")
class Stripes(msgspec.Struct, frozen=True):
    """Every stripe of every category that somebody bids on."""

    stripes: tuple[StripeHeard, ...]


@wire_type("ads.directory_started_event")
class DirectoryStarted(msgspec.Struct, frozen=True):
    node: str


@wire_type("ads.campaign_changed_event")
class CampaignChanged(msgspec.Struct, frozen=True):
    """`standing`: active, paused, suspended (its advertiser is), deleted, or exhausted until `until_ms`, when its next
    day begins; scheduled or ended: its time is not come, or over. `withdrawn`: all of its creatives that are paused or
    deleted. `sites`: where it bids at all, empty for everywhere."""

    campaign: str
    categories: tuple[str, ...]
    standing: str = "active"
    until_ms: int = 0
    withdrawn: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()


@wire_type("ads.advertiser_changed_event")
class AdvertiserChanged(msgspec.Struct, frozen=True):
    """`status`: active, suspended or deleted."""

    advertiser: str
    status: str
