"""When a campaign's readers come, as its sites tell it day by day."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.ads.pacing.passed import PassedByReaders
from node.ads.pacing.readers import Readers, told, volumes
from node.ads.pacing.window import DAY_MS, Window
from node.wire.codec import CODEC

FRIDAY = 18_642  # 2021-01-15
SATURDAY, SUNDAY, MONDAY = FRIDAY + 1, FRIDAY + 2, FRIDAY + 3
EVEN = (10,) * 24
MORNING = (*(20,) * 12, *(0,) * 12)
EVENING = (*(0,) * 12, *(20,) * 12)


def known(*days: tuple[int, tuple[int, ...]]) -> Readers:
    readers = Readers()
    for day, views in days:
        readers = told(readers, day, views)
    return readers


def test_of_nobody_is_nothing_known() -> None:
    assert volumes(Readers(), FRIDAY) is None
    assert known((FRIDAY, (0,) * 24)) == Readers(), "a day without readers teaches nothing"


def test_what_all_sites_tell_of_a_day_is_one_day() -> None:
    """Each as large as it is: a site of twice the readers counts twice."""
    readers = known((FRIDAY, MORNING), (FRIDAY, MORNING), (FRIDAY, EVENING))
    assert volumes(readers, MONDAY) == pytest.approx((*(4 / 3,) * 12, *(2 / 3,) * 12))


def test_a_day_counts_from_the_first_site_that_tells_of_it() -> None:
    readers = known((FRIDAY - 1, MORNING), (FRIDAY, EVENING))
    assert volumes(readers, MONDAY) == pytest.approx((1.0,) * 24), "the second day for as much as the first"


def test_who_tells_of_a_day_before_is_too_late() -> None:
    readers = known((FRIDAY - 1, MORNING), (FRIDAY, EVENING))
    assert told(readers, FRIDAY - 1, MORNING) is readers


def test_later_days_bend_what_is_known_by_a_fifth_each() -> None:
    readers = known(*((MONDAY - 7 + n, EVEN) for n in range(5)), (MONDAY, MORNING))
    assert volumes(readers, MONDAY + 1) == pytest.approx((*(1.2,) * 12, *(0.8,) * 12))


def test_weekends_are_days_of_their_own_once_there_was_one() -> None:
    readers = known((FRIDAY, MORNING))
    assert volumes(readers, SATURDAY) == volumes(readers, MONDAY), "until then they are taken for days like the others"
    for day in (SATURDAY, SUNDAY):
        readers = told(readers, day, EVENING)
    weekend, workday = volumes(readers, SATURDAY + 7), volumes(readers, MONDAY)
    assert weekend is not None
    assert workday == pytest.approx((*(2.0,) * 12, *(0.0,) * 12))
    assert sum(weekend[12:]) > sum(weekend[:12])


views_of_a_day = st.lists(st.integers(0, 10**6), min_size=24, max_size=24).map(tuple)


@given(st.lists(st.tuples(st.integers(FRIDAY, FRIDAY + 20), views_of_a_day), max_size=30))
def test_a_day_has_the_volumes_of_a_day_whoever_tells_what(days: list[tuple[int, tuple[int, ...]]]) -> None:
    readers = known(*days)
    found = volumes(readers, MONDAY)
    assert (found is None) == (not any(sum(views) for _, views in days))
    if found is not None:
        assert sum(found) == pytest.approx(24)
        assert min(found) >= 0
    assert CODEC.decode_record(CODEC.encode_record(readers)) == readers


def test_a_campaigns_day_passes_by_its_readers() -> None:
    passed, window = PassedByReaders(), Window(MONDAY * DAY_MS, (MONDAY + 1) * DAY_MS)
    noon = window.start_ms + DAY_MS // 2
    assert passed.of(Readers(), window, noon) is None
    readers = known((FRIDAY, MORNING))
    assert [passed.of(readers, window, window.start_ms + at) for at in (0, DAY_MS // 4, DAY_MS // 2)] == [0, 0.5, 1]
    assert passed.of(told(readers, MONDAY - 3, EVENING), window, noon) == pytest.approx(0.5), "at once, when it learns"
    assert passed.of(readers, window, noon) == 1


def test_a_day_in_another_zone_passes_over_two_of_its_readers_days() -> None:
    readers, nine = known((FRIDAY, MORNING)), 9 * 3_600_000
    tokyo = Window(MONDAY * DAY_MS - nine, (MONDAY + 1) * DAY_MS - nine)
    found = [PassedByReaders().of(readers, tokyo, tokyo.start_ms + hours * 3_600_000) for hours in (9, 15, 21)]
    assert found == pytest.approx([0, 0.5, 1])
