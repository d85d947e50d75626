"""What is said to ad servers: pools, page views, beacons, questions about decisions."""

from __future__ import annotations

import msgspec

from node.ads.edits import SiteEdit
from node.ads.explain import ServeDecision
from node.ads.messages.shared import PageEntry, SlotSpec
from node.ads.pacing.shape import TrafficShape
from node.ads.view import AuctionInfo, CandidateView, TurnedAway
from node.wire.registry import wire_type

# ---- ad server


@wire_type("ads.site_settings")
class SiteSettings(msgspec.Struct, frozen=True):
    """Everything an ad server needs from its site; sent when it starts and whenever something in it changes.

    `floor_micros` is the publisher's: what is below it has no place in a pool. `learned_floor_micros` (never below it)
    and, where there is one, the category's bind a page view. `timezone` tells the publisher's days; `margin_ppm`, in
    millionths, what of a price stays with the platform."""

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
    blocked_domains: tuple[str, ...] = ()
    blocked_products: tuple[str, ...] = ()
    learned_floor_micros: int = 0
    category_floors: dict[str, int] = msgspec.field(default_factory=dict)
    paced: bool = False
    traffic: TrafficShape | None = None
    slot_floors: dict[str, int] = msgspec.field(default_factory=dict)
    qualities: dict[str, float] = {}
    timezone: str = "UTC"
    margin_ppm: int = 0


@wire_type("ads.edit_site")
class EditSite(msgspec.Struct, frozen=True):
    """Apply these to all keys of the site. Answered by SiteEdited."""

    edits: tuple[SiteEdit, ...]


@wire_type("ads.site_edited")
class SiteEdited(msgspec.Struct, frozen=True):
    """How many views were changed, how many were left empty and removed. `complete` false: not all keys of the site
    were known yet; the ad server goes on by itself."""

    changed: int
    removed: int
    complete: bool = True


@wire_type("ads.page_marked")
class PageMarked(msgspec.Struct, frozen=True):
    entry: PageEntry


@wire_type("ads.slot_pool")
class SlotPool(msgspec.Struct, frozen=True):
    slot: str
    candidates: tuple[CandidateView, ...]


@wire_type("ads.candidates_collected")
class CandidatesCollected(msgspec.Struct, frozen=True):
    """One page's auction: a pool for each of its slots.

    `answered`: the categories whose bidders know all their campaigns; `offered`: with what they bid, as `(creative,
    category)`. A candidate of an answered category that is not offered is gone. Of any other category, absence says
    nothing. `targets`: the places and blocked categories of the campaigns that have any; a candidate with others than
    its campaign's is gone too. `turned_away`: some of the campaigns that have the page's categories and don't want
    it."""

    url: str
    classified_at_ms: int
    auction: AuctionInfo
    pools: tuple[SlotPool, ...]
    answered: tuple[str, ...]
    offered: tuple[tuple[str, str], ...]
    targets: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    turned_away: tuple[TurnedAway, ...] = ()


@wire_type("ads.slot_request")
class SlotRequest(msgspec.Struct, frozen=True):
    """`pin`: the creative that the reader keeps in this slot, if any."""

    slot: str
    width: int
    height: int
    pin: str = ""


@wire_type("ads.pin")
class Pin(msgspec.Struct, frozen=True):
    """A creative that a reader keeps in a slot of the site."""

    slot: str
    creative: str


@wire_type("ads.batch_select")
class BatchSelect(msgspec.Struct, frozen=True):
    """`elsewhere`: what the reader keeps in slots that this page does not show: not to be shown in another here."""

    url: str
    host: str
    slots: tuple[SlotRequest, ...]
    elsewhere: tuple[Pin, ...] = ()


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
    fold_token: str = ""
    cta_query: str = ""


@wire_type("ads.slot_outcome")
class SlotOutcome(msgspec.Struct, frozen=True):
    """`pin`: what became of the one that was asked for, as in `node.ads.pins`; empty where none was."""

    slot: str
    winner: Winner | None
    reason: str = ""
    pin: str = ""


@wire_type("ads.batch_selected")
class BatchSelected(msgspec.Struct, frozen=True):
    """`state`: served, suspended, host_refused or unknown_site. `reclassify_in_ms` <= 0 asks for the page's text.
    `stale_pins`: what the reader keeps and will not see again: its creative, or its slot, is no more."""

    state: str
    outcomes: tuple[SlotOutcome, ...] = ()
    reclassify_in_ms: int = 0
    stale_pins: tuple[Pin, ...] = ()


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


@wire_type("ads.fold")
class Fold(msgspec.Struct, frozen=True):
    """A reader folded the corner of an ad (`event` fold, with its token) or smoothed it again (unfold, without one).
    Answered by Tracked."""

    event: str
    url: str
    slot: str
    creative: str
    token: str = ""


@wire_type("ads.tracked")
class Tracked(msgspec.Struct, frozen=True):
    """`verdict`: counted, repeated, expired, bad_signature, malformed or unknown_site; of a fold also unknown_event or
    a `FoldVerdict`'s word."""

    verdict: str
    landing_url: str = ""


@wire_type("ads.get_decision")
class GetDecision(msgspec.Struct, frozen=True):
    """By request id, or the newest of a slot or page (empty: any)."""

    request_id: str = ""
    slot: str = ""
    page: str = ""


@wire_type("ads.probe")
class Probe(msgspec.Struct, frozen=True):
    """What would be served in a slot of a page now; answered by Probed. `refused`: creatives whose payers are known to
    say no, with why."""

    url: str
    host: str
    slot: SlotRequest
    refused: dict[str, str] = {}


@wire_type("ads.probed")
class Probed(msgspec.Struct, frozen=True):
    """`refusal`: why nothing is served to this page at all, suspended or host_refused; else `decision`. `advertiser` of
    the creative that would win."""

    refusal: str
    decision: ServeDecision | None = None
    advertiser: str = ""


@wire_type("ads.get_stats")
class GetServeStats(msgspec.Struct, frozen=True):
    pass
