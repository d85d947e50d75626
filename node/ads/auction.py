"""The auction of one page and slot: which categories are asked, in what order the offers stand, what is reported.

The auction removes nobody: all candidates go to the ad server, which decides per serve. Its order matters only
where a pool is cut, and its prices are diagnostics; what is charged is decided in `pricing`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from node.ads.taxonomy import Taxonomy
from node.core.limits import auction_categories_max
from node.wire.registry import wire_type

PRIOR_WEIGHT = 0.5
ANCESTOR_DECAY = 0.7
SUGGESTED_BOOST = 1.15


@wire_type("ads.offer", version=1)
class Offer(msgspec.Struct, frozen=True):
    """One creative a campaign offers for a slot, under the category its campaign bid in."""

    creative_id: str
    campaign_id: str
    advertiser_id: str
    category: str
    cpm_micros: int
    asset_url: str
    landing_url: str
    landing_domain: str
    mime: str
    width: int
    height: int
    approved: bool = False
    ancestor_hops: int = 0
    filler: bool = False
    product: str = ""
    places: tuple[str, ...] = ()
    blocked_categories: tuple[str, ...] = ()


@wire_type("ads.auction_outcome", version=1)
class AuctionOutcome(msgspec.Struct, frozen=True):
    """What the auction saw, in distinct campaigns. 0 stands for no such bid; prices are CPM micros. `clearing_micros`
    is what it would come to between bids alone: a page view weighs what readers do, too."""

    bidders: int
    max_micros: int
    second_max_micros: int
    min_micros: int
    clearing_micros: int


def rank_categories(
    confidences: Iterable[tuple[str, float]], weights: Mapping[str, float], idle: Collection[str] = ()
) -> tuple[tuple[str, float], ...]:
    """The categories to auction, best first, at most 3: confidence times learned weight (0.5 where none is known);
    those that are `idle`, on which nobody bids, only where there are no others.

    Ties go to the higher confidence, then to the smaller id, so that equal input gives equal auctions.
    """
    best: dict[str, float] = {}
    for category, confidence in confidences:
        best[category] = max(confidence, best.get(category, 0.0))

    def key(item: tuple[str, float]) -> tuple[bool, float, float, str]:
        category, confidence = item
        return (category in idle, -confidence * weights.get(category, PRIOR_WEIGHT), -confidence, category)

    return tuple(sorted(best.items(), key=key)[:auction_categories_max])


def fan_out(taxonomy: Taxonomy, categories: Iterable[str]) -> dict[str, int]:
    """The categories whose bidders are asked, with their distance from the page's own: nearest first."""
    hops = taxonomy.expand_with_hops(categories)
    return dict(sorted(hops.items(), key=lambda item: (item[1], item[0])))


def decayed_score(weight: float, ancestor_hops: int, *, suggested: bool = False) -> float:
    """A candidate's category score: the weight times 0.7 per hop; a suggested category adds 15 %, up to 1.0."""
    score = weight * ANCESTOR_DECAY**ancestor_hops
    return min(1.0, score * SUGGESTED_BOOST) if suggested else score


def order_offers(offers: Sequence[Offer]) -> tuple[Offer, ...]:
    """All offers without repeated creatives: the best of each campaign first, then the rest, both by CPM downwards.

    A creative offered under several categories keeps the offer nearest to the page. Approved wins ties, then the
    nearer category, then the creative id.
    """
    nearest: dict[str, Offer] = {}
    for offer in offers:
        known = nearest.get(offer.creative_id)
        if known is None or _distance_key(offer) < _distance_key(known):
            nearest[offer.creative_id] = offer
    ordered = sorted(nearest.values(), key=_bid_key)
    leaders: list[Offer] = []
    others: list[Offer] = []
    seen: set[str] = set()
    for offer in ordered:
        (others if offer.campaign_id in seen else leaders).append(offer)
        seen.add(offer.campaign_id)
    return (*leaders, *others)


def summarize(offers: Sequence[Offer], *, floor_micros: int) -> AuctionOutcome:
    """Second-price diagnostics over the best bid of each campaign: second bid plus 0.1 %, the floor for a sole bidder.

    The figure never exceeds the highest bid, which the plain formula would do for two equal bids.
    """
    best: dict[str, int] = {}
    for offer in offers:
        best[offer.campaign_id] = max(offer.cpm_micros, best.get(offer.campaign_id, 0))
    if not best:
        return AuctionOutcome(0, 0, 0, 0, 0)
    bids = sorted(best.values(), reverse=True)
    second = bids[1] if len(bids) > 1 else 0
    clearing = min(bids[0], (second * 1001 + 500) // 1000) if second else floor_micros
    return AuctionOutcome(len(bids), bids[0], second, bids[-1], clearing)


def _distance_key(offer: Offer) -> tuple[int, int, str]:
    return (offer.ancestor_hops, -offer.cpm_micros, offer.category)


def _bid_key(offer: Offer) -> tuple[int, bool, int, str]:
    return (-offer.cpm_micros, not offer.approved, offer.ancestor_hops, offer.creative_id)
