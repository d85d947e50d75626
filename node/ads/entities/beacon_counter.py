"""The ad server's part that counts beacons: asks the campaign, tells the advertiser, keeps the site's statistics."""

from __future__ import annotations

from typing import Any

import msgspec

from node.actors.actor import Context, ReplyTo
from node.ads import messages as m
from node.ads.creative_stats import RollingStats
from node.ads.entities.beacon_guard import BeaconGuard
from node.ads.entities.beacons import JudgedBeacon, judge, request_of
from node.ads.entities.ranker import KIND as RANKER
from node.ads.floors.site_floors import SITE_WIDE
from node.ads.fold_token import FoldClaim, FoldVerdict, claim_of
from node.ads.ranking import ranker_id
from node.core import limits
from node.core.ids import EntityRef

CONFIRM_TIMEOUT_MS = 2_000
SETTLE_RETRY_MS = 1_000
SETTLE_ATTEMPTS_MAX = 6


class _Served(msgspec.Struct, frozen=True):
    """What is remembered of an ad that was served: its impression and its click come later."""

    category: str
    learns: bool
    pinned: bool = False


class _Confirmed(msgspec.Struct, frozen=True):
    """The campaign's answer, on which the beacon's reply depends. `ranks`: its category's ranker learns from it, which
    a site that is being deleted has no more."""

    beacon: JudgedBeacon
    reply_to: ReplyTo
    outcome: Any
    settle: _Settle | None
    ranks: bool


class _Folded(msgspec.Struct, frozen=True):
    """The campaign's answer to a fold."""

    claim: FoldClaim
    reply_to: ReplyTo
    outcome: Any


class _Settle(msgspec.Struct, frozen=True):
    """Tell an advertiser of an impression; no reply waits for it, but its spend does: again until it is heard."""

    advertiser: EntityRef
    confirm: m.Confirm
    attempt: int = 0


class _Settled(msgspec.Struct, frozen=True):
    settle: _Settle
    outcome: Any


