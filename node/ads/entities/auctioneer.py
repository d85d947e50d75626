"""A site's auctions, run ahead of impressions: which campaigns bid for each page, in which order.

It keeps its pages in memory only and learns them from the site when it starts. Pages are auctioned in rounds: all
categories of the round's pages are asked once each, and every page's pools follow from the answers. A bidder that
does not answer, or answers that it is not complete, is *unknown*: its page is auctioned again soon, and nothing that
it offered before is taken away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from node.actors.actor import Context, Failed
from node.actors.bus import Gap
from node.ads import edits
from node.ads import messages as m
from node.ads.auction import AuctionOutcome, Offer, decayed_score, fan_out, order_offers, summarize
from node.ads.bidbook import demands_of
from node.ads.entities.auction_tally import AuctionTally
from node.ads.entities.category_ranking import CategoryRanking, RankTold
from node.ads.entities.late_pages import LatePages
from node.ads.entities.site_state import fresh
from node.ads.floors.quality import UNMEASURED, effective_floor_micros
from node.ads.hosts import under_domain
from node.ads.pages_compared import lacking
from node.ads.targeting import page_objection
from node.ads.taxonomy import UNMATCHED, load_taxonomy
from node.ads.view import AuctionInfo, CandidateView, TurnedAway
from node.core import limits
from node.core.clock import MS
from node.core.hashing import spread_ms, stripe_of
from node.core.ids import EntityRef

BIDDER_TIMEOUT_MS = 800
DEBOUNCE_MS = 1_000
PERIOD_MS = 5 * 60_000
SITE_TIMEOUT_MS = 2_000
LEARN_AGAIN_MS = 1_000
LATE = "late-bidder"
TAUGHT_MS = 60_000  # a page may age on its way here, or while it waits


class _Learned(msgspec.Struct, frozen=True):
    """The site's answer to `AuctioneerStarted`."""

    outcome: Any


class _Bid(msgspec.Struct, frozen=True):
    round: int
    category: str
    outcome: Any


class _Run(msgspec.Struct, frozen=True):
    pass


class _Periodic(msgspec.Struct, frozen=True):
    pass


class _Fan(NamedTuple):
    """A page and whom it is offered to: categories with their distances from its own."""

    page: m.PageEntry
    hops: dict[str, int]


class _Round(msgspec.Struct):
    """One round under way: its pages with their triggers, whom each is offered to, what the categories answered so far,
    and what was taken out of the site's pools since it began."""

    number: int
    urls: dict[str, str]
    fans: dict[str, _Fan]
    waiting: set[str]
    answers: dict[str, m.CategoryBidResponse]
    taken_out: list[edits.SiteEdit] = []


