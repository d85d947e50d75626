"""Thompson sampling over a pool: draw an engagement for each candidate, weigh it by its bid, take the best.

Randomness comes in as a seeded generator. One call of the generator costs the same for ten candidates as for a
hundred, so small pools draw one by one and larger ones in one call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence

import msgspec
import numpy as np

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
# Measured: numpy's vector call costs about as much as this many scalar draws of both Betas.
SCALAR_POOL_MAX = 16


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
    a, b = _ctr_posterior(stats)
    return a / (a + b)


def mean_fold(stats: CreativeStats) -> float:
    """Expected fold rate: 0.25 while cold, the posterior mean after."""
    a, b = _fold_posterior(stats)
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


def sample(
    pool: Sequence[CandidateView],
    stats_of: Callable[[str], CreativeStats],
    *,
    bid_weight: float,
    rng: np.random.Generator,
) -> list[Draw]:
    """Draw once for every candidate and return the draws, best score first.

    Equal scores keep the pool's order. The same pool, statistics and generator state give the same draws.
    """
    weight = clamp_bid_weight(bid_weight)
    stats = [stats_of(candidate.creative_id) for candidate in pool]
    draw = _draw_scalar if len(pool) <= SCALAR_POOL_MAX else _draw_vector
    ctrs, folds = draw(pool, stats, rng)
    draws = []
    for index, candidate in enumerate(pool):
        bid = cpm_score(candidate.cpm_micros, weight)
        bonus = newcomer_bonus(max(stats[index].impressions, 0))
        expected = mean_engagement(stats[index], candidate.category_score)
        score = (ctrs[index] + FOLD_WEIGHT * folds[index] + bonus) * bid
        draws.append(Draw(index, ctrs[index], folds[index], score, expected, expected * bid))
    draws.sort(key=lambda d: -d.score)
    return draws


def runner_up(order: Sequence[Draw], position: int, pool: Sequence[CandidateView]) -> Draw | None:
    """The first candidate after `order[position]`, in drawn order, that won under the same category."""
    category = pool[order[position].index].category
    return next((draw for draw in order[position + 1 :] if pool[draw.index].category == category), None)


def dedupe_by_creative(pool: Sequence[CandidateView], hops: Mapping[str, int]) -> list[CandidateView]:
    """One candidate per creative: the one whose category is nearest to the page (`hops`: the page's reach)."""
    far = max(hops.values(), default=0) + 1
    best: dict[str, CandidateView] = {}
    for candidate in pool:
        known = best.get(candidate.creative_id)
        if known is None or hops.get(candidate.category, far) < hops.get(known.category, far):
            best[candidate.creative_id] = candidate
    return list(best.values())


def _ctr_posterior(stats: CreativeStats) -> tuple[float, float]:
    # A click may fall into the window after its impression has left it: the failures never go below zero.
    return stats.clicks + 1.0, max(stats.impressions - stats.clicks, 0) + 1.0


def _fold_posterior(stats: CreativeStats) -> tuple[float, float]:
    if stats.impressions <= 0:
        return COLD_FOLD_PRIOR
    return stats.folds + 1.0, max(stats.impressions - stats.folds, 0) + 1.0


def _draw_scalar(
    pool: Sequence[CandidateView], stats: Sequence[CreativeStats], rng: np.random.Generator
) -> tuple[list[float], list[float]]:
    ctrs: list[float] = []
    folds: list[float] = []
    for candidate, seen in zip(pool, stats, strict=True):
        if seen.impressions <= 0:
            spread = rng.random() * 2 * COLD_CTR_SPREAD - COLD_CTR_SPREAD
            ctrs.append(max(CTR_MIN, candidate.category_score + spread))
        else:
            ctrs.append(rng.beta(*_ctr_posterior(seen)))
        folds.append(rng.beta(*_fold_posterior(seen)))
    return ctrs, folds


def _draw_vector(
    pool: Sequence[CandidateView], stats: Sequence[CreativeStats], rng: np.random.Generator
) -> tuple[list[float], list[float]]:
    ctr_shape = np.array([_ctr_posterior(seen) for seen in stats])
    fold_shape = np.array([_fold_posterior(seen) for seen in stats])
    ctrs: list[float] = rng.beta(ctr_shape[:, 0], ctr_shape[:, 1]).tolist()
    folds: list[float] = rng.beta(fold_shape[:, 0], fold_shape[:, 1]).tolist()
    cold = [index for index, seen in enumerate(stats) if seen.impressions <= 0]
    if cold:
        spread: list[float] = rng.uniform(-COLD_CTR_SPREAD, COLD_CTR_SPREAD, len(cold)).tolist()
        for offset, index in zip(spread, cold, strict=True):
            ctrs[index] = max(CTR_MIN, pool[index].category_score + offset)
    return ctrs, folds
