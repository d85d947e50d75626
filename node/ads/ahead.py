"""A pool's draws, made ahead for as long as what is known of its creatives stands.

numpy's call costs as much as dozens of its numbers, so rounds of draws are made together and taken one by one. Their
number grows while they are used up, so that a pool that is asked once pays for one; evidence ends the rounds to come
and begins with one again. A round that was taken is never touched. The same pool, statistics and generator give the
same rounds.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from node.ads.selection import (
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

GROWTH = 4

Floats = NDArray[np.float64]
_NONE: Final[Floats] = np.empty((0, 0))


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

    block: tuple[Floats, Floats, Floats]
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

    __slots__ = ("_at", "_block", "_expected", "_mark", "_next", "_odds", "_order", "_pool")

    def __init__(self, pool: Sequence[CandidateView], bid_weight: float) -> None:
        self._pool = pool
        self._odds = _Odds(pool, clamp_bid_weight(bid_weight))
        self._expected: Expected | None = None
        self._mark: object = None
        self._block: tuple[Floats, Floats, Floats] = (_NONE, _NONE, _NONE)
        self._order: list[list[int]] = []  # of the rounds that are made; those before `_at` are taken
        self._at = 0
        self._next = 1

    def take(self, stats_of: Callable[[str], CreativeStats], mark: object, rng: np.random.Generator) -> Round:
        """The next round; of a pool that is not empty."""
        expected = self._expected
        if expected is None or mark is None or mark != self._mark:
            expected = self._look(stats_of)
            self._mark = mark
        at = self._at
        if at == len(self._order):
            self._make(rng)
            at = 0
        self._at = at + 1
        return Round(self._block, at, expected, self._order[at])

    def fork(self) -> Ahead:
        """The same rounds to come, whatever is taken here or there."""
        twin = Ahead.__new__(Ahead)
        own = {
            "_block": copy.deepcopy(self._block),
            "_odds": copy.deepcopy(self._odds),
            "_order": [list(order) for order in self._order],
        }
        for name in Ahead.__slots__:
            setattr(twin, name, own.get(name, getattr(self, name)))
        return twin

    def _look(self, stats_of: Callable[[str], CreativeStats]) -> Expected:
        """What is expected by the evidence of now; the rounds to come are over when some of it is new."""
        stats = [stats_of(candidate.creative_id) for candidate in self._pool]
        known = self._expected
        if known is None:
            changed = list(range(len(stats)))
            engagements, scores = [0.0] * len(stats), [0.0] * len(stats)
        else:
            changed = [i for i, was in enumerate(known.stats) if was is not stats[i] and was != stats[i]]
            if not changed:
                return known
            engagements, scores = list(known.engagements), list(known.scores)
            del self._order[self._at :]
            self._next = 1
        for i in changed:
            engagements[i] = mean_engagement(stats[i], self._pool[i].category_score)
            scores[i] = engagements[i] * self._odds.bids[i]
            self._odds.learn(i, self._pool[i], stats[i])
        self._expected = Expected(stats, engagements, scores)
        return self._expected

    def _make(self, rng: np.random.Generator) -> None:
        rounds = self._next
        self._block = block = self._odds.draw(rounds, rng)
        self._order = _best_first(block[2])
        self._next = min(rounds * GROWTH, draws_ahead_rounds_max)


class _Odds:
    """What the rates of a pool's candidates are drawn from, kept as numpy takes it: evidence changes one candidate's
    numbers, and one call draws both rates of all of them. The first half of `_a` and `_b` are of click-through rates,
    the second of folds.

    A cold click-through rate lies anywhere around its category's score. Beta(1, 1) is uniform, so it is drawn with the
    others and then moved to where it belongs."""

    __slots__ = ("_a", "_b", "_bids", "_bonus", "_cold", "_floor", "_start", "_width", "bids")

    def __init__(self, pool: Sequence[CandidateView], bid_weight: float) -> None:
        size = len(pool)
        self.bids = [cpm_score(candidate.cpm_micros, bid_weight) for candidate in pool]
        self._bids: Floats = np.array(self.bids)
        self._a, self._b = np.ones(2 * size), np.ones(2 * size)
        self._bonus = np.zeros(size)
        self._cold: set[int] = set()
        self._floor, self._start, self._width = np.zeros(size), np.zeros(size), np.ones(size)

    def learn(self, index: int, candidate: CandidateView, seen: CreativeStats) -> None:
        """The evidence of one candidate."""
        fold = len(self.bids) + index
        self._a[fold], self._b[fold] = fold_posterior(seen)
        self._bonus[index] = newcomer_bonus(max(seen.impressions, 0))
        if seen.impressions <= 0:
            self._cold.add(index)
            self._a[index] = self._b[index] = 1.0
            self._floor[index], self._start[index] = CTR_MIN, candidate.category_score - COLD_CTR_SPREAD
            self._width[index] = 2 * COLD_CTR_SPREAD
        else:
            self._a[index], self._b[index] = ctr_posterior(seen)
            if index in self._cold:
                self._cold.remove(index)
                self._floor[index], self._start[index], self._width[index] = 0.0, 0.0, 1.0

    def draw(self, rounds: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Click-through rates, fold rates and scores, a row for each round."""
        size = len(self.bids)
        rates: Floats = rng.beta(self._a, self._b, (rounds, 2 * size))
        ctrs, folds = rates[:, :size], rates[:, size:]
        if self._cold:
            ctrs = np.maximum(self._floor, self._start + self._width * ctrs)
        scores: Floats = (ctrs + FOLD_WEIGHT * folds + self._bonus) * self._bids
        return ctrs, folds, scores


def _best_first(scores: Floats) -> list[list[int]]:
    order: list[list[int]] = (-scores).argsort(axis=1, kind="stable").tolist()
    return order
