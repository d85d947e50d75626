from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.ads import pricing
from node.ads import selection as s
from node.ads.ahead import Ahead
from node.ads.taxonomy import load_taxonomy
from node.ads.view import CandidateView

UNIT = 1_000_000


def candidate(
    creative: str, *, cpm_micros: int = UNIT, category: str = "483", category_score: float = 0.5, filler: bool = False
) -> CandidateView:
    return CandidateView(
        creative_id=creative,
        campaign_id=f"campaign-{creative}",
        advertiser_id="adv",
        asset_url="https://cdn.example/x.png",
        landing_url="https://shop.example/",
        landing_domain="shop.example",
        mime="image/png",
        width=300,
        height=250,
        category=category,
        cpm_micros=cpm_micros,
        classified_at_ms=500,
        category_score=category_score,
        filler=filler,
    )


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def sample(
    pool: Sequence[CandidateView],
    stats_of: Callable[[str], s.CreativeStats],
    *,
    rng: np.random.Generator,
    bid_weight: float = 0.5,
) -> list[s.Draw]:
    """One round of a pool that was never drawn before, best first."""
    return Ahead(pool, bid_weight).take(stats_of, None, rng).draws()


def scores(stats: s.CreativeStats, *, category_score: float, cpm: int, weight: float, rounds: int) -> list[float]:
    pool = [candidate("c", cpm_micros=cpm * UNIT, category_score=category_score)]
    generator = rng()
    return [sample(pool, lambda _: stats, bid_weight=weight, rng=generator)[0].score for _ in range(rounds)]


@pytest.mark.parametrize(
    ("engagement", "bid", "loser", "weight", "expected"),
    [
        (0.05, 5.0, 0.0, 0.5, 0.5),  # T1
        (0.0, 5.0, 0.5, 0.5, 0.5),  # T2
        (0.05, 5.0, 0.5, 0.0, 0.5),  # T2, no bid weight
        (0.04, 5.0, 0.05, 0.5, 1.5625),  # T3
        (0.5, 5.0, 0.01, 0.5, 0.5),  # T5
        (0.001, 2.0, 1.0, 0.5, 2.0),  # T6
    ],
)
def test_t1_t6_clearing(engagement: float, bid: float, loser: float, weight: float, expected: float) -> None:
    """T1, T2, T3, T5, T6."""
    price = pricing.clearing_cpm(engagement, bid, loser, bid_weight=weight, floor=0.5)
    assert price == pytest.approx(expected, abs=1e-9)
    micros = pricing.clearing_micros(engagement, round(bid * UNIT), loser, bid_weight=weight, floor_micros=500_000)
    assert micros == round(expected * UNIT)


@pytest.mark.parametrize(("bid", "rival", "floor"), [(0.4, 0.9, 0.1), (0.4, 0.5, 0.9), (2.0, 1.0, 3.0)])
def test_nobody_pays_more_than_they_bid(bid: float, rival: float, floor: float) -> None:
    assert pricing.clearing_cpm(1.0, bid, rival, bid_weight=0.5, floor=floor) == bid


def test_t7_t9_means_and_the_price_between_them() -> None:
    """T7, T8, T9."""
    winner = s.mean_engagement(s.CreativeStats(1000, 100, 100), 0.5)
    loser = s.mean_score(s.CreativeStats(1000, 60, 60), 0.5, 4 * UNIT, 0.5)
    assert winner == pytest.approx(101 / 1002 * 3, abs=1e-9)
    assert loser == pytest.approx(61 / 1002 * 3 * 4**0.5, abs=1e-9)
    assert pricing.clearing_cpm(winner, 5.0, loser, bid_weight=0.5, floor=0.5) == pytest.approx(1.4590726399, abs=1e-9)


def test_t10_t11_cold_means() -> None:
    assert s.mean_engagement(s.COLD, 0.5) == pytest.approx(1.5)
    assert [s.newcomer_bonus(n) for n in (0, 50, 500)] == [0.5, 0.0, 0.0]


def test_t12_average_cold_score() -> None:
    average = float(np.mean(scores(s.COLD, category_score=0.5, cpm=1, weight=0.5, rounds=2000)))
    assert average == pytest.approx(1.5, abs=0.05)
    assert average < 1.7


@pytest.mark.parametrize("size", [1, 20])
def test_t13_a_cold_draw_never_falls_below_the_floor(size: int) -> None:
    pool = [candidate(f"c{n}", category_score=0.0) for n in range(size)]
    generator = rng()
    draws = [d for _ in range(1000) for d in sample(pool, lambda _: s.COLD, bid_weight=0.5, rng=generator)]
    assert min(d.ctr for d in draws) >= 0.001


def test_t14_warm_posteriors() -> None:
    warm = s.CreativeStats(50, 3, 7)
    assert s.mean_ctr(warm, 0.5) == pytest.approx(4 / 52)
    assert s.mean_fold(warm) == pytest.approx(8 / 52)


def test_t14_draws_follow_the_posterior() -> None:
    pool = [candidate("c0")]
    generator = rng()
    drawn = [sample(pool, lambda _: s.CreativeStats(50, 3, 7), bid_weight=0.5, rng=generator)[0] for _ in range(4000)]
    assert float(np.mean([d.ctr for d in drawn])) == pytest.approx(4 / 52, abs=0.005)
    assert float(np.var([d.fold for d in drawn])) == pytest.approx((8 * 44) / (52**2 * 53), rel=0.15)


