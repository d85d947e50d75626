"""The ServeIndex value: one slot's pool of candidates, and how auctions add to it.

A view is the union of the pools of several pages, because its key names a slot and not a page. So a candidate is
identified by its creative *and* the category it won under, and carries what a page needs to judge it.

What is taken away again is taken by an edit: `node.ads.edits`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from node.core.limits import view_auctions_max, view_candidates_max
from node.wire.registry import wire_type


@wire_type("ads.candidate_view", version=1)
class CandidateView(msgspec.Struct, frozen=True, gc=False):
    """One creative that may be served in a slot, under the category it won.

    `category_score` is in [0, 1] and already decayed by `ancestor_hops`; `cpm_micros` is the highest price the
    campaign pays; times are wall milliseconds; `product` is the IAB ad product category of what is advertised, if said.
    `places` and `blocked_categories` are what the campaign wants of a page and what it does not: judged page by page.
    """

    creative_id: str
    campaign_id: str
    advertiser_id: str
    asset_url: str
    landing_url: str
    landing_domain: str
    mime: str
    width: int
    height: int
    category: str
    cpm_micros: int
    classified_at_ms: int
    category_score: float = 0.5
    ancestor_hops: int = 0
    auction_id: str = ""
    filler: bool = False
    product: str = ""
    places: tuple[str, ...] = ()
    blocked_categories: tuple[str, ...] = ()

    @property
    def identity(self) -> tuple[str, str]:
        return (self.creative_id, self.category)


@wire_type("ads.turned_away")
class TurnedAway(msgspec.Struct, frozen=True, order=True):
    """A campaign whose own targeting kept it out of an auction: `reason` as in `node.ads.targeting`."""

    campaign: str
    reason: str


@wire_type("ads.auction_info", version=1)
class AuctionInfo(msgspec.Struct, frozen=True):
    """Where a pool came from: kept in the view so that `serve explain` can say it without another read. `fallback`:
    the page's categories are not the judgement of the provider that should have judged it."""

    auction_id: str
    trigger: str
    at_ms: int
    page_url: str = ""
    page_categories: tuple[str, ...] = ()
    floor_micros: int = 0
    fallback: bool = False


@wire_type("ads.serve_view", version=1)
class ServeView(msgspec.Struct, frozen=True):
    """The value at `site|slot`. `page_categories` are those of the page whose auction wrote last."""

    candidates: tuple[CandidateView, ...]
    version_ms: int
    expires_at_ms: int
    page_categories: tuple[str, ...] = ()
    auctions: tuple[AuctionInfo, ...] = ()

    def expired(self, now_ms: int) -> bool:
        return self.expires_at_ms <= now_ms

    def auction_of(self, candidate: CandidateView) -> AuctionInfo | None:
        """The auction the candidate came from, when the view still remembers it."""
        return next((info for info in self.auctions if info.auction_id == candidate.auction_id), None)


Predicate = Callable[[CandidateView], bool]


def merge_auction(
    existing: ServeView | None,
    won: Sequence[CandidateView],
    auction: AuctionInfo,
    *,
    absent: Predicate | None = None,
    now_ms: int,
    expires_at_ms: int,
) -> ServeView | None:
    """Put an auction's candidates in front of those of other pages.

    Earlier candidates that this auction did not bring again stay, because they belong to another page or their
    bidder was late; those for which `absent` holds are authoritatively not offered any more and go.
    An expired view contributes nothing: its candidates were not vouched for in time and must not be revived.
    """
    orphans: tuple[CandidateView, ...] = ()
    remembered: tuple[AuctionInfo, ...] = ()
    if existing is not None and not existing.expired(now_ms):
        fresh = {candidate.identity for candidate in won}
        orphans = tuple(
            candidate
            for candidate in existing.candidates
            if candidate.identity not in fresh and not (absent and absent(candidate))
        )
        remembered = existing.auctions
    candidates = (*won, *orphans)[:view_candidates_max]
    if not candidates:
        return None
    return ServeView(
        candidates=candidates,
        version_ms=now_ms,
        expires_at_ms=expires_at_ms,
        page_categories=auction.page_categories,
        auctions=auctions_in_use((auction, *remembered), candidates),
    )


def auctions_in_use(auctions: Sequence[AuctionInfo], candidates: Sequence[CandidateView]) -> tuple[AuctionInfo, ...]:
    """The auctions that a candidate still comes from, the newest first."""
    used = {candidate.auction_id for candidate in candidates}
    newest_first: dict[str, AuctionInfo] = {}
    for info in auctions:
        if info.auction_id in used:
            newest_first.setdefault(info.auction_id, info)
    return tuple(newest_first.values())[:view_auctions_max]
