"""A site's ad server: fills the ServeIndex from auctions, serves from this node's replica, counts beacons.

Nothing in it is durable: the site teaches it when it starts. Approval is a gate twice (I8): only approved candidates
are put into a view, and a view's candidate is served only while its creative is approved.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec
import numpy as np

from node.actors.actor import Context, Failed, ReplyTo
from node.ads import explain
from node.ads import messages as m
from node.ads.batch import choose_again, choose_all, slot_order
from node.ads.creative_stats import RollingStats
from node.ads.decide import SlotDecision, why_empty
from node.ads.edits import SiteEdit
from node.ads.entities.beacon_counter import BeaconCounter
from node.ads.entities.beacon_guard import BeaconGuard
from node.ads.entities.decision_ring import Decided, DecisionRing, explained
from node.ads.entities.payers import SilentPayers, objection, payers, refused_with, verdict
from node.ads.entities.pools import Merged, Pools
from node.ads.entities.serve_tally import ServeTally
from node.ads.entities.serving_batch import Batch, ReserveAnswer
from node.ads.entities.site_pacing import OPEN, SitePacing
from node.ads.entities.site_state import OWNERS
from node.ads.entities.site_terms import forbidden, refusal, resized
from node.ads.entities.slot_decider import SlotDecider
from node.ads.entities.winners import slot_outcome
from node.ads.explain import ServeDecision
from node.ads.freshness import is_fresh, reclassify_in_ms
from node.ads.money import impression_cost_micros
from node.ads.page_winners import PageWinners
from node.ads.pages_compared import lacking
from node.ads.pins import stale
from node.ads.serve_stats import Filled
from node.ads.serveindex import ServeIndex
from node.ads.view import TurnedAway
from node.core import limits
from node.core.errors import BadInput
from node.core.hashing import spread_ms
from node.core.ids import EntityRef

SITE_TIMEOUT_MS = 2_000
RETRY_MS = 500
SWEEP_MS = 15 * 60_000  # three times what the site waits before it sends its pages again
# Short, so that a request still has time for other candidates while a payer's node is dead.
RESERVE_TIMEOUT_MS = 400
ACTIVATE_PERIOD_MS = 1_000
READERS_SPREAD_MS = 30 * 60_000  # all sites' days end at once


class _Learned(msgspec.Struct, frozen=True):
    outcome: Any


class _Learn(msgspec.Struct, frozen=True):
    pass


class _Sweep(msgspec.Struct, frozen=True):
    """All pages have been auctioned since this ad server started, unless there is more to do than can be done."""


class _EditAgain(msgspec.Struct, frozen=True):
    """Keys may have come to light that edits have missed."""


# What its site and its auctioneer tell it, a replay too: no use of it, so that teaching wakes nobody for long.
TAUGHT = frozenset({m.SiteSettings, m.CandidatesCollected, Merged, m.PageMarked, m.EditSite, _Learned, _Learn})


class AdServer:
    """In memory only; what it needs it learns from its site at its start."""

    def __init__(self, site: str, index: ServeIndex) -> None:
        self._site = site
        self._index = index
        self._settings: m.SiteSettings | None = None
        self._pages: dict[str, m.PageEntry] = {}
        self._stats = RollingStats()
        self._decider = SlotDecider(site, index, self._stats)
        self._guard = BeaconGuard()
        self._beacons = BeaconCounter(site, self._stats, self._guard)
        self._pools = Pools(site, index)
        self._unfinished: dict[SiteEdit, None] = {}
        self._away: dict[str, tuple[TurnedAway, ...]] = {}
        self._missed_auctions = False
        self._collected = False
        self._activate_after_ms = 0
        self._silent = SilentPayers()
        self._winners = PageWinners()
        self._held: deque[tuple[ReplyTo, m.BatchSelect | m.Track | m.Fold]] = deque(maxlen=limits.requests_held_max)
        self._batches: dict[int, Batch] = {}
        self._batch_count = 0
        self._decisions = DecisionRing()
        self._pacing = SitePacing(index.spent.find)
        self._tally = ServeTally()
        self._pace_draws: np.random.Generator = np.random.default_rng(0)
        self.beacons = self._guard.counts
        self.served_count = 0
        self.requests_count = 0

    def start(self, ctx: Context, state: None) -> None:
        self._decider.start(ctx.rng.getrandbits(64))
        self._pace_draws = np.random.default_rng(ctx.rng.getrandbits(64))
        self._learn(ctx)

    def receive(self, ctx: Context, message: Any) -> None:
        match message:
            case m.BatchSelect():
                self._select(ctx, ctx.reply_later(), message)
            case ReserveAnswer():
                self._reserve_answered(ctx, message)
            case m.CandidatesCollected():
                self._collect(ctx, message)
            case m.EditSite(edits):
                self._edit_wanted(ctx, edits)
            case _Sweep() | _EditAgain() | m.ReadersCame():
                self._in_time(ctx, message)
            case m.SiteSettings():
                self._learned(ctx, message)
            case _Learned(outcome):
                self._site_answered(ctx, outcome)
            case _Learn():
                self._learn(ctx)
            case m.PageMarked(entry):
                self._pages[entry.url] = entry
            case m.Track() | m.Fold():
                self._track(ctx, ctx.reply_later(), message)
            case m.Probe() | m.GetDecision() | m.GetServeStats() | m.GetTallies() | m.FindPages():
                self._explain(ctx, message)
            case _ if self._beacons.receive(ctx, message) or self._pools.receive(message):
                pass
            case _:
                ctx.reject(f"an ad server does not understand {type(message).__name__}")

    def _in_time(self, ctx: Context, due: _Sweep | _EditAgain | m.ReadersCame) -> None:
        match due:
            case _Sweep():
                self._sweep(ctx)
            case _EditAgain():
                self._edit(ctx, tuple(self._unfinished))
            case m.ReadersCame():
                self._tell_of_readers(ctx, due)

    # ---- learning from the site

    def _edit_wanted(self, ctx: Context, edits: tuple[SiteEdit, ...]) -> None:
        try:
            edited = self._edit(ctx, edits)
        except BadInput as error:
            ctx.reject(str(error))
        else:
            ctx.reply(edited)
            withdrawn = tuple(each for each in edits if each.rule in OWNERS)
            if withdrawn:
                ctx.tell(EntityRef("site", self._site), m.LeaveQueue(withdrawn))

    def _learn(self, ctx: Context) -> None:
        ctx.ask(EntityRef("site", self._site), m.AdServerStarted(), SITE_TIMEOUT_MS, _Learned)

    def _site_answered(self, ctx: Context, outcome: Any) -> None:
        if isinstance(outcome, m.SiteSettings):
            self._learned(ctx, outcome)
        else:
            self._refuse_held(ctx, outcome)

    def _learned(self, ctx: Context, settings: m.SiteSettings) -> None:
        before = self._settings
        self._settings = settings
        self._decider.learned(settings)
        if before is None:
            ctx.after("sweep", SWEEP_MS, _Sweep())
            self._pacing.remember(settings.traffic)
        else:
            self._pools.clear(resized(before, settings))
        if before is None or forbidden(before) != forbidden(settings):
            self._edit(ctx, forbidden(settings))
        self._pages = {page.url: page for page in settings.pages}
        self._away = {url: away for url, away in self._away.items() if url in self._pages}
        if self._missed_auctions:
            self._missed_auctions = False
            ctx.tell(EntityRef("auctioneer", self._site), m.Reevaluate((), "adserver-restart"))
        while self._held:
            reply_to, request = self._held.popleft()
            if isinstance(request, m.BatchSelect):
                self._select(ctx, reply_to, request)
            else:
                self._track(ctx, reply_to, request)

    def _refuse_held(self, ctx: Context, outcome: Any) -> None:
        unknown = isinstance(outcome, Failed) and "there is no site" in outcome.detail
        while unknown and self._held:
            reply_to, request = self._held.popleft()
            select = isinstance(request, m.BatchSelect)
            ctx.answer(reply_to, m.BatchSelected("unknown_site") if select else m.Tracked("unknown_site"))
        if unknown:
            ctx.passivate()
        else:
            ctx.after("learn", RETRY_MS, _Learn())

    def _hold(self, ctx: Context, reply_to: ReplyTo, request: m.BatchSelect | m.Track | m.Fold) -> None:
        if len(self._held) == self._held.maxlen:
            ctx.answer_reject(reply_to, "starting: too many requests wait for the site")
        else:
            self._held.append((reply_to, request))

    # ---- auctions

    def _collect(self, ctx: Context, collected: m.CandidatesCollected) -> None:
        if self._settings is None:
            # A view must never be built without the approvals: once they are known, the auctioneer is asked again.
            self._missed_auctions = True
            return
        if self._settings.suspended:
            return
        self._collected = True
        if collected.turned_away:
            self._away[collected.url] = collected.turned_away
        else:
            self._away.pop(collected.url, None)
        waiting = self._pools.collect(ctx, collected, self._decider.approved)
        if waiting:
            ctx.tell(EntityRef("site", self._site), m.QueuePending(waiting))

    def _sweep(self, ctx: Context) -> None:
        """A former owner's views of pages that are not auctioned any more would be served until they expire. Without an
        auction since the start there is nothing that they could be compared with."""
        if self._collected and self._settings is not None and not self._settings.suspended:
            self._pools.sweep()
        else:
            ctx.after("sweep", SWEEP_MS, _Sweep())

    # ---- edits

    def _edit(self, ctx: Context, edits: tuple[SiteEdit, ...]) -> m.SiteEdited:
        """Needs nothing of the site: what is to go can go before the ad server has learned anything."""
        slots = [slot.slot for slot in self._settings.slots] if self._settings else []
        edited = self._pools.edit(edits, slots, ctx.wall_ms())
        if edited.complete:
            self._unfinished.clear()
        else:
            self._unfinished.update(dict.fromkeys(edits))
            ctx.after("edits", RETRY_MS, _EditAgain())
        return edited

    # ---- serving

    def _select(self, ctx: Context, reply_to: ReplyTo, request: m.BatchSelect) -> None:
        settings = self._settings
        if settings is None:
            self._hold(ctx, reply_to, request)
            return
        self.requests_count += 1
        now_ms, mono_ms = ctx.moment()
        if refused := refusal(settings, request.host):
            self._tally.refused(refused, len(request.slots), now_ms)
            ctx.answer(reply_to, m.BatchSelected(refused))
            return
        page = self._fresh_page(settings, request.url, now_ms)
        if page is None and request.url not in self._pages:
            self._tally.unknown(request.url, now_ms)
        self._guard.viewed()
        learned = self._pacing.request(len(request.slots), now_ms)
        if learned is not None:
            ctx.tell(EntityRef("site", self._site), m.TrafficLearned(learned, self._guard.take()))
        if (ended := self._pacing.ended_day()) is not None:
            ctx.after("readers", spread_ms(self._site, READERS_SPREAD_MS), m.ReadersCame(*ended))
        gate = OPEN
        if settings.paced:
            campaigns = self._pools.campaigns(slot.slot for slot in request.slots)
            gate = self._pacing.gate(self._pace_draws, now_ms, campaigns)
        decisions = self._decider.decide(settings, page, request.slots, now_ms, gate, request.elsewhere)
        back = dict.fromkeys(self._winners.recent(request.url, mono_ms), explain.RECENT_ON_PAGE)
        back |= self._silent.asked_last(decisions, mono_ms)
        choose_all(decisions, slot_order(request.slots, self._decider.draws), back)
        if page is not None:
            self._activate_slots(ctx, page, request.slots, mono_ms)
        self._batch_count += 1
        kept = [*[m.Pin(slot.slot, slot.pin) for slot in request.slots if slot.pin], *request.elsewhere]
        gone = stale(kept, self._decider.approved.__contains__, {slot.slot for slot in settings.slots}) if kept else ()
        batch = self._batches[self._batch_count] = Batch(reply_to, request.url, decisions, {}, set(), back, gone)
        for number, decision in enumerate(decisions):
            if decision.chosen is not None:
                self._reserve(ctx, self._batch_count, batch, number)
        self._finish_if_done(ctx, self._batch_count, batch)

    def _tell_of_readers(self, ctx: Context, came: m.ReadersCame) -> None:
        """Also whoever has been out of the pools for want of money: its evening had readers all the same."""
        settings = self._settings
        pooled = self._pools.campaigns(slot.slot for slot in settings.slots) if settings is not None else ()
        for name in dict.fromkeys((*pooled, *self._pacing.heard_of())):
            ctx.tell(EntityRef("campaign", name), came)

    def _fresh_page(self, settings: m.SiteSettings, url: str, now_ms: int) -> m.PageEntry | None:
        page = self._pages.get(url)
        return page if page is not None and is_fresh(page.classified_at_ms, now_ms, settings.window_ms) else None

    def _probe(self, ctx: Context, probe: m.Probe) -> None:
        """What the next request for this slot would draw, from a copy of the draws: nothing is counted, kept or
        reserved, and the next request draws it all the same."""
        settings = self._settings
        if settings is None:
            ctx.reject("starting: the ad server does not know its site yet")
            return
        if refused := refusal(settings, probe.host):
            ctx.reply(m.Probed(refused))
            return
        (now_ms, mono_ms), decider = ctx.moment(), self._decider.fork()
        page = self._fresh_page(settings, probe.url, now_ms)
        (decision,) = decisions = decider.decide(settings, page, (probe.slot,), now_ms)
        decision.refused |= probe.refused
        back = dict.fromkeys(self._winners.recent(probe.url, mono_ms), explain.RECENT_ON_PAGE)
        back |= self._silent.asked_last(decisions, mono_ms)
        choose_all(decisions, slot_order((probe.slot,), decider.draws), back)
        payer = decision.chosen.candidate.advertiser_id if decision.chosen else ""
        ctx.reply(m.Probed("", explained(self._record(decision, probe.url, now_ms)), payer))

    def _track(self, ctx: Context, reply_to: ReplyTo, track: m.Track | m.Fold) -> None:
        if self._settings is None:
            self._hold(ctx, reply_to, track)
        elif isinstance(track, m.Fold):
            self._beacons.fold(ctx, reply_to, track, self._settings)
        else:
            self._beacons.track(ctx, reply_to, track, self._settings)

    def _activate_slots(self, ctx: Context, page: m.PageEntry, slots: tuple[m.SlotRequest, ...], mono_ms: int) -> None:
        """A slot that was added or renamed after the page's text was judged would never be auctioned."""
        if all(slot.slot in page.slots for slot in slots) or mono_ms < self._activate_after_ms:
            return
        self._activate_after_ms = mono_ms + ACTIVATE_PERIOD_MS
        new = tuple(m.SlotSpec(s.slot, s.width, s.height) for s in slots if s.slot not in page.slots)
        ctx.tell(EntityRef("site", self._site), m.ActivateSlots(page.url, new))

    def _reserve(self, ctx: Context, batch_number: int, batch: Batch, slot: int) -> None:
        decision = batch.decisions[slot]
        choice = decision.chosen
        if choice is None:
            return
        decision.request_id = f"{ctx.rng.getrandbits(128):032x}"
        if choice.pinned:
            return  # nobody is asked for money
        batch.votes[slot] = {}
        batch.waiting.add(slot)
        request_id = decision.request_id
        reserve = m.Reserve(
            request_id,
            impression_cost_micros(choice.price_micros),
            ctx.wall_ms(),
            choice.candidate.creative_id,
            paced=self._settings is not None and self._settings.paced,
        )
        for payer, ref in payers(choice.candidate.campaign_id, choice.candidate.advertiser_id):
            ctx.ask(
                ref,
                reserve,
                RESERVE_TIMEOUT_MS,
                lambda outcome, payer=payer: ReserveAnswer(batch_number, slot, request_id, payer, outcome),  # type: ignore[misc]
            )

    def _reserve_answered(self, ctx: Context, answer: ReserveAnswer) -> None:
        batch = self._batches.get(answer.batch)
        if batch is None or batch.decisions[answer.slot].request_id != answer.request_id:
            return
        votes = batch.votes[answer.slot]
        votes[answer.payer] = objection(answer.outcome)
        if isinstance(answer.outcome, m.Reserved) and answer.outcome.money is not None:
            self._pacing.heard(answer.outcome.money, ctx.wall_ms())
        decision = batch.decisions[answer.slot]
        choice = decision.chosen
        if choice is None or len(votes) < 2:
            return
        if explain.PACED in votes.values() or not any(votes.values()):
            due = explain.PACED not in votes.values()
            self._pacing.answered(choice.candidate.campaign_id, ctx.wall_ms(), due=due)
        if explain.BUDGET in votes.values():
            # Whoever of the two refused, and in whichever order they answered: it can't pay until it has paid again.
            self._pacing.refused(choice.candidate.campaign_id)
        batch.waiting.discard(answer.slot)
        if any(votes.values()):
            for _, ref in payers(choice.candidate.campaign_id, choice.candidate.advertiser_id):
                ctx.tell(ref, m.Release(answer.request_id))
            if explain.NO_ANSWER in votes.values():
                self._silent.said_nothing(choice.candidate.campaign_id, ctx.moment().mono_ms)
            self._refused(ctx, answer.batch, batch, answer.slot, verdict(votes))
        self._finish_if_done(ctx, answer.batch, batch)

    def _refused(self, ctx: Context, batch_number: int, batch: Batch, slot: int, reason: str) -> None:
        decision = batch.decisions[slot]
        if decision.chosen is None:
            return
        refused = decision.chosen.candidate
        for other in batch.decisions:
            other.refused.update(refused_with(refused, reason, other.pool))
        choose_again(decision, batch.decisions, batch.back)
        decision.request_id = ""
        if decision.chosen is not None:
            self._reserve(ctx, batch_number, batch, slot)

    def _finish_if_done(self, ctx: Context, number: int, batch: Batch) -> None:
        settings = self._settings
        if batch.waiting or settings is None:
            return
        del self._batches[number]
        now_ms, mono_ms = ctx.moment()
        chosen = [decision.chosen for decision in batch.decisions]
        won = [choice.candidate.campaign_id for choice in chosen if choice is not None]
        self._winners.won(batch.url, won, mono_ms)
        page = self._pages.get(batch.url)
        left_ms = reclassify_in_ms(page.classified_at_ms if page else None, now_ms, settings.window_ms)
        self._pacing.decided(
            [Filled(choice.price_micros, choice.pinned) if choice else None for choice in chosen],
            held_back=not won and any(why_empty(decision) == explain.PACED for decision in batch.decisions),
            penniless=not won and any(explain.BUDGET in decision.refused.values() for decision in batch.decisions),
            too_old=page is not None and left_ms <= 0,
            now_ms=now_ms,
        )
        self._tally.decided(batch.decisions, now_ms)
        results: list[m.SlotOutcome] = []
        for decision in batch.decisions:
            self._decisions.keep(self._record(decision, batch.url, now_ms))
            results.append(slot_outcome(self._site, batch.url, decision, settings.secret, now_ms))
            self.served_count += decision.chosen is not None
            if decision.chosen is not None:
                pinned = decision.chosen.pinned
                learns = not pinned and decision.request.slot not in settings.slot_floors
                category = decision.chosen.candidate.category
                self._beacons.expect(decision.request_id, category, learns=learns, pinned=pinned)
        ctx.answer(batch.reply_to, m.BatchSelected("served", tuple(results), max(left_ms, 0), batch.stale_pins))

    def _record(self, decision: SlotDecision, url: str, now_ms: int) -> Decided:
        return Decided(self._site, url, decision, self._pages.get(url), self._away.get(url, ()), now_ms)

    @property
    def remembered(self) -> tuple[ServeDecision, ...]:
        """The decisions that it can still explain, the oldest first."""
        return self._decisions.all()

    def _explain(
        self, ctx: Context, query: m.GetDecision | m.Probe | m.GetServeStats | m.GetTallies | m.FindPages
    ) -> None:
        match query:
            case m.Probe():
                self._probe(ctx, query)
            case m.GetServeStats():
                ctx.reply(self._pacing.stats)
            case m.GetTallies():
                ctx.reply(self._tally.told(self._pacing.stats, self._pages, ctx.wall_ms()))
            case m.FindPages() if self._settings is None:
                ctx.reject("starting: the ad server does not know its site yet")
            case m.FindPages(urls):
                now_ms = ctx.wall_ms()
                fresh = (url for url, page in self._pages.items() if is_fresh(page.classified_at_ms, now_ms))
                ctx.reply(lacking(urls, fresh))
            case m.GetDecision():
                decision = self._decisions.find(query)
                if decision is None:
                    ctx.reject("no such decision is remembered")
                else:
                    ctx.reply(decision)
