"""One serve decision: from a request and the plan of its slot to winners in order of preference, and why.

Pure but for the rounds that are taken of a plan's draws: plans, statistics and the generator come in; the ad server
reserves money for what comes out, and asks for the next choice where a reservation is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

import msgspec
import numpy as np

from node.ads import explain
from node.ads.ahead import Round
from node.ads.explain import CandidateOutcome
from node.ads.messages import SlotRequest
from node.ads.money import impression_cost_micros
from node.ads.pins import honoured
from node.ads.pricing import clearing_micros
from node.ads.selection import CreativeStats, mean_ctr, mean_fold, runner_up
from node.ads.slot_plan import Rules, SlotPlan
from node.ads.view import CandidateView, ServeView
from node.core.limits import prices_kept_per_pool_max

NOBODY: Mapping[str, str] = MappingProxyType({})


class Choice(msgspec.Struct, frozen=True, gc=False):
    """A candidate that may be served in a slot, and what it would pay: nothing when a reader had pinned it."""

    candidate: CandidateView
    price_micros: int
    runner_up: str
    pinned: bool = False


class SlotDecision(msgspec.Struct):
    """A slot's pool after the draw: `order` holds places in the pool, the best first, without those that are held back
    this time. `refused` grows while reservations fail; `taken` says of creatives that were passed over why: another
    slot of the batch has them or their campaign, or their campaign steps back. `chosen` is what is offered now,
    `pinned` what a reader's pin has a right to."""

    request: SlotRequest
    plan: SlotPlan
    order: list[int]
    drawn: Round | None
    filtered: Sequence[CandidateOutcome]
    rules: Rules
    pinned: Choice | None = None
    refused: dict[str, str] = msgspec.field(default_factory=dict)
    taken: dict[str, str] = msgspec.field(default_factory=dict)
    chosen: Choice | None = None
    request_id: str = ""

    @property
    def view(self) -> ServeView | None:
        return self.plan.view

    @property
    def pool(self) -> Sequence[CandidateView]:
        """What `order` holds the places of."""
        return self.plan.pool

    @property
    def floor_micros(self) -> int:
        """The floor that bound the winner; of a slot without one, the floor of pages without a category."""
        return self.plan.floor_of(self.chosen.candidate.category if self.chosen is not None else "")

    def next_choice(
        self, used_campaigns: Collection[str], used_creatives: Collection[str], back: Mapping[str, str] = NOBODY
    ) -> Choice | None:
        """The best candidate whose campaign and creative are not used in this batch and that was not refused. Campaigns
        that step `back`, each for its reason, are tried when no other is left."""
        pool, drawn, taken, refused = self.plan.pool, self.drawn, self.taken, self.refused
        taken.clear()
        if drawn is None:
            return None
        stepped: list[int] = []
        for position, index in enumerate(self.order):
            candidate = pool[index]
            if candidate.creative_id in refused:
                continue
            if candidate.campaign_id in used_campaigns or candidate.creative_id in used_creatives:
                taken[candidate.creative_id] = explain.SHOWN_IN_BATCH
            elif candidate.campaign_id in back:
                taken[candidate.creative_id] = back[candidate.campaign_id]
                stepped.append(position)
            elif (choice := self._offer(drawn, position)) is not None:
                return choice
        for position in stepped:
            if (choice := self._offer(drawn, position)) is not None:
                return choice
        return None

    def _offer(self, drawn: Round, position: int) -> Choice | None:
        """The candidate at this place of the order with its price; None, and refused, when it is known not to have the
        money."""
        pool, index = self.plan.pool, self.order[position]
        candidate = pool[index]
        rival = runner_up(self.order, position, pool)
        price = self._price(drawn, index, rival)
        left_micros = self.rules.left_of(candidate.campaign_id)
        if left_micros is not None and impression_cost_micros(price) > left_micros:
            self.refused[candidate.creative_id] = explain.BUDGET
            return None
        return Choice(candidate, price, pool[rival].creative_id if rival is not None else "")

    def _price(self, drawn: Round, index: int, rival: int | None) -> int:
        """What follows from posterior means and floors is the same while they stand."""
        known = drawn.expected
        price = known.prices.get((index, rival))
        if price is None:
            price = clearing_micros(
                known.engagements[index],
                self.plan.pool[index].cpm_micros,
                known.scores[rival] if rival is not None else None,
                bid_weight=self.rules.bid_weight,
                floor_micros=self.plan.floors[index],
            )
            if len(known.prices) < prices_kept_per_pool_max:
                known.prices[(index, rival)] = price
        return price


def decide_slot(
    request: SlotRequest,
    plan: SlotPlan,
    stats_of: Callable[[str], CreativeStats],
    rules: Rules,
    rng: np.random.Generator,
    mark: object = None,
) -> SlotDecision:
    """Draw among what the slot's plan leaves, without those that sit this page view out. `mark` as in `Ahead.take`."""
    filtered: Sequence[CandidateOutcome] = plan.filtered
    order: list[int] = []
    drawn: Round | None = None
    if rules.served and plan.pool:
        drawn = plan.ahead.take(stats_of, mark, rng)
        order = drawn.order
    paced_out = rules.paced_out
    if paced_out or not rules.served:
        filtered = plan.held_back(rules)
        order = [index for index in order if plan.pool[index].campaign_id not in paced_out]
    pin = honoured(request.pin, plan.allowed)
    pinned = Choice(pin, 0, "", pinned=True) if pin is not None else None
    return SlotDecision(request, plan, order, drawn, filtered, rules, pinned)


def outcomes(decision: SlotDecision) -> tuple[CandidateOutcome, ...]:
    """What became of every candidate of a slot, the drawn ones first and best first."""
    rows: list[CandidateOutcome] = []
    drawn = decision.drawn
    stats = drawn.expected.stats if drawn is not None else []
    for draw in drawn.draws(decision.order) if drawn is not None else ():
        candidate, seen = decision.pool[draw.index], stats[draw.index]
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
    if not decision.order:
        paced = any(row.reason == explain.PACED for row in decision.filtered)
        return explain.PACED if paced else "no_eligible_candidate"
    if decision.refused:
        return explain.PACED if set(decision.refused.values()) == {explain.PACED} else "all_refused"
    return "candidates_in_other_slots"
