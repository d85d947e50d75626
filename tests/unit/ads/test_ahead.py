"""Draws made ahead: the same as draws made one by one, as far as anybody can tell."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.ads import ahead
from node.ads.ahead import Ahead
from node.ads.selection import COLD, CreativeStats, Draw, mean_engagement, mean_score
from node.ads.view import CandidateView
from node.core.limits import draws_ahead_rounds_max

UNIT = 1_000_000
SIZES = (1, 3, 20)


def candidate(number: int) -> CandidateView:
    return CandidateView(
        f"c{number}", f"k{number}", "adv", "", "", "", "", 300, 250, "483", (number + 1) * UNIT, 0, 0.5
    )


class Pool:
    """A pool with what is known of its creatives; `take` looks at it only when `mark` says so."""

    def __init__(self, size: int, seed: int = 7) -> None:
        self.candidates = [candidate(number) for number in range(size)]
        self.known: dict[str, CreativeStats] = {}
        self.mark = 0
        self.rng = np.random.default_rng(seed)
        self.ahead = Ahead(self.candidates, 0.5)

    def seen(self, number: int, stats: CreativeStats) -> None:
        self.known[f"c{number}"] = stats
        self.mark += 1

    def take(self) -> list[Draw]:
        return self.ahead.take(lambda creative: self.known.get(creative, COLD), self.mark, self.rng).draws()


@given(
    st.sampled_from(SIZES),
    st.integers(0, 999),
    st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 30), st.integers(0, 60))), max_size=60),
)
@settings(deadline=None)
def test_the_same_seed_and_evidence_give_the_same_rounds_each_best_first(
    size: int, seed: int, story: list[tuple[int, int] | None]
) -> None:
    one, two = Pool(size, seed), Pool(size, seed)
    for step in story:
        if step is not None:
            for pool in (one, two):
                pool.seen(step[0] % size, CreativeStats(step[1], step[1] // 3, 1))
        taken = one.take()
        assert taken == two.take()
        assert sorted(draw.index for draw in taken) == list(range(size))
        assert [draw.score for draw in taken] == sorted((draw.score for draw in taken), reverse=True)
        for draw in taken:
            stats, bid = one.known.get(f"c{draw.index}", COLD), (draw.index + 1) * UNIT
            assert draw.mean_engagement == mean_engagement(stats, 0.5)
            assert draw.mean_score == pytest.approx(mean_score(stats, 0.5, bid, 0.5))


def test_a_pool_that_stands_is_drawn_a_few_times_for_many_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    draw = ahead._Odds.draw

    def counted(odds: ahead._Odds, rounds: int, rng: np.random.Generator) -> object:
        made.append(rounds)
        return draw(odds, rounds, rng)

    monkeypatch.setattr(ahead._Odds, "draw", counted)
    pool = Pool(10)
    for _ in range(1 + 4 + 16 + 2 * draws_ahead_rounds_max):
        pool.take()
    assert made == [1, 4, 16, draws_ahead_rounds_max, draws_ahead_rounds_max]


def test_a_cold_rate_is_uniform_around_its_category_and_a_seen_one_is_not_moved() -> None:
    pool = Pool(3)
    pool.seen(1, CreativeStats(400, 40, 4))
    for _ in range(2):  # evidence that has left the window again leaves a creative cold as it was before
        pool.seen(2, CreativeStats(400, 40, 4))
        pool.take()
        pool.seen(2, COLD)
        ctrs = np.array([sorted((draw.index, draw.ctr) for draw in pool.take()) for _ in range(4_000)])[:, :, 1]
        for cold in (0, 2):
            quarters = np.histogram(ctrs[:, cold], bins=4, range=(0.5 - 0.15, 0.5 + 0.15))[0]
            assert all(count == pytest.approx(1_000, rel=0.15) for count in quarters)
        assert float(ctrs[:, 1].mean()) == pytest.approx(41 / 402, abs=0.003)


def test_a_round_that_was_taken_is_what_it_was_whatever_is_seen_later() -> None:
    pool = Pool(10)
    rounds = []
    for number in range(40):
        pool.seen(number % 10, CreativeStats(number * 10, number, number))
        taken = pool.ahead.take(lambda creative: pool.known.get(creative, COLD), pool.mark, pool.rng)
        rounds.append((taken, taken.draws()))
    assert all(taken.draws() == drawn for taken, drawn in rounds)


def test_evidence_counts_from_the_next_round_on() -> None:
    pool = Pool(10)
    for _ in range(6):  # rounds to come are made
        pool.take()
    pool.seen(4, CreativeStats(10_000, 9_000, 9_000))
    for _ in range(20):
        told = {draw.index: draw for draw in pool.take()}
        assert told[4].ctr == pytest.approx(0.9, abs=0.02)
        assert told[4].mean_engagement == mean_engagement(CreativeStats(10_000, 9_000, 9_000), 0.5)


def test_a_fork_sees_what_comes_next_and_takes_nothing() -> None:
    pool = Pool(10)
    for _ in range(30):
        twin, rng = pool.ahead.fork(), np.random.default_rng()
        rng.bit_generator.state = pool.rng.bit_generator.state
        foreseen = twin.take(lambda _: COLD, 0, rng).draws()
        twin.take(lambda _: CreativeStats(50, 3, 7), 1, rng)
        assert pool.take() == foreseen


@pytest.mark.parametrize("every", [1, 3, 100])
def test_draws_made_ahead_follow_the_posterior_however_often_evidence_comes(every: int) -> None:
    """Rounds are dropped by when evidence comes, never by what they say."""
    pool = Pool(3)
    ctrs = []
    for number in range(6_000):
        if number % every == 0:
            pool.seen(1, CreativeStats(50, 3, 7 + number % 2))
        ctrs += [draw.ctr for draw in pool.take() if draw.index == 1]
    assert float(np.mean(ctrs)) == pytest.approx(4 / 52, abs=0.003)
    assert float(np.var(ctrs)) == pytest.approx(4 * 48 / (52**2 * 53), rel=0.1)


def test_whoever_is_alike_wins_alike() -> None:
    same = [candidate(0) for _ in range(4)]
    drawn, rng = Ahead(same, 0.5), np.random.default_rng(3)
    wins = Counter(drawn.take(lambda _: COLD, 0, rng).order[0] for _ in range(4_000))
    assert all(count == pytest.approx(1_000, rel=0.15) for count in wins.values())
