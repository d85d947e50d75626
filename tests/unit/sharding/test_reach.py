"""When a would-be coordinator counts as cut off from the store."""

from __future__ import annotations

from node.sharding.reach import Reach


def ticks(reach: Reach, start: int, end: int) -> list[bool]:
    """Time passes in steps of a tenth of the patience; what was said at each."""
    said = []
    for now in range(start, end + 1, 10):
        reach.pass_time(now)
        said.append(reach.lost)
    return said


def test_it_is_lost_when_nothing_was_answered_for_as_long_as_patience_lasts() -> None:
    reach = Reach(100)
    assert not any(ticks(reach, 0, 500)), "who asks nothing knows of nothing"
    reach.asked(500)
    for now in range(510, 600, 10):
        reach.answered(False, now)
        reach.asked(now)
        assert ticks(reach, now, now) == [False]
    assert ticks(reach, 600, 600) == [True]


def test_one_good_answer_in_time_is_enough_and_a_slow_one_is_one() -> None:
    reach = Reach(100)
    ticks(reach, 0, 0)
    reach.asked(0)
    assert not any(ticks(reach, 10, 90))
    reach.answered(True, 90)
    assert not any(ticks(reach, 100, 500))


def test_it_is_over_when_all_was_answered_for_as_long_or_the_lease_was_given() -> None:
    reach = Reach(100)
    ticks(reach, 0, 0)
    reach.asked(0)
    assert ticks(reach, 10, 100)[-1]
    reach.answered(True, 110)
    assert all(ticks(reach, 110, 150))
    reach.answered(False, 160)
    reach.answered(True, 170)
    assert ticks(reach, 180, 270) == [True] * 9 + [False], "a flap begins it anew"
    reach.asked(280)
    assert ticks(reach, 280, 380)[-1]
    reach.found()
    assert not reach.lost


def test_time_that_a_process_stood_still_says_nothing() -> None:
    reach = Reach(100)
    ticks(reach, 0, 0)
    reach.asked(0)
    ticks(reach, 10, 20)
    assert ticks(reach, 30_000, 30_090) == [False] * 10, "the answer that waits has not been read yet"
    assert ticks(reach, 30_100, 30_100) == [True]
