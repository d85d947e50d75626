"""A site: its pages and their classifications, its slots, what its publisher approved and what waits for approval.

It teaches the auctioneer and the ad server of the same id, which keep nothing of their own: both ask it when they
start, and it sends its classifications again every five minutes in case a message was lost (the boot-time replay).
"""

from __future__ import annotations

from typing import Any

import msgspec

from node.actors.actor import Context, ReplyTo
from node.ads import messages as m
from node.ads.classifier import Classification, Classifier
from node.ads.entities.coverage import site_coverage
from node.ads.facts import CreativeApproved, PageClassified
from node.ads.hosts import host_of_url, same_host
from node.ads.serveindex import ServeIndex
from node.core import limits
from node.core.hashing import spread_ms
from node.core.ids import EntityRef
from node.flows.messages import GetCoverage, ReplayReport, ReplaySite, SiteCoverage
from node.wire.registry import wire_type

FRESHNESS_WINDOW_MS = 48 * 3_600_000
RESEND_PERIOD_MS = 5 * 60_000
REGISTER_TIMEOUT_MS = 3_000
BID_WEIGHT = 0.5


@wire_type("state.site")
class SiteState(msgspec.Struct, frozen=True):
    """`slots` are those that the publisher declared; `observed` are further ones that page tags reported: they are
    auctioned and served, but anybody can report them, so they count for nothing. `approved` maps a creative to when;
    `pages` is in order of classification, the oldest first."""

    site: str
    host: str
    publisher: str
    slots: tuple[m.SlotSpec, ...]
    floor_micros: int
    secret: bytes
    pages: dict[str, m.PageEntry] = msgspec.field(default_factory=dict)
    approved: dict[str, int] = msgspec.field(default_factory=dict)
    pending: dict[str, m.PendingCreative] = msgspec.field(default_factory=dict)
    suspended: bool = False
    observed: tuple[m.SlotSpec, ...] = ()

    @property
    def all_slots(self) -> tuple[m.SlotSpec, ...]:
        return (*self.slots, *self.observed)


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


class _Replayed(msgspec.Struct, frozen=True):
    reply_to: ReplyTo
    outcome: Any


