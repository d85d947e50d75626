"""A pool's draws, made ahead for as long as what is known of its creatives stands.

numpy's call costs as much as dozens of its numbers, so rounds of draws are made together and taken one by one. Their
number grows while they are used up, so that a pool that is asked once pays for one; evidence ends the rounds to come
and begins with one again. A round that was taken is never touched. The same pool, statistics and generator give the
same rounds.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from node.ads.selection import (
    COLD,
    COLD_CTR_SPREAD,
    CTR_MIN,
    FOLD_WEIGHT,
    CreativeStats,
    Draw,
    clamp_bid_weight,
    cpm_score,
    ctr_posterior,
    fold_posterior,
    mean_engagement,
    newcomer_bonus,
)
from node.ads.view import CandidateView
from node.core.limits import draws_ahead_rounds_max

# Measured: numpy's vector call costs about as much as this many scalar draws of both Betas.
SCALAR_POOL_MAX = 16
GROWTH = 4

Rows = NDArray[np.float64] | Sequence[Sequence[float]]
Floats = NDArray[np.float64]


class Expected:
    """What a pool's statistics say without a draw, by place in the pool; never changed once it is known. `prices` holds
    what follows from it alone, by (winner, rival)."""

    __slots__ = ("engagements", "prices", "scores", "stats")

    def __init__(self, stats: list[CreativeStats], engagements: list[float], scores: list[float]) -> None:
        self.stats = stats
        self.engagements = engagements
        self.scores = scores
        self.prices: dict[tuple[int, int | None], int] = {}


class Round(msgspec.Struct, frozen=True, gc=False):
    """One draw of the whole pool: `order` holds places in it, the best score first; equal scores keep the pool's.
    `block` holds click-through rates, fold rates and scores, of which `row` is its own."""

    block: tuple[Rows, Rows, Rows]
    row: int
    expected: Expected
    order: list[int]

    def draws(self, order: Sequence[int] | None = None) -> list[Draw]:
        """What was drawn and what is expected, in that order (None: its own)."""
        ctrs, folds, scores = (rows[self.row] for rows in self.block)
        known = self.expected
        return [
            Draw(i, float(ctrs[i]), float(folds[i]), float(scores[i]), known.engagements[i], known.scores[i])
            for i in (self.order if order is None else order)
        ]


class Ahead:
    """See the module. `mark`s are told apart by `==`: while it is the same, so are all statistics; None: look anew."""

    __slots__ = ("_at", "_bids", "_block", "_expected", "_mark", "_next", "_order", "_pool")

    def __init__(self, pool: Sequence[CandidateView], bid_weight: float) -> None:
        weight = clamp_bid_weight(bid_weight)
        self._pool = pool
        self._bids = [cpm_score(candidate.cpm_micros, weight) for candidate in pool]
        self._expected: Expected | None = None
        self._mark: object = None
        self._block: tuple[Rows, Rows, Rows] = ((), (), ())
        self._order: list[list[int]] = []  # of the rounds that are made; those before `_at` are taken
        self._at = 0
        self._next = 1

    def take(self, stats_of: Callable[[str], CreativeStats], mark: object, rng: np.random.Generator) -> Round:
        """The next round; of a pool that is not empty."""
        expected = self._expected
        if expected is None or mark is None or mark != self._mark:
            expected = self._look(stats_of, rng)
            self._mark = mark
        at = self._at
        if at == len(self._order):
            self._make(expected.stats, rng)
            at = 0
        self._at = at + 1
        return Round(self._block, at, expected, self._order[at])

    def fork(self) -> Ahead:
        """The same rounds to come, whatever is taken here or there."""
        twin = Ahead.__new__(Ahead)
        own = {"_block": copy.deepcopy(self._block), "_order": [list(order) for order in self._order]}
        for name in Ahead.__slots__:
            setattr(twin, name, own.get(name, getattr(self, name)))
        return twin

    # ---- evidence

    def _look(self, stats_of: Callable[[str], CreativeStats], rng: np.random.Generator) -> Expected:
        stats = [stats_of(candidate.creative_id) for candidate in self._pool]
        known = self._expected
        if known is None:
            changed = list(range(len(stats)))
            known = Expected([COLD] * len(stats), [0.0] * len(stats), [0.0] * len(stats))
        else:
            changed = [i for i, was in enumerate(known.stats) if was is not stats[i] and was != stats[i]]
            if not changed:
                return known
        engagements, scores = list(known.engagements), list(known.scores)
        for i in changed:
            engagements[i] = mean_engagement(stats[i], self._pool[i].category_score)
            scores[i] = engagements[i] * self._bids[i]
        if self._expected is not None:
            del self._order[self._at :]
            self._next = 1
        self._expected = Expected(stats, engagements, scores)
        return self._expected

    # ---- drawing

    def _make(self, stats: Sequence[CreativeStats], rng: np.random.Generator) -> None:
        rounds = self._next
        if rounds == 1 and len(self._pool) <= SCALAR_POOL_MAX:
            self._block, self._order = self._one_by_one(stats, rng)
        else:
            self._block = block = _drawn(self._pool, stats, self._bids, rounds, rng)
            self._order = _best_first(block[2])
        self._next = min(rounds * GROWTH, draws_ahead_rounds_max)

    def _one_by_one(
        self, stats: Sequence[CreativeStats], rng: np.random.Generator
    ) -> tuple[tuple[Rows, Rows, Rows], list[list[int]]]:
        ctrs: list[float] = []
        folds: list[float] = []
        scores: list[float] = []
        for candidate, seen, bid in zip(self._pool, stats, self._bids, strict=True):
            if seen.impressions <= 0:
                spread = rng.random() * 2 * COLD_CTR_SPREAD - COLD_CTR_SPREAD
                ctr = max(CTR_MIN, candidate.category_score + spread)
            else:
                ctr = rng.beta(*ctr_posterior(seen))
            fold = rng.beta(*fold_posterior(seen))
            ctrs.append(ctr)
            folds.append(fold)
            scores.append((ctr + FOLD_WEIGHT * fold + newcomer_bonus(max(seen.impressions, 0))) * bid)
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        return ([ctrs], [folds], [scores]), [order]


def _drawn(
    pool: Sequence[CandidateView],
    stats: Sequence[CreativeStats],
    bids: Sequence[float],
    rounds: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Floats]:
    """Click-through rates, fold rates and scores, a row for each round."""
    size = (rounds, len(pool))
    fold_shape = np.array([fold_posterior(seen) for seen in stats])
    folds: Floats = rng.beta(fold_shape[:, 0], fold_shape[:, 1], size)
    ctrs: Floats = np.empty(size)
    cold = [i for i, seen in enumerate(stats) if seen.impressions <= 0]
    warm = [i for i, seen in enumerate(stats) if seen.impressions > 0]
    if cold:
        middle = np.array([pool[i].category_score for i in cold])
        spread = rng.uniform(-COLD_CTR_SPREAD, COLD_CTR_SPREAD, (rounds, len(cold)))
        ctrs[:, cold] = np.maximum(CTR_MIN, middle + spread)
    if warm:
        shape = np.array([ctr_posterior(stats[i]) for i in warm])
        ctrs[:, warm] = rng.beta(shape[:, 0], shape[:, 1], (rounds, len(warm)))
    bonus = np.array([newcomer_bonus(max(seen.impressions, 0)) for seen in stats])
    scores: Floats = (ctrs + FOLD_WEIGHT * folds + bonus) * np.array(bids)
    return ctrs, folds, scores


def _best_first(scores: Floats) -> list[list[int]]:
    order: Any = np.argsort(-scores, axis=1, kind="stable").tolist()
    found: list[list[int]] = order
    return found