class Auctioneer:
    """In memory only, remembered: it starts with its shard."""

    def __init__(self, site: str) -> None:
        self._site = site
        self._ref_site = EntityRef("site", site)
        self._ref_adserver = EntityRef("adserver", site)
        self._pages: dict[str, m.PageEntry] = {}
        self._slots: dict[str, m.SlotSpec] = {}
        self._floor_micros = 0
        self._blocked_domains: frozenset[str] = frozenset()
        self._blocked_products: frozenset[str] = frozenset()
        self._category_floors: dict[str, int] = {}
        self._slot_floor_micros: int | None = None
        self._least_floor_micros = 0
        self._worst_quality = UNMEASURED
        self._approved: frozenset[str] = frozenset()
        self._audience: tuple[tuple[str, int], ...] = ()
        self._suspended = False
        self._dirty: dict[str, str] = {}
        self._late = LatePages()
        self._round: _Round | None = None
        self._rounds = 0
        self._run_ns: int | None = None  # when the timer is due
        self._tally = AuctionTally()
        self._ranking = CategoryRanking(site)

    def start(self, ctx: Context, state: None) -> None:
        ctx.subscribe(m.CAMPAIGN_CHANGED)
        ctx.subscribe(m.ADVERTISER_CHANGED)
        ctx.every("periodic", PERIOD_MS, _Periodic(), first_ms=spread_ms(self._site, PERIOD_MS))
        self._learn(ctx)

    def receive(self, ctx: Context, message: Any) -> None:
        match message:
            case m.RestoreClassifications():
                ctx.reply(self._restore(ctx, message))
            case m.Reevaluate(urls, trigger):
                self._mark_whole(ctx, urls or tuple(self._pages), trigger)
            case m.CampaignChanged() | m.AdvertiserChanged() | Gap():
                self._hear(ctx, message)
            case _Learned(outcome):
                self._learned(ctx, outcome)
            case _Bid():
                self._answered(ctx, message)
            case RankTold():
                self._ranking.hear(message, ctx.moment())
            case _Run():
                self._run_ns = None
                self._run(ctx)
            case m.GetTallies() | m.FindPages():
                self._tell(ctx, message)
            case _Periodic():
                if self._pages:
                    self._mark(ctx, tuple(self._pages), "periodic", 0)
                else:
                    self._learn(ctx)
            case _:
                ctx.reject(f"an auctioneer does not understand {type(message).__name__}")

    def _hear(self, ctx: Context, news: m.CampaignChanged | m.AdvertiserChanged | Gap) -> None:
        """What was published of campaigns and advertisers."""
        match news:
            case m.CampaignChanged(campaign, categories, standing, until_ms, withdrawn, sites):
                if sites and self._site not in sites:
                    standing = "elsewhere"
                self._edit(ctx, edits.of_campaign_standing(campaign, standing, until_ms, withdrawn))
                if pages := self._pages_reaching(categories):
                    self._ranking.changed(categories)
                    self._mark(ctx, pages, "campaign", DEBOUNCE_MS)
            case m.AdvertiserChanged(advertiser, status):
                if status != "active":
                    self._edit(ctx, (edits.drop_advertiser(advertiser),))
                    self._mark(ctx, tuple(self._pages), "advertiser", DEBOUNCE_MS)
            case Gap():
                self._mark_whole(ctx, tuple(self._pages), "campaign")  # which campaigns changed is lost

    def _edit(self, ctx: Context, orders: tuple[edits.SiteEdit, ...]) -> None:
        """The ad server does it at once: a pool must not wait for an auction to lose what may not be served."""
        if orders:
            ctx.tell(self._ref_adserver, m.EditSite(orders))
        if self._round is not None:
            self._round.taken_out.extend(orders)

    def _tell(self, ctx: Context, question: m.GetTallies | m.FindPages) -> None:
        now_ms = ctx.wall_ms()
        if isinstance(question, m.FindPages):
            ctx.reply(lacking(question.urls, (url for url, page in self._pages.items() if fresh(page, now_ms))))
        else:
            ctx.reply(self._tally.told(len(self._pages), len(self._dirty), self._ranking.heard(), now_ms))

    # ---- pages

    def _learn(self, ctx: Context) -> None:
        ctx.ask(self._ref_site, m.AuctioneerStarted(), SITE_TIMEOUT_MS, _Learned)

    def _learned(self, ctx: Context, outcome: Any) -> None:
        if isinstance(outcome, m.RestoreClassifications):
            self._restore(ctx, outcome)
        elif isinstance(outcome, Failed) and "there is no site" in outcome.detail:
            ctx.passivate()  # it was deleted: who asks again and again would keep both in memory for ever
        else:
            ctx.after("learn", LEARN_AGAIN_MS, _Periodic())

    def _restore(self, ctx: Context, message: m.RestoreClassifications) -> m.Restored:
        self._slots = {slot.slot: slot for slot in message.slots}
        self._floor_micros = message.floor_micros
        self._blocked_domains = frozenset(message.blocked_domains)
        self._blocked_products = frozenset(message.blocked_products)
        self._category_floors = message.category_floors
        self._slot_floor_micros = min(message.slot_floors.values(), default=None)
        self._least_floor_micros = message.least_floor_micros
        self._worst_quality = min((message.qualities.get(slot, UNMEASURED) for slot in self._slots), default=UNMEASURED)
        self._approved = frozenset(message.approved)
        self._audience = message.audience
        resumed = self._suspended and not message.suspended
        self._suspended = message.suspended
        if message.all_pages:
            held = {entry.url for entry in message.entries}
            for url in [url for url in self._pages if url not in held]:
                del self._pages[url]
        newer = [
            entry
            for entry in message.entries
            if message.force
            or entry.url not in self._pages
            or self._pages[entry.url].classified_at_ms < entry.classified_at_ms
        ]
        now_ms = ctx.wall_ms()
        if message.trigger == "replay":
            self._ranking.changed(category for entry in newer for category, _ in entry.categories)
        for entry in newer:
            self._pages[entry.url] = entry
            self._tally.stale += not fresh(entry, now_ms - TAUGHT_MS)
        delay_ms = 0 if message.trigger == "classification" else DEBOUNCE_MS
        # That the site goes on may be all that is new here: whoever told of it before was not heard.
        news = tuple(self._pages) if resumed else tuple(entry.url for entry in newer)
        self._mark(ctx, news, message.trigger, delay_ms)
        return m.Restored(len(newer), len(message.entries) - len(newer))

    def _pages_reaching(self, categories: Sequence[str]) -> tuple[str, ...]:
        wanted = set(categories)
        return tuple(url for url, page in self._pages.items() if not wanted.isdisjoint(markets_of(page.categories)))

    def _mark(self, ctx: Context, urls: Sequence[str], trigger: str, delay_ms: int) -> None:
        if not urls or self._suspended:
            return
        for url in urls:
            if self._dirty.get(url, LATE) == LATE:  # a page that waits for its bidder is asked for once more, too
                self._dirty[url] = trigger
        if delay_ms == 0:
            self._run(ctx)
        else:
            self._run_in(ctx, delay_ms)

    def _mark_whole(self, ctx: Context, urls: Sequence[str], trigger: str) -> None:
        """Anything may be new: all categories of these pages are auctioned, whatever they are worth."""
        pages = [self._pages[url] for url in urls if url in self._pages]
        self._ranking.changed(category for page in pages for category, _ in page.categories)
        self._mark(ctx, urls, trigger, DEBOUNCE_MS)

    # ---- rounds

    def _run_in(self, ctx: Context, delay_ms: int) -> None:
        # Never later than it is armed for: a stream of changes must not postpone the auction for ever.
        due_ns = ctx.now_ns() + delay_ms * MS
        if self._run_ns is None or due_ns < self._run_ns:
            self._run_ns = due_ns
            ctx.after("run", delay_ms, _Run())

    def _run(self, ctx: Context) -> None:
        if self._round is not None:
            return
        self._forget_stale(ctx)
        if not self._dirty:
            return
        urls = {url: self._dirty[url] for url in list(self._dirty)[: limits.auction_round_pages_max]}
        for url in urls:
            del self._dirty[url]
        self._rounds += 1
        fans = {url: self._fan_out(self._pages[url], ctx.moment().mono_ms) for url in urls}
        categories = sorted({category for fan in fans.values() for category in fan.hops})
        self._round = _Round(self._rounds, urls, fans, set(categories), {})
        self._ranking.renew(ctx, [category for fan in fans.values() for category, _ in fan.page.categories])
        sizes = tuple(sorted({(slot.width, slot.height) for slot in self._slots.values()}))
        for category in categories:
            request = m.CategoryBidRequest(self._site, sizes, self._floor_of(category), self._audience)
            self._ask_bidder(ctx, category, request)
        if not categories:
            self._finish(ctx, self._round)

    def _forget_stale(self, ctx: Context) -> None:
        """A page judged too long ago is auctioned no more: it would bring back a pool that nobody vouches for."""
        now_ms = ctx.wall_ms()
        for url in [url for url in self._dirty if url not in self._pages or not fresh(self._pages[url], now_ms)]:
            del self._dirty[url]
            self._pages.pop(url, None)

    def _ask_bidder(self, ctx: Context, category: str, request: m.CategoryBidRequest) -> None:
        number = self._rounds
        bidder = EntityRef("category-bidder", f"{category}|{stripe_of(self._site)}")
        ctx.ask(bidder, request, BIDDER_TIMEOUT_MS, lambda outcome: _Bid(number, category, outcome))

    def _fan_out(self, page: m.PageEntry, mono_ms: int) -> _Fan:
        if not page.categories:
            return _Fan(page, {UNMATCHED: 0})
        return _Fan(page, fan_out(load_taxonomy(), self._ranking.chosen(page.categories, mono_ms)))

    def _answered(self, ctx: Context, bid: _Bid) -> None:
        current = self._round
        if current is None or bid.round != current.number:
            return
        current.waiting.discard(bid.category)
        self._tally.answered(bid.category, bid.outcome, ctx.wall_ms())
        self._late.hear(bid.round, bid.category, bid.outcome)
        if isinstance(bid.outcome, m.CategoryBidResponse):
            current.answers[bid.category] = bid.outcome
        if not current.waiting:
            self._finish(ctx, current)

    def _finish(self, ctx: Context, finished: _Round) -> None:
        self._round = None
        demands = demands_of(finished.answers.values(), self._counts)
        if demands:
            ctx.tell(self._ref_site, m.DemandSeen(demands))
        asked = [c for fan in finished.fans.values() for c, _ in fan.page.categories if c in fan.hops]
        self._ranking.found(asked, finished.answers, ctx.moment().mono_ms)
        self._ranking.renew(ctx, [category for category, answer in finished.answers.items() if answer.offers])
        late: list[str] = []
        for url, trigger in finished.urls.items():
            fan = finished.fans[url]
            if self._pages.get(url) is not fan.page:
                self._late.settled(url)  # it is no more, or was judged anew, and then it waits for its own auction
                continue
            if trigger == LATE and not self._late.would_learn(url, fan.hops):
                late.append(url)
                continue
            self._tally.auctioned(trigger, ctx.wall_ms())
            if self._auction(ctx, fan, trigger, finished):
                self._late.settled(url)
            else:
                self._late.lacked(url, finished.number, fan.hops)
                late.append(url)
        again, delay_ms = self._late.again(late)
        for url in again:
            self._dirty.setdefault(url, LATE)
        if again:
            self._run_in(ctx, delay_ms)
        if not self._dirty:
            self._ranking.settled()
        # Pages of a late bidder wait for the retry's timer; what else waits, or is left when nothing has to be tried
        # again, goes on at once: no timer will come for it.
        if not again or any(trigger != LATE for trigger in self._dirty.values()):
            self._run(ctx)

    def _auction(self, ctx: Context, fan: _Fan, trigger: str, finished: _Round) -> bool:
        """Auctions one page from the round's answers; false when an answer was missing or not complete."""
        page, hops = fan
        known = [finished.answers[category] for category in hops if category in finished.answers]
        late = len(hops) - sum(answer.complete for answer in known)
        offers = [
            msgspec.structs.replace(offer, ancestor_hops=hops[answer.category])
            for answer in known
            for offer in answer.offers
        ]
        allowed = [offer for offer in offers if not self._is_blocked(offer)]
        wanting, away = self._turn_away(page, allowed, known)
        ordered = order_offers(wanting)
        info = AuctionInfo(
            f"{self._site}:{ctx.wall_ms()}:{finished.number}",
            trigger,
            ctx.wall_ms(),
            page.url,
            tuple(category for category, _ in page.categories),
            self._floor_micros,
            page.fallback,
        )
        # A bidder may have answered before it heard that a campaign is no more: it must not be put back.
        doomed = edits.doomed(finished.taken_out)
        candidates = [(offer, _candidate(offer, page, info, self._ranking.mean(offer.category))) for offer in ordered]
        pools = tuple(
            m.SlotPool(name, tuple(c for o, c in candidates if _fits(o, self._slots[name]) and not doomed(c)))
            for name in page.slots
            if name in self._slots
        )
        answered = tuple(answer.category for answer in known if answer.complete and not answer.truncated)
        # What is blocked is not offered here: a candidate that stands in a pool from before goes with this auction.
        offered = tuple({(offer.creative_id, offer.category): None for offer in allowed})
        targets = {o.campaign_id: (o.places, o.blocked_categories) for o in allowed if o.places or o.blocked_categories}
        ctx.tell(
            self._ref_adserver,
            m.CandidatesCollected(page.url, page.classified_at_ms, info, pools, answered, offered, targets, away),
        )
        seen = m.SlotReport(
            "",
            rejected=sum(answer.rejected_by_floor for answer in known),
            best_rejected_micros=max((answer.best_rejected_micros for answer in known), default=0),
            floor_micros=max(
                (self._floor_of(answer.category) for answer in known if answer.rejected_by_floor),
                default=self._floor_micros,
            ),
            blocked=len({o.creative_id for o in offers} - {o.creative_id for o in allowed}),
            late=late,
            turned_away=away,
        )
        unfit = max((answer.other_sizes for answer in known), default=0)
        report = tuple(
            _report(pool, seen, len(ordered) + unfit, self._outcome(ordered, self._slots[pool.slot])) for pool in pools
        )
        ctx.tell(self._ref_site, m.AuctionReport(page.url, ctx.wall_ms(), report))
        return late == 0

    def _turn_away(
        self, page: m.PageEntry, offers: Sequence[Offer], answers: Sequence[m.CategoryBidResponse]
    ) -> tuple[list[Offer], tuple[TurnedAway, ...]]:
        """The offers whose campaigns want the page, and some of the campaigns that don't want it, or its site."""
        reach, places = markets_of(page.categories), dict(page.places)
        objections = [page_objection(o.places, o.blocked_categories, places, reach) for o in offers]
        away = {found for answer in answers for found in answer.turned_away}
        away |= {TurnedAway(o.campaign_id, why) for o, why in zip(offers, objections, strict=True) if why}
        wanting = [offer for offer, why in zip(offers, objections, strict=True) if not why]
        return wanting, tuple(sorted(away)[: limits.turned_away_max])

    def _floor_of(self, category: str) -> int:
        """What a bidder is asked for: the least that any slot would take."""
        raw = self._category_floors.get(category, self._floor_micros)
        floor = effective_floor_micros(raw, self._worst_quality, least_micros=self._least_floor_micros)
        return floor if self._slot_floor_micros is None else min(floor, self._slot_floor_micros)

    def _outcome(self, offers: Sequence[Offer], slot: m.SlotSpec) -> AuctionOutcome:
        fitting = [offer for offer in offers if _fits(offer, slot)]
        return summarize(fitting, floor_micros=self._floor_micros)

    def _counts(self, creative: str) -> bool:
        """Only what the publisher has approved teaches the floors."""
        return creative in self._approved

    def _is_blocked(self, offer: Offer) -> bool:
        return offer.product in self._blocked_products or under_domain(offer.landing_domain, self._blocked_domains)


