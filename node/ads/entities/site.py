"""A site: its pages and their classifications, its slots, what its publisher approved and what waits for approval.

Its own record is small; each page is on a shelf (`site_pages`), so that a classification writes what it is about.

It teaches the auctioneer and the ad server of the same id, which keep nothing of their own: both ask it when they
start, and it sends its classifications again every five minutes in case a message was lost (the boot-time replay).
"""

from __future__ import annotations

from typing import Any

import msgspec

from node.actors.actor import Context, ReplyTo
from node.ads import messages as m
from node.ads.classifier import CLASSIFIER_VERSION, Classification, Classifier
from node.ads.entities.coverage import Wanted, explain_site, site_coverage, wanted_slots
from node.ads.entities.site_approval import Order, admit, decide, sweep
from node.ads.entities.site_conduct import counted, newly_suspected, suspected
from node.ads.entities.site_learning import FloorLearning, FloorsPushed, FloorTick
from node.ads.entities.site_leaving import SiteLeaving, Step
from node.ads.entities.site_pages import SitePages
from node.ads.entities.site_replay import Lot, lot
from node.ads.entities.site_state import (
    SiteState,
    agree,
    fresh,
    leave_queue,
    measure,
    observe,
    update,
)
from node.ads.entities.site_views import info_of, lesson_of, settings_of
from node.ads.hosts import host_of_url, same_host
from node.ads.pagebook import newer
from node.ads.places import load_gazetteer, place_reach
from node.ads.serveindex import ServeIndex
from node.ads.site_token import TOKEN_BITS, check_token, token_text
from node.ads.tally import Tally
from node.core import limits
from node.core.errors import BadInput
from node.core.hashing import spread_ms
from node.core.ids import EntityRef
from node.flows.messages import GetCoverage, ReplaySite, SiteCoverage

RESEND_PERIOD_MS = 5 * 60_000
REGISTER_TIMEOUT_MS = 3_000


class _Registered(msgspec.Struct, frozen=True):
    """The publisher's answer to a site that is being made."""

    message: m.CreateSite
    reply_to: ReplyTo
    outcome: Any


class _Classified(msgspec.Struct, frozen=True):
    """What the classifier answered for a page; `slots` are those the page's tag reported."""

    url: str
    slots: tuple[m.SlotSpec, ...]
    outcome: Any


class _Teach(msgspec.Struct, frozen=True):
    """State is durable: tell the ad server, the auctioneer if pages must be auctioned again, and who made the site;
    `made` is false when it was there before."""

    reevaluate: bool = False
    created: ReplyTo | None = None
    made: bool = True


class _Resend(msgspec.Struct, frozen=True):
    """Teach the ad server and the auctioneer everything again; the trigger is what an explanation will say."""

    trigger: str
    reevaluate: bool = False


class _Widened(msgspec.Struct, frozen=True):
    """So many shelves are on record."""

    shelves: int


class _Replayed(msgspec.Struct, frozen=True):
    reply_to: ReplyTo
    lot: Lot
    outcome: Any


# What can't be answered, or would teach that there are no pages, before they are known: whoever asks asks again.
NEEDS_PAGES = (m.AuctioneerStarted, m.AdServerStarted, ReplaySite, GetCoverage, m.ExplainCoverage)


