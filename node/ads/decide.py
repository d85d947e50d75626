"""One serve decision: from a request and the pools of its slots to winners in order of preference, and why.

Pure: pools, statistics and the generator come in; the ad server reserves money for what comes out, and asks for the
next choice where a reservation is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from node.ads import explain
from node.ads.explain import CandidateOutcome
from node.ads.messages import SlotRequest
from node.ads.money import impression_cost_micros
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
from node.ads.view import CandidateView, ServeView


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate that may be served in a slot, and what it would pay."""

    candidate: CandidateView
    price_micros: int
    runner_up: str


@dataclass(slots=True)
class SlotDecision:
    """A slot's pool after the draw. `refused` grows while reservations fail, `taken` holds creatives passed over since
    another slot of the batch has them or their campaign; `chosen` is what is offered now. `left_of`: what is known
    to be left of a campaign's budget, None of most: one that would refuse its reservation for certain is not asked."""

    request: SlotRequest
    view: ServeView | None
    pool: list[CandidateView]
    order: list[Draw]
    filtered: list[CandidateOutcome]
    floor_micros: int
    bid_weight: float
    left_of: Callable[[str], int | None]
    refused: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    chosen: Choice | None = None
    request_id: str = ""

    def next_choice(self, used_campaigns: set[str], used_creatives: set[str]) -> Choice | None:
        """The best candidate whose campaign and creative are not used in this batch and that was not refused."""
        for position, draw in enumerate(self.order):
            candidate = self.pool[draw.index]
            if candidate.creative_id in self.refused:
                continue
            if candidate.campaign_id in used_campaigns or candidate.creative_id in used_creatives:
                self.taken.add(candidate.creative_id)
                continue
            rival = runner_up(self.order, position, self.pool)
            price = clearing_micros(
                draw.mean_engagement,
                candidate.cpm_micros,
                rival.mean_score if rival else None,
                bid_weight=self.bid_weight,
                floor_micros=self.floor_micros,
            )
            left_micros = self.left_of(candidate.campaign_id)
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
    *,
    approved: Callable[[str], bool],
    blocked: Callable[[CandidateView], bool],
    left_of: Callable[[str], int | None],
    floor_micros: int,
    bid_weight: float,
    rng: np.random.Generator,
) -> SlotDecision:
    """Filter the slot's view down to what may be served on this page, then draw. `left_of`: see `SlotDecision`."""
    filtered: list[CandidateOutcome] = []
    kept: list[CandidateView] = []
    for candidate in view.candidates if view else ():
        reason = _refusal(candidate, request, page_reach, approved, blocked, floor_micros)
        if reason:
            filtered.append(_outcome(candidate, explain.FILTERED, reason))
        else:
            kept.append(candidate)
    pool = dedupe_by_creative(kept, page_reach)
    order = sample(pool, stats_of, bid_weight=bid_weight, rng=rng) if pool else []
    return SlotDecision(request, view, pool, order, filtered, floor_micros, bid_weight, left_of)


def outcomes(decision: SlotDecision, stats_of: Callable[[str], CreativeStats]) -> tuple[CandidateOutcome, ...]:
    """What became of every candidate of a slot, the drawn ones first and best first."""
    rows: list[CandidateOutcome] = []
    for draw in decision.order:
        candidate = decision.pool[draw.index]
        seen = stats_of(candidate.creative_id)
        outcome, reason = explain.LOST, explain.OUTSCORED
        if decision.chosen is not None and decision.chosen.candidate is candidate:
            outcome, reason = explain.WON, ""
        elif candidate.creative_id in decision.refused:
            outcome, reason = explain.REFUSED, decision.refused[candidate.creative_id]
        elif candidate.creative_id in decision.taken:
            outcome, reason = explain.FILTERED, explain.SHOWN_IN_BATCH
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
            )
        )
    return (*rows, *decision.filtered)


def _refusal(
    candidate: CandidateView,
    request: SlotRequest,
    page_reach: Mapping[str, int],
    approved: Callable[[str], bool],
    blocked: Callable[[CandidateView], bool],
    floor_micros: int,
) -> str:
    if not approved(candidate.creative_id):
        return explain.NOT_APPROVED
    if blocked(candidate):
        return explain.BLOCKED
    if not fits(candidate, request.width, request.height):
        return explain.WRONG_SIZE
    if not eligible_for_page(candidate, page_reach, page_matched=bool(page_reach)):
        return explain.WRONG_CATEGORY
    if not passes_floor(candidate.cpm_micros, floor_micros):
        return explain.BELOW_FLOOR
    return ""


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


def first_choices(decisions: Sequence[SlotDecision]) -> None:
    """Give each slot its best candidate such that no campaign and no creative is used twice in the batch."""
    campaigns: set[str] = set()
    creatives: set[str] = set()
    for decision in decisions:
        decision.chosen = decision.next_choice(campaigns, creatives)
        if decision.chosen is not None:
            campaigns.add(decision.chosen.candidate.campaign_id)
            creatives.add(decision.chosen.candidate.creative_id)
