"""Verification, fraud, ranking, tokens, supply: the rows V4 to V7, V14, V21, V23 and V28 of the vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.ads import fraud, ranking
from node.ads.category_supply import publishers_of
from node.ads.site_token import check_token
from node.ads.taxonomy import load_taxonomy
from node.ads.verification import Detected, Status, hidden_everywhere, verify_category

TAXONOMY = load_taxonomy()
WEEK_MS = 7 * 24 * 3_600_000


@pytest.mark.parametrize(
    ("declared", "detected", "status", "match"),
    [
        ("596", Detected("596", 0.9), Status.VERIFIED, 1.0),
        ("596", Detected("596", 0.5), Status.UNVERIFIABLE, 0.5),
        ("596", Detected("598", 0.9), Status.VERIFIED, 0.75),
        ("598", Detected("596", 0.9), Status.MISMATCH, 0.0),
        ("596", Detected("483", 0.9), Status.MISMATCH, 0.0),
        ("596", Detected("", 0.9), Status.UNVERIFIABLE, 0.5),
        ("596", Detected("596", float("nan")), Status.UNVERIFIABLE, 0.5),
        ("596", None, Status.NOT_ASSESSED, 0.5),
        ("", Detected("596", 0.9), Status.NO_DECLARED_CATEGORY, 0.5),
    ],
)
def test_v4_is_it_what_it_was_declared_to_be(
    declared: str, detected: Detected | None, status: Status, match: float
) -> None:
    verified = verify_category(TAXONOMY, declared, detected)
    assert (verified.status, verified.match) == (status, match)


def test_only_adult_content_is_hidden_everywhere() -> None:
    assert [hidden_everywhere(adult=adult) for adult in (True, False)] == [True, False]


def test_v5_robust_statistics() -> None:
    assert (fraud.median([3, 1, 2]), fraud.median([4, 1, 2, 3])) == (2.0, 2.5)
    assert fraud.mad([1, 2, 3]) == pytest.approx(1.4826)
    assert fraud.robust_z(100, [5] * 6) is None
    assert fraud.robust_z(10, [1, 2, 3]) == pytest.approx(8 / 1.4826)


def test_v6_suspect_beacons() -> None:
    day = fraud.SiteDay(1_000, 20, 400, 500, 1_520)
    assert [flag.signal for flag in fraud.flags_of(day, [])] == ["suspect_share"]
    assert fraud.flags_of(fraud.SiteDay(100, 2, 40, 50, 152), []) == ()


def test_v7_a_day_beside_its_history() -> None:
    history = [fraud.SiteDay(2_500 + 20 * n, 25, 1_000) for n in range(10)]
    spike = fraud.SiteDay(10_000, 100, 1_000, 0, 10_100)
    (flag,) = fraud.flags_of(spike, history)
    assert flag.signal == "impressions_per_view"
    assert flag.severity > flag.threshold
    assert fraud.flags_of(fraud.SiteDay(600, 6, 1_000), history) == ()
    assert fraud.flags_of(spike, history[:2]) == ()


def test_v14_evidence_fades() -> None:
    rank = ranking.impression(ranking.CategoryRank(), 2_000, 0)
    later = ranking.faded(rank, 2_000, half_life_ms=1_000)
    assert later.wins == pytest.approx(0.25)
    assert 0.2 <= later.wins <= 0.4
    assert ranking.split_id("483") == ("483", "default")
    assert ranking.split_id("483|news.example") == ("483", "news.example")
    week = ranking.impression(rank, 2_000, WEEK_MS)
    assert (week.wins, week.revenue_micros) == pytest.approx((1.5, 3_000))
    assert ranking.faded(week, 0) == week


def test_a_rank_is_a_posterior() -> None:
    rank = ranking.CategoryRank(98, 9)
    assert ranking.mean(rank, 0) == pytest.approx(0.1)
    assert ranking.mean(ranking.CategoryRank(), 0) == 0.5
    assert ranking.mean(ranking.click(ranking.CategoryRank(), 0), 0) == pytest.approx(2 / 3)
    draws = [ranking.quote(rank, 0, np.random.default_rng(seed)) for seed in range(500)]
    assert float(np.mean(draws)) == pytest.approx(0.1, abs=0.01)


def test_a_silent_ranker_counts_for_its_last_word_which_fades() -> None:
    assert ranking.remembered_quote(None, 0) == 0.5
    assert ranking.remembered_quote((0.8, 0), 3_600_000) == pytest.approx(0.4)
    assert ranking.remembered_quote((0.8, 1_000), 0) == 0.8


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(0, 10 * WEEK_MS))
def test_a_fading_rank_stays_a_rate(wins: float, clicks: float, later: int) -> None:
    rank = ranking.CategoryRank(wins, clicks)
    assert 0 < ranking.mean(rank, later) < 1
    assert ranking.faded(rank, later).wins <= wins


def test_v21_only_the_most_specific_stays() -> None:
    assert TAXONOMY.keep_most_specific({"497", "496", "483"}) == {"497"}


@pytest.mark.parametrize(
    ("declared", "category", "count"),
    [
        ({"p": ["497"]}, "483", 1),
        ({"p": ["483"]}, "497", 0),
        ({"p": ["496", "497"]}, "483", 1),
        ({"p": ["496"], "q": ["497"]}, "483", 2),
        ({"p": ["unheard-of"]}, "unheard-of", 1),
    ],
)
def test_v23_who_offers_a_category(declared: dict[str, list[str]], category: str, count: int) -> None:
    assert len(publishers_of(TAXONOMY, declared, category)) == count


@pytest.mark.parametrize(
    ("kept", "given_", "state"),
    [("tok", "tok", "valid"), ("tok", "other", "stale"), (None, "tok", "unknown"), ("tok", "TOK", "stale")],
)
def test_v28_a_sites_token(kept: str | None, given_: str, state: str) -> None:
    assert check_token(kept, given_) == state
