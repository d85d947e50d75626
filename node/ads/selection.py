"""Thompson sampling over a pool: draw an engagement for each candidate, weigh it by its bid, take the best.

What is drawn from, what is expected, and who may take part; the draws themselves are made ahead, in `node.ads.ahead`.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence

import msgspec

from node.ads.money import to_units
from node.ads.view import CandidateView

BID_WEIGHT_DEFAULT = 0.5
BID_WEIGHT_MIN = 0.1
BID_WEIGHT_MAX = 1.0
NEWCOMER_IMPRESSIONS = 50
NEWCOMER_BONUS = 0.5
COLD_CTR_SPREAD = 0.15
CTR_MIN = 0.001
CPM_MIN = 0.001
FOLD_WEIGHT = 2.0
COLD_FOLD_PRIOR = (1.0, 3.0)


class CreativeStats(msgspec.Struct, frozen=True, gc=False):
    """What a creative did on this site in the last 60 minutes."""

    impressions: int = 0
    clicks: int = 0
    folds: int = 0


class Draw(msgspec.Struct, frozen=True, gc=False):
    """One candidate's place in a decision: what was drawn (selection) and what is expected (price)."""

    index: int
    ctr: float
    fold: float
    score: float
    mean_engagement: float
    mean_score: float


COLD = CreativeStats()


def clamp_bid_weight(weight: float) -> float:
    """The exponent of the bid, held to [0.1, 1.0]; what is not a number becomes the default."""
    if math.isnan(weight):
        return BID_WEIGHT_DEFAULT
    return min(max(weight, BID_WEIGHT_MIN), BID_WEIGHT_MAX)


def newcomer_bonus(impressions: int) -> float:
    """0.5 for a creative never shown, falling to 0 at 50 impressions."""
    if impressions >= NEWCOMER_IMPRESSIONS:
        return 0.0
    return NEWCOMER_BONUS * (1 - impressions / NEWCOMER_IMPRESSIONS)


def cpm_score(cpm_micros: int, bid_weight: float) -> float:
    return math.pow(max(to_units(cpm_micros), CPM_MIN), bid_weight)


def mean_ctr(stats: CreativeStats, category_score: float) -> float:
    """Expected click-through rate: the category's score while cold, the posterior mean after."""
    if stats.impressions <= 0:
        return max(CTR_MIN, category_score)
    a, b = ctr_posterior(stats)
    return a / (a + b)


def mean_fold(stats: CreativeStats) -> float:
    """Expected fold rate: 0.25 while cold, the posterior mean after."""
    a, b = fold_posterior(stats)
    return a / (a + b)


def mean_engagement(stats: CreativeStats, category_score: float) -> float:
    """What selection draws around, without a draw."""
    return mean_ctr(stats, category_score) + FOLD_WEIGHT * mean_fold(stats) + newcomer_bonus(max(stats.impressions, 0))


def mean_score(stats: CreativeStats, category_score: float, cpm_micros: int, bid_weight: float) -> float:
    return mean_engagement(stats, category_score) * cpm_score(cpm_micros, bid_weight)


def eligible_for_page(candidate: CandidateView, page_reach: Container[str], *, page_matched: bool) -> bool:
    """Whether a candidate was auctioned for this page.

    `page_reach` holds the page's categories and their ancestors. The view of a slot unites the pools of many pages;
    without this rule one page would show what another page's auction won. Filler serves unmatched pages only.
    """
    if candidate.filler:
        return not page_matched
    return candidate.category in page_reach


def fits(candidate: CandidateView, width: int, height: int) -> bool:
    """Whether the creative has exactly the slot's size (CSS pixels)."""
    return candidate.width == width and candidate.height == height


def runner_up(order: Sequence[int], position: int, pool: Sequence[CandidateView]) -> int | None:
    """The first candidate after `order[position]`, in drawn order, that won under the same category: its place in the
    pool, as `order` gives them."""
    category = pool[order[position]].category
    for index in order[position + 1 :]:
        if pool[index].category == category:
            return index
    return None


def dedupe_by_creative(pool: Sequence[CandidateView], hops: Mapping[str, int]) -> list[CandidateView]:
    """One candidate per creative: the one whose category is nearest to the page (`hops`: the page's reach)."""
    far = max(hops.values(), default=0) + 1
    best: dict[str, CandidateView] = {}
    for candidate in pool:
        known = best.get(candidate.creative_id)
        if known is None or hops.get(candidate.category, far) < hops.get(known.category, far):
            best[candidate.creative_id] = candidate
    return list(best.values())


def ctr_posterior(stats: CreativeStats) -> tuple[float, float]:
    """The Beta of a click-through rate that was seen; a cold one has none, see `cold_ctr`."""
    # A click may fall into the window after its impression has left it: the failures never go below zero.
    return stats.clicks + 1.0, max(stats.impressions - stats.clicks, 0) + 1.0


def fold_posterior(stats: CreativeStats) -> tuple[float, float]:
    """The Beta of a fold rate."""
    if stats.impressions <= 0:
        return COLD_FOLD_PRIOR
    return stats.folds + 1.0, max(stats.impressions - stats.folds, 0) + 1.0