def _report(pool: m.SlotPool, seen: m.SlotReport, offers: int, outcome: AuctionOutcome) -> m.SlotReport:
    """What the auction found for one slot; `offers` there were of all sizes."""
    return msgspec.structs.replace(
        seen,
        slot=pool.slot,
        creatives=tuple(c.creative_id for c in pool.candidates[: limits.report_creatives_max]),
        offers=len(pool.candidates),
        other_sizes=offers - len(pool.candidates),
        outcome=outcome,
    )


@lru_cache(maxsize=4_096)  # few pages have categories of their own, and each change of a campaign looks at all of them
def markets_of(categories: tuple[tuple[str, float], ...]) -> Mapping[str, int]:
    """Whom a page could be sold to: its categories and all above them; a page without any has a market of its own."""
    hops = load_taxonomy().expand_with_hops(category for category, _ in categories)
    return hops or {UNMATCHED: 0}


def _fits(offer: Offer, slot: m.SlotSpec) -> bool:
    return (offer.width, offer.height) == (slot.width, slot.height)


def _candidate(offer: Offer, page: m.PageEntry, info: AuctionInfo, weight: float) -> CandidateView:
    return CandidateView(
        offer.creative_id,
        offer.campaign_id,
        offer.advertiser_id,
        offer.asset_url,
        offer.landing_url,
        offer.landing_domain,
        offer.mime,
        offer.width,
        offer.height,
        offer.category,
        offer.cpm_micros,
        page.classified_at_ms,
        decayed_score(weight, offer.ancestor_hops),
        offer.ancestor_hops,
        info.auction_id,
        offer.filler,
        offer.product,
        offer.places,
        offer.blocked_categories,
    )
