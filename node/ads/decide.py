"""One serve decision: from a request and the pools of its slots to winners in order of preference, and why.

Pure: pools, statistics and the generator come in; the ad server reserves money for what comes out, and asks for the
next choice where a reservation is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec
import numpy as np

from node.ads import explain
from node.ads.explain import CandidateOutcome
from node.ads.messages import SlotRequest
from node.ads.money import impression_cost_micros
from node.ads.pins import honoured
from node.ads.places import decayed, hops_within
from node.ads.pricing import clearing_micros, passes_floor
from node.ads.selection import (
    CreativeStats,
    Draw,
    dedupe_by_creative,
    eligible_for_page,
    fits,
    mean_ctr,
    mean_fold,
    runner_up,
    sample,
)
from node.ads.targeting import page_objection
from node.ads.view import CandidateView, ServeView

NOBODY: Mapping[str, str] = MappingProxyType({})


def _never(_campaign: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate that may be served in a slot, and what it would pay: nothing when a reader had pinned it."""

    candidate: CandidateView
    price_micros: int
    runner_up: str
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
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
    paced_out: Callable[[str], bool] = _never
    served: bool = True
    slots: Collection[str] | None = None
    places: Mapping[str, int] = field(default_factory=dict)
    matched: bool = True
    excluded: Collection[str] = ()


@dataclass(slots=True)
class SlotDecision:
    """A slot's pool after the draw. `refused` grows while reservations fail; `taken` says of creatives that were passed
    over why: another slot of the batch has them or their campaign, or their campaign steps back. `chosen` is what is
    offered now, `pinned` what a reader's pin has a right to; `floor_of` answers the floor of a category."""

    request: SlotRequest
    view: ServeView | None
    pool: list[CandidateView]
    order: list[Draw]
    filtered: list[CandidateOutcome]
    floor_of: Callable[[str], int]
    rules: Rules
    pinned: Choice | None = None
    refused: dict[str, str] = field(default_factory=dict)
    taken: dict[str, str] = field(default_factory=dict)
    chosen: Choice | None = None
    request_id: str = ""

    @property
    def floor_micros(self) -> int:
        """The floor that bound the winner; of a slot without one, the floor of pages without a category."""
        return self.floor_of(self.chosen.candidate.category if self.chosen is not None else "")

    def next_choice(
        self, used_campaigns: Collection[str], used_creatives: Collection[str], back: Mapping[str, str] = NOBODY
    ) -> Choice | None:
        """The best candidate whose campaign and creative are not used in this batch and that was not refused. Campaigns
        that step `back`, each for its reason, are tried when no other is left."""
        self.taken.clear()
        found = self._best(used_campaigns, used_creatives, back)
        return found if found is not None or not back else self._best(used_campaigns, used_creatives, NOBODY)

    def _best(
        self, used_campaigns: Collection[str], used_creatives: Collection[str], back: Mapping[str, str]
    ) -> Choice | None:
        for position, draw in enumerate(self.order):
            candidate = self.pool[draw.index]
            if candidate.creative_id in self.refused:
                continue
            if candidate.campaign_id in used_campaigns or candidate.creative_id in used_creatives:
                self.taken[candidate.creative_id] = explain.SHOWN_IN_BATCH
                continue
            if candidate.campaign_id in back:
                self.taken[candidate.creative_id] = back[candidate.campaign_id]
                continue
            rival = runner_up(self.order, position, self.pool)
            price = clearing_micros(
                draw.mean_engagement,
                candidate.cpm_micros,
                rival.mean_score if rival else None,
                bid_weight=self.rules.bid_weight,
                floor_micros=self.floor_of(candidate.category),
            )
            left_micros = self.rules.left_of(candidate.campaign_id)
            if left_micros is not None and impression_cost_micros(price) > left_micros:
                self.refused[candidate.creative_id] = explain.BUDGET
                continue
            return Choice(candidate, price, self.pool[rival.index].creative_id if rival else "")
        return None


