"""What of a slot's decisions stands while its view, its page's categories and its site's terms do: who may be shown and
who is filtered out, above which floors, and the draws among those that are left.

A page view takes a round of the draws and puts its own circumstances on top: who is held back by pacing, what its
reader has pinned, whom its batch uses already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import msgspec

from node.ads import explain
from node.ads.ahead import Ahead
from node.ads.explain import CandidateOutcome
from node.ads.messages import SlotRequest
from node.ads.places import decayed, hops_within
from node.ads.pricing import passes_floor
from node.ads.selection import dedupe_by_creative, eligible_for_page, fits
from node.ads.serveindex import PoolVersion
from node.ads.targeting import page_objection
from node.ads.view import CandidateView, ServeView


class Rules(msgspec.Struct, frozen=True):
    """What holds for all slots of one batch. `left_of`: what is known to be left of a campaign's budget, None of most:
    one that would refuse its reservation for certain is not asked. `paced_out`: campaigns that this page view goes by
    because they are ahead of their day; `served`: whether the whole page view is, pins aside; `slots`: those that the
    site has. Of the page: `places` it is about with what they lie in, and whether it is `matched`: what is known to
    have no category is for fillers, of what is not known nothing is. `excluded`: campaigns of which the reader keeps an
    ad elsewhere."""

    approved: Callable[[str], bool]
    blocked: Callable[[CandidateView], bool]
    left_of: Callable[[str], int | None]
    bid_weight: float
    paced_out: Collection[str] = ()
    served: bool = True
    slots: Collection[str] | None = None
    places: Mapping[str, int] = msgspec.field(default_factory=dict)
    matched: bool = True
    excluded: Collection[str] = ()


class SlotPlan(msgspec.Struct, frozen=True):
    """See the module. `filtered`: those that take no part, and why; the first `forbidden` of them may not be shown here
    at all, the others are below a floor. `allowed`: all that may be shown, as they stand in the view; `below` of them:
    whether each is below its floor. `pool`, with its `floors`: those that are drawn from. `version`: which write `view`
    is."""

    view: ServeView | None
    version: PoolVersion | None
    filtered: list[CandidateOutcome]
    forbidden: int
    allowed: list[CandidateView]
    below: list[bool]
    pool: list[CandidateView]
    floors: list[int]
    floor_of: Callable[[str], int]
    ahead: Ahead

    def held_back(self, rules: Rules) -> list[CandidateOutcome]:
        """`filtered` of a page view that some sit out, or all."""
        rows = self.filtered[: self.forbidden]
        for candidate, below in zip(self.allowed, self.below, strict=True):
            if not rules.served or candidate.campaign_id in rules.paced_out:
                rows.append(_filtered(candidate, explain.PACED))
            elif below:
                rows.append(_filtered(candidate, explain.BELOW_FLOOR))
        return rows

    def fork(self) -> SlotPlan:
        """The same, whose draws may be taken without taking these."""
        return msgspec.structs.replace(self, ahead=self.ahead.fork())


def plan_slot(
    request: SlotRequest,
    view: ServeView | None,
    page_reach: Mapping[str, int],
    floor_of: Callable[[str], int],
    rules: Rules,
    version: PoolVersion | None = None,
) -> SlotPlan:
    """Filter a slot's view down to what may be drawn for pages of this reach."""
    filtered: list[CandidateOutcome] = []
    allowed: list[CandidateView] = []
    for candidate in view.candidates if view else ():
        reason = _objection(candidate, request, page_reach, rules)
        if reason:
            filtered.append(_filtered(candidate, reason))
        else:
            allowed.append(candidate)
    forbidden = len(filtered)
    below = [not passes_floor(candidate.cpm_micros, floor_of(candidate.category)) for candidate in allowed]
    filtered += [_filtered(each, explain.BELOW_FLOOR) for each, low in zip(allowed, below, strict=True) if low]
    kept = [_near(each, rules.places) for each, low in zip(allowed, below, strict=True) if not low]
    pool = dedupe_by_creative(kept, page_reach)
    floors = [floor_of(candidate.category) for candidate in pool]
    ahead = Ahead(pool, rules.bid_weight)
    return SlotPlan(view, version, filtered, forbidden, allowed, below, pool, floors, floor_of, ahead)


def _objection(candidate: CandidateView, request: SlotRequest, page_reach: Mapping[str, int], rules: Rules) -> str:
    """Why a candidate may not be shown here at all; empty when it may."""
    if not rules.approved(candidate.creative_id):
        return explain.NOT_APPROVED
    if rules.blocked(candidate):
        return explain.BLOCKED
    if candidate.campaign_id in rules.excluded:
        return explain.EXCLUDED
    if not fits(candidate, request.width, request.height):
        return explain.WRONG_SIZE
    if not eligible_for_page(candidate, page_reach, page_matched=rules.matched):
        return explain.WRONG_CATEGORY
    if candidate.places or candidate.blocked_categories:
        return page_objection(candidate.places, candidate.blocked_categories, rules.places, page_reach)
    return ""


def _near(candidate: CandidateView, page_places: Mapping[str, int]) -> CandidateView:
    """The candidate as it is worth on this page: a place that is wanted and only contains the page's costs score."""
    hops = hops_within(candidate.places, page_places) if candidate.places else 0
    score = decayed(candidate.category_score, hops or 0)
    return msgspec.structs.replace(candidate, category_score=score) if hops else candidate


def _filtered(candidate: CandidateView, reason: str) -> CandidateOutcome:
    return CandidateOutcome(
        candidate.creative_id,
        candidate.campaign_id,
        candidate.category,
        candidate.ancestor_hops,
        candidate.cpm_micros,
        explain.FILTERED,
        reason,
    )