class Site:
    """Durable, remembered."""

    def __init__(self, site: str, classifier: Classifier, index: ServeIndex) -> None:
        self._site = site
        self._classifier = classifier
        self._index = index
        self._state: SiteState | None = None
        self._in_flight: set[str] = set()
        self._reports: dict[str, tuple[int, int, int]] = {}
        self._auctioneer = EntityRef("auctioneer", site)
        self._adserver = EntityRef("adserver", site)

    def start(self, ctx: Context, state: SiteState | None) -> None:
        self._state = state
        if state is not None:
            self._live(ctx)

    def _live(self, ctx: Context) -> None:
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
        if not self._about_pages(ctx, state, message) and not self._about_approval(ctx, state, message):
            ctx.reject(f"a site does not understand {type(message).__name__}")

    def _about_pages(self, ctx: Context, state: SiteState, message: Any) -> bool:
        match message:
            case m.GetSite():
                ctx.reply(self._info(ctx, state))
            case m.ClassifyPage():
                self._classify(ctx, state, message)
            case _Classified():
                self._classified(ctx, state, message)
            case m.AuctioneerStarted():
                ctx.reply(self._restore(ctx, state, "restart"))
            case m.AdServerStarted():
                ctx.reply(self._settings(state))
            case ReplaySite():
                self._replay(ctx, state)
            case _Replayed():
                self._replayed(ctx, state, message)
            case _Resend(trigger):
                ctx.tell(self._adserver, self._settings(state))
                ctx.tell(self._auctioneer, self._restore(ctx, state, trigger))
            case GetCoverage():
                ctx.reply(self._coverage(state, ctx.wall_ms()))
            case m.ActivateSlots():
                self._activate(ctx, state, message)
            case m.AuctionReport(_, slots):
                self._reports.update({slot: (offers, rejected, late) for slot, offers, rejected, late in slots})
            case _:
                return False
        return True

    def _about_approval(self, ctx: Context, state: SiteState, message: Any) -> bool:
        match message:
            case m.QueuePending(creatives):
                self._queue(ctx, state, creatives)
            case m.ApproveCreative(creative):
                self._approve(ctx, state, creative)
            case _Teach(reevaluate, created, made):
                if created is not None:
                    ctx.answer(created, msgspec.structs.replace(self._info(ctx, state), changed=made))
                ctx.tell(self._adserver, self._settings(state))
                if reevaluate:
                    ctx.tell(self._auctioneer, m.Reevaluate((), "approval"))
            case _:
                return False
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
        same = (known.host, known.publisher, known.slots, known.floor_micros) == (
            message.host,
            message.publisher,
            message.slots,
            message.floor_micros,
        )
        if same:
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
            self._site, message.host, message.publisher, message.slots, message.floor_micros, outcome.secret
        )
        self._live(ctx)
        ctx.persist(self._state, then=_Teach(created=registered.reply_to))

    # ---- classification

    def _classify(self, ctx: Context, state: SiteState, message: m.ClassifyPage) -> None:
        if not same_host(host_of_url(message.url), state.host):
            ctx.reply(m.ClassifyAck(False, "host_refused"))
            return
        if message.url in self._in_flight:
            ctx.reply(m.ClassifyAck(False, "in_flight"))
            return
        self._in_flight.add(message.url)
        ctx.pipe(
            "llm",
            self._classifier.classify,
            message.text,
            message.hint,
            then=lambda outcome: _Classified(message.url, message.slots, outcome),
        )
        ctx.reply(m.ClassifyAck(True, "accepted"))

    def _classified(self, ctx: Context, state: SiteState, classified: _Classified) -> None:
        self._in_flight.discard(classified.url)
        outcome = classified.outcome
        if not isinstance(outcome, Classification):
            return  # the page stays as it was and the tag, still told that text is wanted, sends it again
        observed = _observe(state, classified.slots)
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
        )
        fact = PageClassified(self._site, entry.url, entry.categories, entry.provider)
        self._marked(ctx, state, entry, observed, "classification", (fact,))

    def _activate(self, ctx: Context, state: SiteState, message: m.ActivateSlots) -> None:
        page = state.pages.get(message.url)
        if page is None:
            return
        observed = _observe(state, message.slots)
        known = {slot.slot for slot in (*state.slots, *observed)}
        added = tuple(s.slot for s in message.slots if s.slot in known and s.slot not in page.slots)
        if added:
            entry = msgspec.structs.replace(page, slots=(*page.slots, *added)[: limits.slots_per_request_max])
            self._marked(ctx, state, entry, observed, "slots", ())

    def _marked(
        self,
        ctx: Context,
        state: SiteState,
        entry: m.PageEntry,
        observed: tuple[m.SlotSpec, ...],
        trigger: str,
        facts: tuple[PageClassified, ...],
    ) -> None:
        pages = keep_newest({**{url: page for url, page in state.pages.items() if url != entry.url}, entry.url: entry})
        self._state = msgspec.structs.replace(state, pages=pages, observed=observed)
        ctx.persist(self._state, facts=facts)
        if observed != state.observed:
            ctx.tell(self._adserver, self._settings(self._state))
        ctx.tell(self._adserver, m.PageMarked(entry))
        slots = self._state.all_slots
        ctx.tell(self._auctioneer, m.RestoreClassifications((entry,), slots, state.floor_micros, trigger, True))

    # ---- replay

    def _restore(
        self, ctx: Context, state: SiteState, trigger: str, *, force: bool = False
    ) -> m.RestoreClassifications:
        oldest = ctx.wall_ms() - FRESHNESS_WINDOW_MS
        fresh = tuple(page for page in state.pages.values() if page.classified_at_ms > oldest)
        return m.RestoreClassifications(fresh, state.all_slots, state.floor_micros, trigger, force, True)

    def _replay(self, ctx: Context, state: SiteState) -> None:
        reply_to = ctx.reply_later()
        ctx.tell(self._adserver, self._settings(state))
        ctx.ask(
            self._auctioneer,
            self._restore(ctx, state, "replay", force=True),
            REGISTER_TIMEOUT_MS,
            lambda outcome: _Replayed(reply_to, outcome),
        )

    def _replayed(self, ctx: Context, state: SiteState, replayed: _Replayed) -> None:
        outcome = replayed.outcome
        if isinstance(outcome, m.Restored):
            report = ReplayReport(len(state.pages), outcome.replayed, len(state.pages) - outcome.replayed, 0)
        else:
            report = ReplayReport(len(state.pages), 0, 0, len(state.pages))
        ctx.answer(replayed.reply_to, report)

    # ---- approval

    def _queue(self, ctx: Context, state: SiteState, creatives: tuple[m.PendingCreative, ...]) -> None:
        pending = dict(state.pending)
        for creative in creatives:
            if creative.creative in state.approved:
                continue
            known = pending.get(creative.creative)
            if known is not None:
                slots = tuple(sorted({*known.slots, *creative.slots}))
                creative = msgspec.structs.replace(known, slots=slots[: limits.pending_slots_max])
            elif len(pending) >= limits.pending_creatives_max:
                continue
            pending[creative.creative] = creative
        if pending != state.pending:
            self._state = msgspec.structs.replace(state, pending=pending)
            ctx.persist(self._state)

    def _approve(self, ctx: Context, state: SiteState, creative: str) -> None:
        waiting = state.pending.get(creative)
        if creative in state.approved and waiting is None:
            ctx.reply_durable(m.Accepted(changed=False))
            return
        if len(state.approved) >= limits.approved_creatives_max:
            ctx.reject(f"the site has approved {limits.approved_creatives_max} creatives, which is the most")
            return
        self._state = msgspec.structs.replace(
            state,
            approved={**state.approved, creative: ctx.wall_ms()},
            pending={name: item for name, item in state.pending.items() if name != creative},
        )
        fact = CreativeApproved(self._site, creative, waiting.campaign if waiting else "")
        ctx.persist(self._state, facts=(fact,), reply=m.Accepted(), then=_Teach(reevaluate=True))

    # ---- read models

    def coverage(self, now_ms: int) -> SiteCoverage | None:
        """The site's share of slots that have a pool; None before its state was loaded. Reads the local replica."""
        return None if self._state is None else self._coverage(self._state, now_ms)

    def _coverage(self, state: SiteState, now_ms: int) -> SiteCoverage:
        oldest = now_ms - FRESHNESS_WINDOW_MS
        fresh = [page for page in state.pages.values() if page.classified_at_ms > oldest]
        declared = frozenset(slot.slot for slot in state.slots)
        return site_coverage(self._site, declared, fresh, state.pending.values(), self._reports, self._index)

    def _settings(self, state: SiteState) -> m.SiteSettings:
        return m.SiteSettings(
            state.site,
            state.host,
            state.publisher,
            state.all_slots,
            state.floor_micros,
            BID_WEIGHT,
            state.suspended,
            tuple(state.approved),
            state.secret,
            FRESHNESS_WINDOW_MS,
            tuple(state.pages.values()),
        )

    def _info(self, ctx: Context, state: SiteState) -> m.SiteInfo:
        oldest = ctx.wall_ms() - FRESHNESS_WINDOW_MS
        return m.SiteInfo(
            state.site,
            state.host,
            state.publisher,
            state.slots,
            state.floor_micros,
            state.suspended,
            sum(page.classified_at_ms > oldest for page in state.pages.values()),
            tuple(sorted(state.approved)),
            tuple(sorted(state.pending)),
        )


def _observe(state: SiteState, reported: tuple[m.SlotSpec, ...]) -> tuple[m.SlotSpec, ...]:
    """The observed slots with those of `reported` that the site does not know yet, as far as there is room."""
    names = {slot.slot for slot in state.all_slots}
    room = max(len(state.observed), limits.site_slots_max - len(state.slots))
    return (*state.observed, *(slot for slot in reported if slot.slot not in names))[:room]


def keep_newest(pages: dict[str, m.PageEntry]) -> dict[str, m.PageEntry]:
    """The pages, the oldest dropped first, that fit into one record."""
    size = sum(map(_bytes, pages.values()))
    kept = dict(pages)
    for url, page in pages.items():
        if len(kept) <= limits.site_pages_max and size <= limits.site_page_bytes_max:
            break
        del kept[url]
        size -= _bytes(page)
    return kept


def _bytes(page: m.PageEntry) -> int:
    return 2 * len(page.url.encode()) + sum(map(len, page.slots)) + 24 * len(page.categories) + 160
