import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.ads.money import (
    check_micros,
    format_money,
    impression_cost_micros,
    parse_money,
    parse_share,
    to_micros,
    to_units,
)
from node.core.errors import BadInput
from node.core.limits import money_micros_max


@given(st.integers(0, money_micros_max))
def test_written_money_reads_back_the_same(micros: int) -> None:
    assert parse_money(format_money(micros), "cpm") == micros


@given(st.integers(0, 10**12))
def test_a_formula_round_trip_is_exact_for_real_amounts(micros: int) -> None:
    assert to_micros(to_units(micros)) == micros


@pytest.mark.parametrize(
    ("text", "micros"), [("2.50", 2_500_000), ("0", 0), ("10", 10_000_000), ("0.000001", 1), (" 1.5 ", 1_500_000)]
)
def test_amounts(text: str, micros: int) -> None:
    assert parse_money(text, "cpm") == micros


@pytest.mark.parametrize(
    "text",
    ["", "-1", "+1", "1e3", "NaN", "Infinity", "1,50", ".5", "5.", "0.0000001", "9" * 13, "٣", 2.5, 7, None, True],
)
def test_bad_amounts_name_the_field(text: object) -> None:
    with pytest.raises(BadInput) as caught:
        parse_money(text, "daily_budget")
    assert caught.value.field == "daily_budget"


def test_limits_of_an_amount() -> None:
    with pytest.raises(BadInput, match="exceed"):
        parse_money("1000000000.01", "cpm")
    with pytest.raises(BadInput, match="more than zero"):
        parse_money("0.00", "cpm", allow_zero=False)
    with pytest.raises(BadInput, match="negative"):
        check_micros(-1, "cpm")


def test_an_impression_costs_a_thousandth() -> None:
    assert impression_cost_micros(2_000_000) == 2_000
    assert impression_cost_micros(1_499) == 1
    assert impression_cost_micros(1_500) == 2
    assert impression_cost_micros(0) == 0


@given(st.lists(st.integers(0, 10**9), max_size=50))
def test_a_thousand_impressions_cost_their_cpm_within_rounding(cpms: list[int]) -> None:
    assert all(abs(1000 * impression_cost_micros(cpm) - cpm) <= 500 for cpm in cpms)


def test_a_share_is_in_millionths_and_never_more_than_all() -> None:
    assert [parse_share(text, "margin") for text in ("0", "0.2", "1", "1.000000")] == [0, 200_000, 10**6, 10**6]
    with pytest.raises(BadInput) as caught:
        parse_share("1.000001", "margin")
    assert caught.value.field == "margin"