class Site:
    """Durable, remembered."""

    def __init__(self, site: str, classifier: Classifier, index: ServeIndex) -> None:
        self._site = site
        self._classifier = classifier
        self._index = index
        self._state: SiteState | None = None
        self._pages = SitePages(site, self._live, self._learned, self._widen)
        self._in_flight: dict[str, int] = {}  # since when, wall ms
        self._judged = Tally()
        self._early: list[_Classified] = []
        self._reports: dict[str, m.AuctionReport] = {}
        self._floors = FloorLearning(site)
        self._leaving = SiteLeaving()
        self._auctioneer = EntityRef("auctioneer", site)
        self._adserver = EntityRef("adserver", site)

    def start(self, ctx: Context, state: SiteState | None) -> None:
        self._state = state
        if state is not None and state.leaving:
            self._leaving.start(ctx)
        elif state is not None:
            self._pages.start(ctx, state.shelves)

    def _live(self, ctx: Context) -> None:
        """The site knows its pages: it teaches, and takes up what came before."""
        if self._state is not None:
            known = self._pages.all
            self._pages.put(
                ctx, [p for p in self._state.pages.values() if p.url not in known or newer(p, known[p.url])]
            )
        for early in self._early:
            ctx.after(f"early-{early.url}", 0, early)
        self._early.clear()
        self._floors.start(ctx)
        ctx.every("resend", RESEND_PERIOD_MS, _Resend("resend"), first_ms=spread_ms(self._site, RESEND_PERIOD_MS))
        ctx.after("teach", 0, _Resend("restart"))

    def receive(self, ctx: Context, message: Any) -> None:
        match message:
            case m.CreateSite():
                self._create(ctx, message)
                return
            case _Registered():
                self._registered(ctx, message)
                return
            case _:
                pass
        state = self._state
        if state is None:
            ctx.reject(f"there is no site {self._site!r}")
            ctx.passivate()  # anybody can ask for any name: what does not exist must not stay in memory
            return
        if state.leaving:
            self._leaving.receive(ctx, state, message)
            return
        if self._pages.receive(ctx, message):
            self._forget_old_record(ctx, state)
            return
        if not self._pages.known and isinstance(message, NEEDS_PAGES):
            ctx.reject("starting: the site is reading its pages")
            return
        parts = (self._about_pages, self._about_teaching, self._about_approval, self._about_floors)
        if not any(part(ctx, state, message) for part in parts):
            ctx.reject(f"a site does not understand {type(message).__name__}")

    def _about_pages(self, ctx: Context, state: SiteState, message: Any) -> bool:
        match message:
            case m.GetSite():
                ctx.reply(self._info(ctx, state))
            case m.GetTallies():
                ctx.reply(self._tallies(ctx.wall_ms()))
            case m.GetSiteToken():
                self._tell_token(ctx, state)
            case m.CheckSiteToken(token):
                ctx.reply(m.SiteTokenChecked(check_token(state.token or None, token)))
            case m.ClassifyPage():
                self._classify(ctx, state, message)
            case _Classified():
                self._classified(ctx, state, message)
            case m.ActivateSlots():
                self._activate(ctx, state, message)
            case m.ExplainCoverage():
                ctx.reply(explain_site(state, self._pages.all, self._reports, self._index, ctx.wall_ms()))
            case GetCoverage():
                ctx.reply(self._coverage(state, ctx.wall_ms()))
            case m.AuctionReport(url):
                if url in self._pages.all:
                    self._reports[url] = message
            case _:
                return False
        return True

    def _about_teaching(self, ctx: Context, state: SiteState, message: Any) -> bool:
        match message:
            case m.AuctioneerStarted():
                ctx.reply(self._restore(ctx, state, "restart"))
            case m.AdServerStarted():
                ctx.reply(settings_of(state, self._pages.all.values()))
            case ReplaySite():
                self._replay(ctx, state, message)
            case _Replayed():
                self._replayed(ctx, message)
            case _Widened(shelves):
                self._pages.save(ctx, shelves)
            case _Resend(trigger, reevaluate):
                ctx.tell(self._adserver, settings_of(state, self._pages.all.values()))
                ctx.tell(self._auctioneer, self._restore(ctx, state, trigger))
                if reevaluate:
                    ctx.tell(self._auctioneer, m.Reevaluate((), trigger))
            case _:
                return False
        return True

    def _about_approval(self, ctx: Context, state: SiteState, message: Any) -> bool:
        match message:
            case m.QueuePending(creatives):
                self._queue(ctx, state, creatives)
            case m.LeaveQueue(edits):
                self._state = leave_queue(state, edits)
                if self._state is not state:
                    ctx.persist(self._state)
            case _ if isinstance(message, Order):
                self._decide(ctx, state, message)
            case m.UpdateSite() | m.PublisherTerms():
                self._update(ctx, state, message)
            case m.DeleteSite():
                self._state = msgspec.structs.replace(state, leaving=True)
                ctx.persist(self._state, reply=self._info(ctx, self._state), then=Step())
            case _Teach(reevaluate, created, made):
                if created is not None:
                    ctx.answer(created, self._info(ctx, state, changed=made))
                if self._pages.known:
                    ctx.tell(self._adserver, settings_of(state, self._pages.all.values()))
                if reevaluate:
                    ctx.tell(self._auctioneer, lesson_of(state, (), "approval"))
                    ctx.tell(self._auctioneer, m.Reevaluate((), "approval"))
            case _:
                return False
        return True

    def _about_floors(self, ctx: Context, state: SiteState, message: Any) -> bool:
        match message:
            case m.TrafficLearned(shape, seen):
                conduct = counted(state.conduct, seen, ctx.wall_ms())
                odd = newly_suspected(state.conduct, conduct)
                self._state = msgspec.structs.replace(state, traffic=shape, conduct=conduct)
                ctx.persist(self._state, facts=tuple(suspected(self._site, each) for each in odd))
            case m.DemandSeen(demands):
                self._floors.take(state, message)
                self._state = self._floors.unblock(ctx, state, demands)
            case FloorTick():
                self._state = self._floors.tick(ctx, state)
            case FloorsPushed():
                if self._pages.known:
                    ctx.tell(self._adserver, settings_of(state, self._pages.all.values()))
                ctx.tell(self._auctioneer, lesson_of(state, (), "floor"))
                ctx.tell(self._auctioneer, m.Reevaluate((), "floor"))
            case _:
                return self._floors.take(state, message)
        return True

    # ---- creation

    def _create(self, ctx: Context, message: m.CreateSite) -> None:
        reply_to = ctx.reply_later()
        if self._state is not None:
            self._created_before(ctx, self._state, message, reply_to)
            return
        ctx.ask(
            EntityRef("publisher", message.publisher),
            m.RegisterSite(self._site, message.host),
            REGISTER_TIMEOUT_MS,
            lambda outcome: _Registered(message, reply_to, outcome),
        )

    def _created_before(self, ctx: Context, known: SiteState, message: m.CreateSite, reply_to: ReplyTo) -> None:
        has = (known.host, known.publisher, known.slots, known.floor_micros)
        if known.leaving:
            ctx.answer_reject(reply_to, f"conflict: site {self._site!r} is being deleted")
        elif has == (message.host, message.publisher, message.slots, message.floor_micros):
            # Persisted again: the first write may still be under way, and the answer says that it holds.
            ctx.persist(known, then=_Teach(created=reply_to, made=False))
        else:
            ctx.answer_reject(reply_to, f"conflict: site {self._site!r} exists with other values")

    def _registered(self, ctx: Context, registered: _Registered) -> None:
        outcome, message = registered.outcome, registered.message
        if self._state is not None:
            # Another creation was under way and came first.
            self._created_before(ctx, self._state, message, registered.reply_to)
            return
        if not isinstance(outcome, m.PublisherSecret):
            ctx.answer_reject(registered.reply_to, f"publisher {message.publisher!r} did not answer: {outcome}")
            return
        self._state = SiteState(
            self._site, message.host, message.publisher, message.slots, message.floor_micros, outcome.secret,
            terms=outcome.terms,
        )  # fmt: skip
        self._pages.start(ctx, 0)
        ctx.persist(self._state, then=_Teach(created=registered.reply_to))

    def _tell_token(self, ctx: Context, state: SiteState) -> None:
        if state.token:
            ctx.reply_durable(m.SiteToken(state.token))
            return
        self._state = msgspec.structs.replace(state, token=token_text(ctx.rng.getrandbits(TOKEN_BITS)))
        ctx.persist(self._state, reply=m.SiteToken(self._state.token))

    # ---- classification

    def _classify(self, ctx: Context, state: SiteState, message: m.ClassifyPage) -> None:
        if not same_host(host_of_url(message.url), state.host):
            ctx.reply(m.ClassifyAck(False, "host_refused"))
            return
        if message.url in self._in_flight:
            ctx.reply(m.ClassifyAck(False, "in_flight"))
            return
        self._measure(ctx, state, message)
        self._in_flight[message.url] = ctx.wall_ms()
        ctx.pipe(
            "llm",
            self._classifier.classify,
            message.text,
            message.hint,
            then=lambda outcome: _Classified(message.url, message.slots, outcome),
        )
        ctx.reply(m.ClassifyAck(True, "accepted"))

    def _measure(self, ctx: Context, state: SiteState, message: m.ClassifyPage) -> None:
        """Where a page shows its slots says what they are worth: floors follow."""
        measured = measure(state, message.placements)
        if measured is not state:
            self._state = measured
            ctx.persist(measured, then=FloorsPushed())

    def _classified(self, ctx: Context, state: SiteState, classified: _Classified) -> None:
        if not self._pages.known:
            self._early.append(classified)
            return
        self._in_flight.pop(classified.url, None)
        outcome = classified.outcome
        if not isinstance(outcome, Classification):
            self._judged.add("failed", ctx.wall_ms())
            return  # the page stays as it was and the tag, still told that text is wanted, sends it again
        observed = observe(state, classified.slots)
        known = {slot.slot for slot in observed}
        # Every declared slot is auctioned for every page: a tag's report can add slots, never take one away.
        slots = (*(s.slot for s in state.slots), *(s.slot for s in classified.slots if s.slot in known))
        entry = m.PageEntry(
            classified.url,
            outcome.categories,
            slots[: max(len(state.slots), limits.slots_per_request_max)],
            ctx.wall_ms(),
            outcome.provider,
            outcome.fallback,
            tuple(place_reach(load_gazetteer(), outcome.places).items()) if outcome.places else (),
            CLASSIFIER_VERSION,
        )
        self._judged.add(f"{outcome.provider}, as a fallback" if outcome.fallback else outcome.provider, ctx.wall_ms())
        self._marked(ctx, state, entry, observed, "classification")

    def _activate(self, ctx: Context, state: SiteState, message: m.ActivateSlots) -> None:
        page = self._pages.all.get(message.url)
        if page is None:
            return
        observed = observe(state, message.slots)
        known = {slot.slot for slot in (*state.slots, *observed)}
        added = tuple(s.slot for s in message.slots if s.slot in known and s.slot not in page.slots)
        if added:
            entry = msgspec.structs.replace(page, slots=(*page.slots, *added)[: limits.slots_per_request_max])
            self._marked(ctx, state, entry, observed, "slots")

    def _marked(
        self, ctx: Context, state: SiteState, entry: m.PageEntry, observed: tuple[m.SlotSpec, ...], trigger: str
    ) -> None:
        self._pages.put(ctx, (entry,))
        if observed != state.observed:
            # From the newest: keeping the page may have been the first to need another shelf.
            self._state = state = msgspec.structs.replace(self._state or state, observed=observed)
            ctx.persist(state)
            ctx.tell(self._adserver, settings_of(state, self._pages.all.values()))
        self._spread(ctx, state, entry, trigger)

    def _spread(self, ctx: Context, state: SiteState, entry: m.PageEntry, trigger: str) -> None:
        pages = self._pages.all
        if len(self._reports) > len(pages):
            self._reports = {url: report for url, report in self._reports.items() if url in pages}
        ctx.tell(self._adserver, m.PageMarked(entry))
        ctx.tell(self._auctioneer, lesson_of(state, (entry,), trigger, force=True))

    # ---- what the pages ask of their site

    def _learned(self, ctx: Context, page: m.PageEntry) -> None:
        if self._state is not None:
            self._spread(ctx, self._state, page, "classification")

    def _widen(self, ctx: Context, shelves: int) -> None:
        if self._state is not None:
            self._state = msgspec.structs.replace(self._state, shelves=shelves)
            ctx.persist(self._state, then=_Widened(shelves))

    def _forget_old_record(self, ctx: Context, state: SiteState) -> None:
        """The pages of a record from before there were shelves go once they are on them."""
        if state.pages and self._pages.known and self._pages.saved:
            self._state = msgspec.structs.replace(self._state or state, pages={})
            ctx.persist(self._state)

    # ---- replay

    def _restore(self, ctx: Context, state: SiteState, trigger: str) -> m.RestoreClassifications:
        now_ms = ctx.wall_ms()
        pages = tuple(page for page in self._pages.all.values() if fresh(page, now_ms))
        return lesson_of(state, pages, trigger, all_pages=True)

    def _replay(self, ctx: Context, state: SiteState, order: ReplaySite) -> None:
        found = lot(state, self._pages.all, self._index, order, ctx.wall_ms())
        if not order.after:
            ctx.tell(self._adserver, settings_of(state, self._pages.all.values()))
        if not found.pages and not found.whole:
            ctx.reply(found.report(0, 0))
            return
        reply_to = ctx.reply_later()
        ctx.ask(
            self._auctioneer,
            lesson_of(state, found.pages, "replay", force=True, all_pages=found.whole),
            REGISTER_TIMEOUT_MS,
            lambda outcome: _Replayed(reply_to, found, outcome),
        )

    def _replayed(self, ctx: Context, replayed: _Replayed) -> None:
        taught = isinstance(replayed.outcome, m.Restored)
        pages = len(replayed.lot.pages)
        ctx.answer(replayed.reply_to, replayed.lot.report(*((pages, 0) if taught else (0, pages))))

    # ---- approval

    def _queue(self, ctx: Context, state: SiteState, creatives: tuple[m.PendingCreative, ...]) -> None:
        queued, facts = admit(state, creatives, ctx.wall_ms())
        if queued is not state:
            self._state = queued
            ctx.persist(queued, facts=facts, then=_Teach(reevaluate=True) if facts else None)

    def _decide(self, ctx: Context, state: SiteState, order: Order) -> None:
        """The publisher's word on a creative, or that it is no more; the ad server hears of it, and drops what lost its
        approval."""
        try:
            decided, facts = decide(state, order, ctx.wall_ms())
        except BadInput as error:
            ctx.reject(str(error))
            return
        if decided is state:
            # Said again, for somebody may not have heard of it: written again too, since it may still be under way.
            ctx.persist(state, reply=m.Accepted(changed=False), then=_Teach())
            return
        self._state = decided
        ctx.persist(decided, facts=facts, reply=m.Accepted(), then=_Teach(reevaluate=True))

    def _update(self, ctx: Context, state: SiteState, order: m.UpdateSite | m.PublisherTerms) -> None:
        try:
            updated = update(state, order) if isinstance(order, m.UpdateSite) else agree(state, order)
        except BadInput as error:
            ctx.reject(str(error))
            return
        if updated is state:
            ctx.persist(state, reply=self._info(ctx, state, changed=False), then=_Resend("again"))
            return
        swept, facts = sweep(updated, ctx.wall_ms())
        self._state = swept
        ctx.persist(swept, facts=facts, reply=self._info(ctx, swept), then=_Resend("settings", reevaluate=True))

    # ---- read models

    def coverage(self, now_ms: int) -> SiteCoverage | None:
        """The site's share of slots that have a pool; None before its pages are known. Reads the local replica."""
        state = self._state
        return self._coverage(state, now_ms) if state is not None and (self._pages.known or state.leaving) else None

    def wanted(self, now_ms: int) -> dict[str, Wanted]:
        """What can fill each declared slot, by the pages that are known."""
        return wanted_slots(self._state, self._pages.all, now_ms) if self._state is not None else {}

    @property
    def reading(self) -> bool:
        """It is there, and does not know its pages yet."""
        return self._state is not None and not self._pages.known and not self._state.leaving

    def _coverage(self, state: SiteState, now_ms: int) -> SiteCoverage:
        pages = self._pages.all if not state.leaving else {}
        return site_coverage(state, pages, self._reports, self._index, now_ms)

    def _tallies(self, now_ms: int) -> m.SiteTallies:
        oldest_ms = min(self._in_flight.values(), default=now_ms)
        return m.SiteTallies(
            self._floors.tally.told(now_ms), self._judged.told(now_ms), len(self._in_flight), max(0, now_ms - oldest_ms)
        )

    def _info(self, ctx: Context, state: SiteState, *, changed: bool = True) -> m.SiteInfo:
        return info_of(state, self._pages.all.values(), ctx.wall_ms(), changed=changed)
