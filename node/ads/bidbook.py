"""The bid book: the standing bids of a category's campaigns, and the answer to an auction out of them.

It answers from what it holds, so a campaign that is slow is late and never erased. A bid is a lease: its campaign tells
what changes at once and renews what does not every three minutes. One that was not renewed for ten, so that three
renewals were lost, says nothing any more, and whoever is not registered for the category does not answer at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import takewhile

import msgspec

from node.ads import messages as m
from node.ads.auction import Offer
from node.ads.floors.demand import Demand, demand_of
from node.ads.floors.site_floors import SITE_WIDE
from node.ads.pricing import passes_floor
from node.ads.targeting import AUDIENCE_NOT_ALLOWED, SITE_NOT_ALLOWED, audience_fits, site_fits
from node.ads.taxonomy import UNMATCHED
from node.ads.view import TurnedAway
from node.core import limits

QUOTE_AGE_MS_MAX = 10 * 60_000
QUOTE_RENEWAL_MS = 3 * 60_000
QUOTE_STALE_MS = 2 * QUOTE_RENEWAL_MS + 10_000  # two renewals were missed


class StandingBid(msgspec.Struct, frozen=True):
    """A quote and when it came, by the bidder's own clock (ms): a campaign's may be wrong."""

    quote: m.Quote
    taken_ms: int

    def expired(self, now_ms: int) -> bool:
        return now_ms - self.taken_ms > QUOTE_AGE_MS_MAX


class BidBook:
    """The bids, and which of them the directory's register bears out. It alone writes what it holds.

    `registered`: the campaigns of the category as the directory knows them, None before it has answered; `settled`
    false: some may still be registering, so nobody is a stranger yet. Times are ms of a clock that never goes back.
    A quote is taken in constant time, however many there are.
    """

    def __init__(self, category: str) -> None:
        self.category = category
        self._bids: dict[str, StandingBid] = {}  # what came longest ago comes first
        self._registered: dict[str, None] | None = None
        self._settled = False
        self._unheard: dict[str, None] = {}  # registered, and nothing came
        self._unlisted: dict[str, None] = {}  # bidding, and not registered

    @property
    def bids(self) -> Mapping[str, StandingBid]:
        return self._bids

    @property
    def registered(self) -> Collection[str] | None:
        return self._registered

    @property
    def settled(self) -> bool:
        return self._settled

    def take(self, quote: m.Quote, now_ms: int) -> None:
        """A quote has come, another or the same once more; one that is older than the one held is dropped."""
        name = quote.campaign
        known = self._bids.get(name)
        if known is not None and known.quote.as_of_ms > quote.as_of_ms:
            return
        self._bids.pop(name, None)  # so that it goes behind those that came before
        self._bids[name] = StandingBid(quote, now_ms)
        self._unheard.pop(name, None)
        if quote.active and self._registered is not None and name not in self._registered:
            self._unlisted[name] = None
        else:
            self._unlisted.pop(name, None)

    def enlist(self, campaigns: Iterable[str], *, settled: bool) -> None:
        """The directory has told whom it knows. Bids are kept: one that it does not list is a stranger, and may be
        listed again."""
        self._registered = dict.fromkeys(campaigns)
        self._settled = settled
        self._unheard = {name: None for name in self._registered if name not in self._bids}
        self._unlisted = {
            name: None for name, bid in self._bids.items() if bid.quote.active and name not in self._registered
        }

    def confirm(self, *, settled: bool) -> None:
        """The directory knows the same as when it told them last."""
        self._settled = settled

    def missing(self, now_ms: int) -> tuple[str, ...]:
        """Registered campaigns whose bid is not known, or too old to count."""
        registered = self._registered or ()
        return (*self._unheard, *(name for name in self._expired(now_ms) if name in registered))

    def lacks(self, campaign: str, now_ms: int) -> bool:
        """Whether it is one of the missing."""
        if campaign not in (self._registered or ()):
            return False
        bid = self._bids.get(campaign)
        return bid is None or bid.expired(now_ms)

    def is_stranger(self, campaign: str) -> bool:
        """Whether the directory does not know it, or not yet: it may have been asked too early."""
        return self._settled and self._registered is not None and campaign not in self._registered

    def strangers(self, now_ms: int) -> tuple[str, ...]:
        """Campaigns whose bid would count and that are strangers."""
        if not self._settled:
            return ()
        return tuple(name for name in self._unlisted if not self._bids[name].expired(now_ms))

    def complete(self, now_ms: int) -> bool:
        """Whether all bids are known: then who is absent does not bid."""
        return self._registered is not None and self._settled and not (self.missing(now_ms) or self.strangers(now_ms))

    def _expired(self, now_ms: int) -> Iterable[str]:
        """Those that are too old to count, without a look at the others."""
        return (name for name, _ in takewhile(lambda held: held[1].expired(now_ms), self._bids.items()))


def answer(book: BidBook, request: m.CategoryBidRequest, now_ms: int) -> m.CategoryBidResponse:
    """Every bid that may take part, the best first, with what was left out and why.

    Whether a bid is approved on the site is not known here, so none is dropped for being far below the best: one that
    the publisher has never approved could take everybody's place. One without money today comes last.
    """
    able: list[m.Quote] = []
    rejected: list[m.Quote] = []
    away: list[TurnedAway] = []
    audience = dict(request.audience)
    for name, bid in book.bids.items():
        quote = bid.quote
        if bid.expired(now_ms) or book.is_stranger(name) or not _takes_part(quote, book.category):
            continue
        if not site_fits(quote.targeting, request.site):
            away.append(TurnedAway(name, SITE_NOT_ALLOWED))
        elif not audience_fits(quote.targeting, audience):
            away.append(TurnedAway(name, AUDIENCE_NOT_ALLOWED))
        elif passes_floor(quote.max_cpm_micros, request.floor_micros):
            able.append(quote)
        else:
            rejected.append(quote)
    able.sort(key=lambda quote: (not quote.solvent, -quote.max_cpm_micros, quote.campaign))
    kept = able[: limits.bidder_campaigns_max]
    sizes = set(request.sizes)
    offers = tuple(_offers(kept, book.category, sizes))
    return m.CategoryBidResponse(
        book.category,
        offers[: limits.view_candidates_max],
        len(rejected),
        book.complete(now_ms),
        book.missing(now_ms)[: limits.bidders_missing_told_max],
        len(able) > len(kept) or len(offers) > limits.view_candidates_max,
        max((quote.max_cpm_micros for quote in rejected), default=0),
        sum((c.width, c.height) not in sizes for quote in kept for c in quote.creatives),
        tuple(_rejected(rejected, sizes)),
        tuple(sorted(away)[: limits.turned_away_max]),
    )


def told(book: BidBook, campaign: str, answered_ms: int, now_ms: int) -> m.StripeTold:
    """What an operator sees of the book: of one campaign or, unnamed, of all."""
    names = dict.fromkeys((*book.bids, *(book.registered or ())))
    found = [_quote_told(book, name, now_ms) for name in names if campaign in ("", name)]
    found.sort(key=lambda quote: (quote.state != "missing", -quote.age_ms, quote.campaign))
    registered = -1 if book.registered is None else len(book.registered)
    return m.StripeTold(
        answered_ms, registered, book.complete(now_ms), tuple(found[: limits.quotes_told_max]), len(found)
    )


def _quote_told(book: BidBook, campaign: str, now_ms: int) -> m.QuoteTold:
    bid = book.bids.get(campaign)
    if bid is None:
        return m.QuoteTold(campaign, "missing")
    age_ms = now_ms - bid.taken_ms
    if bid.expired(now_ms):
        state = "expired"
    elif not bid.quote.active:
        state = "withdrawn"
    elif book.is_stranger(campaign):
        state = "unregistered"
    else:
        state = "stale" if age_ms > QUOTE_STALE_MS else "counts"
    return m.QuoteTold(campaign, state, age_ms, bid.quote.max_cpm_micros)


def _takes_part(quote: m.Quote, category: str) -> bool:
    wants = quote.targeting.unmatched if category == UNMATCHED else category in quote.categories
    return quote.active and wants


def _rejected(quotes: list[m.Quote], sizes: set[tuple[int, int]]) -> Iterable[m.RejectedBid]:
    """The best of those below the floor: that they bid is known to whoever sets it."""
    quotes.sort(key=lambda quote: (-quote.max_cpm_micros, quote.campaign))
    for quote in quotes[: limits.bidder_campaigns_max]:
        creatives = tuple(c.creative for c in quote.creatives if (c.width, c.height) in sizes)
        if creatives:
            yield m.RejectedBid(quote.campaign, quote.max_cpm_micros, creatives)


def _offers(quotes: Iterable[m.Quote], category: str, sizes: set[tuple[int, int]]) -> Iterable[Offer]:
    return (
        Offer(
            creative.creative,
            quote.campaign,
            quote.advertiser,
            category,
            quote.max_cpm_micros,
            creative.asset_url,
            creative.landing_url,
            creative.landing_domain,
            creative.mime,
            creative.width,
            creative.height,
            filler=category == UNMATCHED,
            product=creative.product,
            places=quote.targeting.places,
            blocked_categories=quote.targeting.blocked_categories,
        )
        for quote in quotes
        for creative in quote.creatives
        if (creative.width, creative.height) in sizes
    )


def demands_of(answers: Iterable[m.CategoryBidResponse], counts: Callable[[str], bool]) -> dict[str, Demand]:
    """What the answers of a round say of each category's demand, and of the site's as a whole, by creatives that
    `counts` is true of. A category whose answer is not complete is left out: who is late has not left."""
    everything: list[tuple[str, int, bool]] = []
    demands: dict[str, Demand] = {}
    for given in answers:
        if not given.complete or given.truncated:
            continue
        bids = [(o.campaign_id, o.cpm_micros, False) for o in given.offers if counts(o.creative_id)]
        bids += [(r.campaign, r.cpm_micros, True) for r in given.rejected if any(map(counts, r.creatives))]
        demands[given.category] = demand_of(bids)
        everything += bids
    return demands | {SITE_WIDE: demand_of(everything)} if demands else demands
