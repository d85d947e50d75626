"""What an ad server thinks of the beacons that reach it: why some were refused, which look bought, how the day goes.

It judges beacons, never readers. A click that comes before its impression, or faster than a hand, is counted all the
same, for beacons are overtaken on their way; that there are many of them is a question for an operator
(`node.ads.fraud`). A fold that was counted is known by its nonce for as long as its token lives, so that its campaign
is not asked again and again.
"""

from __future__ import annotations

from collections import Counter

from node.ads import messages as m
from node.ads.fold_token import FoldVerdict, claim_of, verify_fold
from node.ads.fraud import SiteDay
from node.ads.guards.engagement import EngagementGuard, Judgement
from node.ads.guards.replay import ReplayGuard
from node.core.clock import Moment
from node.core.limits import fold_skew_buckets_max, folds_expected

FOLD_EVENTS = ("fold", "unfold")
# Sent again by a browser that was offline, or asked twice: nobody's malice.
HARMLESS = frozenset({"expired", "stale", "repeated"})


class BeaconGuard:
    """Lives in its ad server's cell, in memory only. `counts` are since its start: `counted_imp`, `refused_expired`,
    `suspect_chain` and so on."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._engagement = EngagementGuard()
        self._folds: ReplayGuard | None = None
        self._day: Counter[str] = Counter()

    def refused(self, verdict: str) -> None:
        """A beacon that changes nothing: forged, too old, counted before."""
        self.counts[f"refused_{verdict}"] += 1
        self._day["total"] += 1
        self._day["suspect"] += verdict not in HARMLESS

    def heard(self, event: str, request_id: str, mono_ms: int) -> None:
        """A beacon whose signature holds and that has not been counted before."""
        guard = self._engagement
        judge, counted = {
            "imp": (guard.impression, "impressions"),
            "click": (guard.click, "clicks"),
            "cta": (guard.call_to_action, "ctas"),
        }[event]
        judgement = judge(request_id, mono_ms)
        self.counts[f"counted_{event}"] += 1
        self._day["total"] += 1
        self._day[counted] += 1
        if judgement is not Judgement.OK:
            self.counts[f"suspect_{judgement.value}"] += 1
            self._day["suspect"] += 1

    def judged(self, fold: m.Fold, secret: bytes, site: str, now: Moment) -> str:
        """What a fold is worth: valid, repeated, or why it proves nothing. To smooth a corner proves nothing, and need
        not: it names nobody and teaches nothing."""
        if fold.event not in FOLD_EVENTS:
            return "unknown_event"
        return self._judged(fold, secret, site, now) if fold.event == "fold" else FoldVerdict.VALID.value

    def folded(self, event: str, nonce: str, mono_ms: int) -> None:
        """One was counted."""
        self.counts[f"counted_{event}"] += 1
        if nonce:
            self._used().first_use(nonce, mono_ms)

    def viewed(self) -> None:
        """A page view was decided."""
        self._day["page_views"] += 1

    def take(self) -> SiteDay:
        """What came since this was asked last."""
        day, self._day = self._day, Counter()
        return SiteDay(day["impressions"], day["clicks"], day["page_views"], day["suspect"], day["total"])

    def _judged(self, fold: m.Fold, secret: bytes, site: str, now: Moment) -> str:
        judged = verify_fold(fold.token, secret, slot=fold.slot, creative=fold.creative, now_ms=now.wall_ms)
        claim = claim_of(fold.token)
        if judged is not FoldVerdict.VALID or claim is None:
            return judged.value
        if claim.pub != site:
            return FoldVerdict.BAD_SIGNATURE.value
        return "repeated" if self._used().used(claim.nonce, now.mono_ms) else judged.value

    def _used(self) -> ReplayGuard:
        if self._folds is None:
            self._folds = ReplayGuard(validity_minutes=2 * fold_skew_buckets_max, expected=folds_expected)
        return self._folds
