"""What an operator asks sites, ad servers, auctioneers and bidders of what they have counted. Times in wall ms."""

from __future__ import annotations

import msgspec

from node.ads.serve_stats import ServeStats
from node.ads.tally import HourlyCount
from node.ads.unknown_pages import UnknownPage
from node.wire.registry import wire_type


@wire_type("ads.get_tallies")
class GetTallies(msgspec.Struct, frozen=True):
    """Answered by SiteTallies, ServeTallies or AuctionTallies, by whom is asked."""


@wire_type("ads.site_tallies")
class SiteTallies(msgspec.Struct, frozen=True):
    """`floors`: what became of each tick of a floor, and of each sweep that ended. `classifications`: texts by who
    judged them, and those that nobody did; `classifying`: under way, the oldest `classifying_ms` ago."""

    floors: tuple[HourlyCount, ...]
    classifications: tuple[HourlyCount, ...]
    classifying: int
    classifying_ms: int


@wire_type("ads.serve_tallies")
class ServeTallies(msgspec.Struct, frozen=True):
    """`today`: of the day of UTC. `slots`: what became of each slot that was asked for: filled, or why it was not;
    `hops`: of those that were filled, how far above the page's own categories the winner's is. `unknown`: urls that
    were viewed and that nothing is known of, with `unknown_last_minute` views of such in the last whole minute."""

    today: ServeStats
    slots: tuple[HourlyCount, ...]
    hops: tuple[HourlyCount, ...]
    unknown: tuple[UnknownPage, ...]
    unknown_last_minute: int


@wire_type("ads.bidder_heard")
class BidderHeard(msgspec.Struct, frozen=True):
    """When the stripe of a category that answers this site did so last, 0 for never; `complete`: with all that the
    category's campaigns bid."""

    category: str
    answered_ms: int
    complete: bool


@wire_type("ads.rank_heard")
class RankHeard(msgspec.Struct, frozen=True):
    """What a category is worth on the site, as its ranker said at `told_ms`: see Rank."""

    category: str
    mean: float
    draw: float
    told_ms: int


@wire_type("ads.auction_tallies")
class AuctionTallies(msgspec.Struct, frozen=True):
    """`pages` are known, `waiting` of them to be auctioned. `causes`: pages auctioned, by what made it. `late`: bids
    that an auction went without, as `category|campaign`, of a bidder that said nothing as `category|`, and
    `category|?` of one that did not know all yet. `stale`: pages
    that were taught although they were too old to be auctioned. `ranks`: the most valuable category first."""

    pages: int
    waiting: int
    causes: tuple[HourlyCount, ...]
    late: tuple[HourlyCount, ...]
    bidders: tuple[BidderHeard, ...]
    stale: int
    ranks: tuple[RankHeard, ...] = ()


@wire_type("ads.find_pages")
class FindPages(msgspec.Struct, frozen=True):
    """Which of these pages, by the xxh64 of their urls, are not known, or no more fresh? Answered by PagesLacking."""

    urls: tuple[int, ...]


@wire_type("ads.pages_lacking")
class PagesLacking(msgspec.Struct, frozen=True):
    """Some of them, and how many there are."""

    urls: tuple[int, ...]
    count: int


@wire_type("ads.get_stripe")
class GetStripe(msgspec.Struct, frozen=True):
    """Of a category bidder: answered by StripeTold, with the quotes of one campaign or, empty, of all."""

    campaign: str = ""


@wire_type("ads.quote_told")
class QuoteTold(msgspec.Struct, frozen=True):
    """`state`: counts, stale (two renewals were missed), expired (it counts no more), withdrawn (the campaign does not
    bid), unregistered (the directory does not list it) or missing (it is listed, and has sent none)."""

    campaign: str
    state: str
    age_ms: int = 0
    cpm_micros: int = 0


@wire_type("ads.stripe_told")
class StripeTold(msgspec.Struct, frozen=True):
    """`answered_ms`: when it answered an auction last, 0 for never since its start. `registered`: campaigns that the
    directory lists, -1 before it has answered. The oldest `quotes` first, and how many there are."""

    answered_ms: int
    registered: int
    complete: bool
    quotes: tuple[QuoteTold, ...]
    count: int