def test_t15_full_bid_weight_is_proportional() -> None:
    low = float(np.mean(scores(s.COLD, category_score=0.5, cpm=1, weight=1.0, rounds=2000)))
    high = float(np.mean(scores(s.COLD, category_score=0.5, cpm=4, weight=1.0, rounds=2000)))
    assert high / low == pytest.approx(4.0, abs=0.5)


def test_t16_unproven_creatives_are_explored_first() -> None:
    averages = [
        float(np.mean(scores(s.CreativeStats(n), category_score=0.5, cpm=1, weight=0.5, rounds=2000)))
        for n in (0, 25, 60)
    ]
    assert averages[0] > averages[1] > averages[2]


def test_t17_mean_scores() -> None:
    assert s.mean_score(s.CreativeStats(25), 0.5, UNIT, 0.5) == pytest.approx(0.3611111, abs=1e-7)
    assert s.mean_score(s.CreativeStats(50, 3, 7), 0.5, UNIT, 0.5) == pytest.approx(0.3846154, abs=1e-7)


def test_t33_equal_engagement_clears_at_the_second_bid() -> None:
    rival = s.mean_score(s.COLD, 0.5, 3 * UNIT, 0.5)
    price = pricing.clearing_micros(s.mean_engagement(s.COLD, 0.5), 3_500_000, rival, bid_weight=0.5, floor_micros=UNIT)
    assert price == pytest.approx(3 * UNIT, abs=10)


@given(
    st.floats(0, 10),
    st.integers(0, 10**9),
    st.one_of(st.none(), st.floats(0, 1e6)),
    st.floats(0, 1),
    st.integers(0, 10**9),
)
def test_a_price_never_passes_the_bid_nor_falls_below_the_floor(
    engagement: float, bid: int, rival: float | None, weight: float, floor: int
) -> None:
    price = pricing.clearing_micros(engagement, bid, rival, bid_weight=weight, floor_micros=floor)
    assert min(floor, bid) <= price <= bid


@pytest.mark.parametrize("size", [3, 30])
def test_the_same_seed_decides_the_same(size: int) -> None:
    pool = [candidate(f"c{n}", cpm_micros=(n + 1) * UNIT) for n in range(size)]
    one, two = (sample(pool, lambda _: s.COLD, bid_weight=0.5, rng=rng(3)) for _ in range(2))
    assert one == two
    assert [d.score for d in one] == sorted((d.score for d in one), reverse=True)
    assert one != sample(pool, lambda _: s.COLD, bid_weight=0.5, rng=rng(4))


def test_a_click_without_an_impression_in_the_window_is_no_error() -> None:
    odd = s.CreativeStats(impressions=1, clicks=5, folds=9)
    assert 0 < s.mean_ctr(odd, 0.5) < 1
    assert sample([candidate("c")], lambda _: odd, bid_weight=0.5, rng=rng())[0].ctr <= 1


def test_the_runner_up_shares_the_winners_category() -> None:
    pool = [candidate("a", category="1"), candidate("b", category="2"), candidate("c", category="1")]
    assert s.runner_up([0, 1, 2], 0, pool) == 2
    assert s.runner_up([0, 1, 2], 1, pool) is None


def test_a_page_gets_only_what_was_auctioned_for_it() -> None:
    reach = load_taxonomy().expand_with_hops({"497"})
    assert s.eligible_for_page(candidate("c", category="483"), reach, page_matched=True)
    assert not s.eligible_for_page(candidate("c", category="210"), reach, page_matched=True)
    assert not s.eligible_for_page(candidate("c", category="498"), reach, page_matched=True)
    filler = candidate("c", category="210", filler=True)
    assert not s.eligible_for_page(filler, reach, page_matched=True)
    assert s.eligible_for_page(filler, {}, page_matched=False)


def test_one_creative_stands_under_its_nearest_category() -> None:
    reach = load_taxonomy().expand_with_hops({"497"})
    pool = [candidate("a", category="483"), candidate("a", category="496"), candidate("b", category="483")]
    kept = s.dedupe_by_creative(pool, reach)
    assert [(c.creative_id, c.category) for c in kept] == [("a", "496"), ("b", "483")]


def test_size_must_match_exactly() -> None:
    assert s.fits(candidate("c"), 300, 250)
    assert not s.fits(candidate("c"), 300, 600)


def test_bid_weight_is_clamped() -> None:
    assert [s.clamp_bid_weight(w) for w in (0.0, 0.5, 7.0, float("nan"))] == [0.1, 0.5, 1.0, 0.5]


@pytest.mark.parametrize("seed", range(20))
def test_a_price_follows_from_means_and_never_from_the_draw(seed: int) -> None:
    """Whoever wins and whoever comes next, the price of that pair is the same with any seed."""
    bids = {"a": 3 * UNIT, "b": 4 * UNIT}
    pool = [candidate(name, cpm_micros=cpm) for name, cpm in bids.items()]
    warm = {"a": s.CreativeStats(400, 20, 40), "b": s.CreativeStats(300, 10, 20)}
    order = sample(pool, warm.__getitem__, bid_weight=0.5, rng=rng(seed))
    winner, rival = order
    assert s.runner_up([winner.index, rival.index], 0, pool) == rival.index
    name, other = pool[winner.index].creative_id, pool[rival.index].creative_id
    expected = pricing.clearing_micros(
        s.mean_engagement(warm[name], 0.5),
        bids[name],
        s.mean_score(warm[other], 0.5, bids[other], 0.5),
        bid_weight=0.5,
        floor_micros=UNIT,
    )
    price = pricing.clearing_micros(
        winner.mean_engagement, bids[name], rival.mean_score, bid_weight=0.5, floor_micros=UNIT
    )
    assert price == expected