class BeaconCounter:
    """Lives in its ad server's cell; `receive` answers whether a message was its own."""

    def __init__(self, site: str, stats: RollingStats, guard: BeaconGuard) -> None:
        self._site = site
        self._stats = stats
        self._guard = guard
        # In two halves, of which the older is forgotten as a whole: taken out one by one, what has left the front of a
        # dictionary would have to be gone by at each page view.
        self._served: dict[str, _Served] = {}
        self._served_before: dict[str, _Served] = {}

    def expect(self, request_id: str, category: str, *, learns: bool, pinned: bool = False) -> None:
        """An ad was served: its impression will be credited to the category that it won under, and floors learn from
        it: not where the slot's floor is the publisher's own. One that a reader had pinned teaches nothing at all."""
        if len(self._served) >= limits.impressions_expected_max // 2:
            self._served, self._served_before = {}, self._served
        self._served[request_id] = _Served(category, learns, pinned)

    def _expected(self, request_id: str) -> _Served | None:
        return self._served.get(request_id) or self._served_before.get(request_id)

    def track(self, ctx: Context, reply_to: ReplyTo, track: m.Track, settings: m.SiteSettings) -> None:
        """Judge a beacon and have it counted, once."""
        verdict, beacon = judge(self._site, track, settings.secret, ctx.wall_ms())
        if beacon is None:
            self._guard.refused(verdict)
            ctx.answer(reply_to, m.Tracked(verdict))
            return
        question: m.Confirm | m.RecordClick | m.RecordCta
        settle: _Settle | None = None
        place, minute = self._place(track.request_id, settings), int(track.bucket)
        if track.event == "imp":
            question = m.Confirm(
                track.request_id, self._site, track.creative, beacon.amount_micros, place, track.campaign, minute
            )
            settle = _Settle(EntityRef("advertiser", track.advertiser), question)
        elif track.event == "click":
            question = m.RecordClick(track.request_id, self._site, track.creative, place, minute)
        else:
            question = m.RecordCta(track.request_id, self._site, track.creative, place, minute)
        campaign, ranks = EntityRef("campaign", track.campaign), not settings.suspended
        ctx.ask(
            campaign,
            question,
            CONFIRM_TIMEOUT_MS,
            lambda outcome: _Confirmed(beacon, reply_to, outcome, settle, ranks),
        )

    def fold(self, ctx: Context, reply_to: ReplyTo, fold: m.Fold, settings: m.SiteSettings) -> None:
        """Judge a fold and have it counted, once."""
        now = ctx.moment()
        verdict = self._guard.judged(fold, settings.secret, self._site, now)
        claim = claim_of(fold.token)
        if verdict != FoldVerdict.VALID.value:
            self._guard.refused(verdict)
            ctx.answer(reply_to, m.Tracked(verdict))
        elif fold.event != "fold" or claim is None:
            self._guard.folded(fold.event, "", now.mono_ms)
            ctx.answer(reply_to, m.Tracked("counted"))
        else:
            request_id = request_of(claim)
            place = self._place(request_id, settings)
            question = m.RecordFold(request_id, self._site, claim.creative, place, int(claim.bucket))
            campaign = EntityRef("campaign", claim.campaign)
            ctx.ask(campaign, question, CONFIRM_TIMEOUT_MS, lambda outcome: _Folded(claim, reply_to, outcome))

    def receive(self, ctx: Context, message: Any) -> bool:
        match message:
            case _Confirmed():
                self._confirmed(ctx, message)
            case _Folded():
                self._folded(ctx, message)
            case _Settle():
                self._settle(ctx, message)
            case _Settled(settle, outcome):
                if not isinstance(outcome, m.Confirmed) and settle.attempt < SETTLE_ATTEMPTS_MAX:
                    again = msgspec.structs.replace(settle, attempt=settle.attempt + 1)
                    ctx.after(f"settle-{settle.confirm.request_id}", SETTLE_RETRY_MS * 2**settle.attempt, again)
            case _:
                return False
        return True

    def _place(self, request_id: str, settings: m.SiteSettings) -> m.Inventory:
        served = self._expected(request_id)
        category = served.category if served else ""
        return m.Inventory(settings.publisher, category, settings.timezone, settings.margin_ppm)

    def _settle(self, ctx: Context, settle: _Settle) -> None:
        ctx.ask(settle.advertiser, settle.confirm, CONFIRM_TIMEOUT_MS, lambda outcome: _Settled(settle, outcome))

    def _confirmed(self, ctx: Context, confirmed: _Confirmed) -> None:
        outcome, beacon = confirmed.outcome, confirmed.beacon
        if not isinstance(outcome, m.Confirmed):
            self._guard.counts["unanswered"] += 1
            ctx.answer_reject(confirmed.reply_to, "try again: the campaign did not answer")
            return
        if not outcome.counted:
            self._guard.refused("repeated")
        else:
            if confirmed.settle is not None:
                # Not before: an impression that its campaign lost would be charged to the advertiser alone.
                numbered = msgspec.structs.replace(confirmed.settle.confirm, number=outcome.number)
                self._settle(ctx, msgspec.structs.replace(confirmed.settle, confirm=numbered))
            self._guard.heard(beacon.event, beacon.request_id, ctx.moment().mono_ms)
            self._learn(ctx, beacon, ranks=confirmed.ranks)
        ctx.answer(confirmed.reply_to, m.Tracked("counted" if outcome.counted else "repeated"))

    def _folded(self, ctx: Context, folded: _Folded) -> None:
        claim, now = folded.claim, ctx.moment()
        if not isinstance(folded.outcome, m.Confirmed):
            self._guard.counts["unanswered"] += 1
            ctx.answer_reject(folded.reply_to, "try again: the campaign did not answer")
        elif folded.outcome.counted:
            self._guard.folded("fold", claim.nonce, now.mono_ms)
            self._stats.record(claim.creative, now.wall_ms, folds=1)
            ctx.answer(folded.reply_to, m.Tracked("counted"))
        else:
            self._guard.refused("repeated")
            ctx.answer(folded.reply_to, m.Tracked("repeated"))

    def _learn(self, ctx: Context, beacon: JudgedBeacon, *, ranks: bool) -> None:
        served = self._expected(beacon.request_id) or _Served(SITE_WIDE, learns=True)
        if served.pinned or beacon.event == "cta":
            return
        seen = {"impressions": 1} if beacon.event == "imp" else {"clicks": 1}
        self._stats.record(beacon.creative, ctx.wall_ms(), **seen)
        if served.category and ranks:
            ranker = EntityRef(RANKER, ranker_id(served.category, self._site))
            ctx.tell(ranker, m.RankSeen(beacon.amount_micros) if beacon.event == "imp" else m.RankClicked())
        if beacon.event == "imp" and served.learns:
            ctx.tell(EntityRef("site", self._site), m.ImpressionServed(served.category, beacon.amount_micros))
