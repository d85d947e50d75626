"""The window of numbers against a model: what was taken never comes again, and what is missing is counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from node.core import limits
from node.wire.sequence import Window


@given(st.lists(st.integers(1, 4), min_size=1, max_size=40), st.data())
def test_frames_in_any_order_are_each_taken_once(sizes: list[int], data: st.DataObject) -> None:
    starts = [1 + sum(sizes[:place]) for place in range(len(sizes))]
    every = list(zip(starts, sizes, strict=True))
    arriving = data.draw(st.lists(st.sampled_from(every), max_size=80))
    window, taken, highest = Window(), set[int](), 0
    for first, count in arriving:
        fresh = first not in taken
        assert window.take(first, count) is fresh
        taken |= set(range(first, first + count))
        highest = max(highest, first + count - 1)
        assert window.lost == highest - len(taken)
        assert window.next == highest + 1


def test_gaps_are_bounded_and_the_oldest_stay_lost() -> None:
    window = Window()
    for number in range(2, 2 * limits.sequence_gaps_max + 4, 2):
        assert window.take(number, 1)
    assert window.lost == limits.sequence_gaps_max + 1
    assert not window.take(1, 1), "its gap has been given up"
    assert window.take(3, 1)
    assert window.lost == limits.sequence_gaps_max


def test_numbers_beyond_all_bounds_are_refused_and_change_nothing() -> None:
    window = Window()
    assert not window.take((1 << 63) - 2, 5)
    assert not window.take(1, 0) or window.next == 1
    assert window.take(1, 3)
    assert not window.take(2, 1)
    assert not window.take(3, 4), "half of it has come"
    assert (window.next, window.lost) == (4, 0)