def decide_slot(
    request: SlotRequest,
    view: ServeView | None,
    page_reach: Mapping[str, int],
    stats_of: Callable[[str], CreativeStats],
    floor_of: Callable[[str], int],
    rules: Rules,
    rng: np.random.Generator,
) -> SlotDecision:
    """Filter the slot's view down to what may be served on this page, then draw."""
    filtered: list[CandidateOutcome] = []
    before_floor: list[CandidateView] = []
    for candidate in view.candidates if view else ():
        reason = _forbidden(candidate, request, page_reach, rules)
        if reason:
            filtered.append(_outcome(candidate, explain.FILTERED, reason))
        else:
            before_floor.append(candidate)
    pin = honoured(request.pin, before_floor)
    kept: list[CandidateView] = []
    for candidate in before_floor:
        reason = _held_back(candidate, floor_of, rules)
        if reason:
            filtered.append(_outcome(candidate, explain.FILTERED, reason))
        else:
            kept.append(_near(candidate, rules.places) if candidate.places else candidate)
    pool = dedupe_by_creative(kept, page_reach)
    order = sample(pool, stats_of, bid_weight=rules.bid_weight, rng=rng) if pool else []
    pinned = Choice(pin, 0, "", pinned=True) if pin is not None else None
    return SlotDecision(request, view, pool, order, filtered, floor_of, rules, pinned)


def outcomes(decision: SlotDecision, stats_of: Callable[[str], CreativeStats]) -> tuple[CandidateOutcome, ...]:
    """What became of every candidate of a slot, the drawn ones first and best first."""
    rows: list[CandidateOutcome] = []
    for draw in decision.order:
        candidate = decision.pool[draw.index]
        seen = stats_of(candidate.creative_id)
        outcome, reason = explain.LOST, explain.OUTSCORED
        if decision.chosen is not None and decision.chosen.candidate is candidate:
            outcome, reason = explain.WON, explain.PINNED if decision.chosen.pinned else ""
        elif candidate.creative_id in decision.refused:
            outcome, reason = explain.REFUSED, decision.refused[candidate.creative_id]
        elif candidate.creative_id in decision.taken:
            outcome, reason = explain.FILTERED, decision.taken[candidate.creative_id]
        rows.append(
            CandidateOutcome(
                candidate.creative_id,
                candidate.campaign_id,
                candidate.category,
                candidate.ancestor_hops,
                candidate.cpm_micros,
                outcome,
                reason,
                draw.ctr,
                draw.fold,
                draw.score,
                mean_ctr(seen, candidate.category_score),
                mean_fold(seen),
                draw.mean_score,
                draw.mean_engagement,
            )
        )
    return (*rows, *(_unless_pinned(row, decision) for row in decision.filtered))


def _unless_pinned(row: CandidateOutcome, decision: SlotDecision) -> CandidateOutcome:
    """A pin wins although a floor, or the pace, held it back."""
    chosen = decision.chosen
    if chosen is None or not chosen.pinned or row.creative_id != chosen.candidate.creative_id:
        return row
    if row.category != chosen.candidate.category:
        return row
    return msgspec.structs.replace(row, outcome=explain.WON, reason=explain.PINNED)


def why_empty(decision: SlotDecision) -> str:
    """Why nothing was chosen, in a stable word."""
    if decision.view is None:
        slots = decision.rules.slots
        return "no_pool" if slots is None or decision.request.slot in slots else "unknown_slot"
    if not decision.pool:
        paced = any(row.reason == explain.PACED for row in decision.filtered)
        return explain.PACED if paced else "no_eligible_candidate"
    return "all_refused" if decision.refused else "candidates_in_other_slots"


def _forbidden(candidate: CandidateView, request: SlotRequest, page_reach: Mapping[str, int], rules: Rules) -> str:
    """Why a candidate may not be shown here at all."""
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


def _held_back(candidate: CandidateView, floor_of: Callable[[str], int], rules: Rules) -> str:
    """Why one that may be shown takes no part this time; a pin would."""
    if not rules.served or rules.paced_out(candidate.campaign_id):
        return explain.PACED
    if not passes_floor(candidate.cpm_micros, floor_of(candidate.category)):
        return explain.BELOW_FLOOR
    return ""


def _near(candidate: CandidateView, page_places: Mapping[str, int]) -> CandidateView:
    """The candidate as it is worth on this page: a place that is wanted and only contains the page's costs score."""
    hops = hops_within(candidate.places, page_places) or 0
    score = decayed(candidate.category_score, hops)
    return msgspec.structs.replace(candidate, category_score=score) if hops else candidate


def _outcome(candidate: CandidateView, outcome: str, reason: str) -> CandidateOutcome:
    return CandidateOutcome(
        candidate.creative_id,
        candidate.campaign_id,
        candidate.category,
        candidate.ancestor_hops,
        candidate.cpm_micros,
        outcome,
        reason,
    )
