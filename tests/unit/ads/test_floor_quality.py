"""A slot's quality and the floor that follows: the rows Q1 to Q5 of the vectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.ads.floors.quality import Placement, effective_floor_micros, slot_quality

UNIT = 1_000_000


@pytest.mark.parametrize(
    ("raw", "quality", "override", "expected"),
    [
        (1.0, 0.9, 2.50, 2.50),  # Q1
        (1.0, 0.0, None, 0.50),  # Q2
        (1.0, 1.0, None, 1.00),
        (8.0, 0.775, None, 8.0),  # Q3
    ],
)
def test_q1_q3_effective_floor(raw: float, quality: float, override: float | None, expected: float) -> None:
    """Q1, Q2, Q3."""
    own = None if override is None else round(override * UNIT)
    assert effective_floor_micros(round(raw * UNIT), quality, own) == round(expected * UNIT)


def test_q4_regions_are_ordered() -> None:
    article, aside, footer = (
        effective_floor_micros(UNIT, slot_quality(Placement(0.4, 0.4, region, 0.4)))
        for region in ("article", "aside", "footer")
    )
    assert article >= aside > footer
    floors = [
        effective_floor_micros(UNIT, slot_quality(placement))
        for placement in (Placement(1, 1, "article", 0.71), Placement(0, 0, "footer", 0.73))
    ]
    assert floors[0] - floors[1] > 300_000


@pytest.mark.parametrize(
    ("placement", "quality", "floor"),
    [
        (Placement(1, 1, "header", 0.73), 0.8845, 1.0),
        (Placement(1, 1, "article", 0.71), 0.9565, 1.0),
        (Placement(1, 0.88, "aside", 0.71), 0.8265, 1.0),
        (Placement(0, 0, "footer", 0.73), 0.1595, 0.6595),
    ],
)
def test_q5_quality(placement: Placement, quality: float, floor: float) -> None:
    assert slot_quality(placement) == pytest.approx(quality, abs=1e-9)
    assert effective_floor_micros(UNIT, slot_quality(placement)) == round(floor * UNIT)


REGIONS = st.sampled_from(["article", "NAV", "", "aside", "?"])


@given(st.floats(), st.floats(), REGIONS, st.floats(), st.integers(0, 10**9))
def test_whatever_a_tag_reports_a_floor_stays_between_half_and_all_of_the_raw_one(
    fold: float, view: float, region: str, text: float, raw: int
) -> None:
    quality = slot_quality(Placement(fold, view, region, text))
    assert 0 <= quality <= 1
    assert raw // 2 <= effective_floor_micros(raw, quality) <= raw
