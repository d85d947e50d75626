"""Ids that were settled: nothing counts twice whatever clocks do, and where they agree nothing is lost."""

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.ads.budget import SettledMinute
from node.ads.settled_ids import MINUTE_MS, SettledIds, forgettable
from node.core.limits import folded_minutes_kept, settled_minutes_kept, token_skew_buckets_max

NOON = int(dt.datetime(2026, 7, 14, 12, tzinfo=dt.UTC).timestamp() * 1000)
MINUTE = NOON // MINUTE_MS
HOUR = 60
KEPT = settled_minutes_kept


def fill(ids: SettledIds, minutes: range, ahead: int = 0) -> None:
    """One id a minute, told to an owner whose clock is so many minutes ahead."""
    for minute in minutes:
        assert ids.add(f"r{minute}", minute, (minute + ahead) * MINUTE_MS)


@pytest.mark.parametrize(
    ("minutes", "now", "count"),
    [
        ([], 100, 0),
        ([1], 100, 0),
        ([1, 2, 3], 100, 0),
        ([1, 2, 3, 4], 100, 1),
        ([1, 2, 3, 4, 5], 4, 1),
        ([1, 2, 3, 4, 5], 3, 0),
        ([1, 2, 3, 4, 5], -100, 0),
        ([1, 2, 3, 900, 901], 5, 2),
    ],
)
def test_what_is_forgotten_is_old_and_is_never_all(minutes: list[int], now: int, count: int) -> None:
    assert forgettable(minutes, now, kept=3) == count


def test_ids_survive_their_owner_and_are_forgotten_by_the_minute() -> None:
    ids = SettledIds()
    fill(ids, range(MINUTE, MINUTE + KEPT))
    again = SettledIds(ids.minutes())
    assert f"r{MINUTE}" in again
    assert "other" not in again
    fill(again, range(MINUTE + KEPT, MINUTE + KEPT + 1))
    assert f"r{MINUTE}" not in again
    assert f"r{MINUTE + 1}" in again
    assert not again.add(f"r{MINUTE}", MINUTE, NOON), "what it was can't be told any more"
    assert not SettledIds(again.minutes()).add("never seen", MINUTE, NOON), "nor by its next owner"
    assert again.add("never seen", MINUTE + 1, NOON)


def test_an_owner_whose_clock_jumps_forgets_nothing_that_may_come_again() -> None:
    """Seed 1158: ahead by an hour for a second, in which one other impression came."""
    ids = SettledIds()
    fill(ids, range(MINUTE - 2 * KEPT, MINUTE + 1))
    assert ids.add("other", MINUTE, NOON + HOUR * MINUTE_MS)
    assert not ids.add(f"r{MINUTE}", MINUTE, NOON + HOUR * MINUTE_MS)
    assert not ids.add(f"r{MINUTE}", MINUTE, NOON)
    assert ids.add("next", MINUTE, NOON)


def test_an_ad_server_whose_clock_jumps_makes_nobody_forget() -> None:
    ids = SettledIds()
    fill(ids, range(MINUTE - 2 * KEPT, MINUTE + 1))
    assert ids.add("ahead", MINUTE + HOUR, NOON)
    assert ids.add("late", MINUTE - token_skew_buckets_max, NOON)
    assert not ids.add(f"r{MINUTE - token_skew_buckets_max}", MINUTE - token_skew_buckets_max, NOON)
    fill(ids, range(MINUTE + 1, MINUTE + HOUR))
    assert not ids.add("ahead", MINUTE + HOUR, NOON + HOUR * MINUTE_MS), "its url is good again, now for all others"


def test_what_was_signed_before_all_clocks_jumped_together_is_counted_once_they_are_back() -> None:
    ids = SettledIds()
    fill(ids, range(MINUTE - KEPT, MINUTE + 1))
    fill(ids, range(MINUTE + HOUR, MINUTE + HOUR + 3))
    fill(ids, range(MINUTE + 1, MINUTE + 2 * KEPT))
    assert ids.add("late", MINUTE + KEPT, NOON + 2 * KEPT * MINUTE_MS)


@pytest.mark.parametrize("kept", [settled_minutes_kept, folded_minutes_kept])
def test_a_clock_that_was_years_ahead_holds_no_more_than_one_minute_of_its_own(kept: int) -> None:
    ids = SettledIds(kept=kept)
    assert ids.add("ahead", MINUTE * 2, NOON)
    for minute in range(MINUTE, MINUTE + 5 * kept):
        assert ids.add(f"r{minute}", minute, minute * MINUTE_MS)
    assert len(ids.minutes()) == kept + 2, "as many as are kept, the one that is ahead, and what is forgotten"


def test_what_was_written_before_minutes_were_forgotten_by_their_mark_is_read() -> None:
    ids = SettledIds((SettledMinute(MINUTE, b"12345678abcdefgh"),))
    assert ids.minutes() == (SettledMinute(MINUTE, b"12345678abcdefgh"),)
    assert ids.add("a", 0, NOON), "a sender of before says no minute: it is the present one"
    assert [len(each.ids) for each in ids.minutes()] == [24]


CLOCKS = st.sampled_from([0, 0, 0, -HOUR, -KEPT, -1, 1, KEPT, HOUR, 365 * 24 * HOUR])


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30), CLOCKS, CLOCKS, st.booleans()), min_size=1, max_size=80)
)
def test_nothing_counts_twice_whatever_clocks_say(events: list[tuple[int, int, int, int, bool]]) -> None:
    """Each: how many minutes pass, whose repeat it may be, how wrong the signer's and the owner's clock are, and
    whether the owner is another from now on."""
    ids, now, signed, counted = SettledIds(), MINUTE, {}, set()
    for passed, name, signer, owner, moved in events:
        now += passed
        minute = signed.setdefault(name, now + signer)
        if moved:
            ids = SettledIds(ids.minutes())
        if ids.add(f"r{name}", minute, (now + owner) * MINUTE_MS):
            assert name not in counted
            counted.add(name)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-4, 0)), min_size=1, max_size=120))
def test_nothing_is_lost_where_clocks_agree(events: list[tuple[int, int]]) -> None:
    """A new id each time, signed so many minutes ago: within what a token lives, and a minute of difference."""
    ids, now = SettledIds(), MINUTE
    for number, (passed, age) in enumerate(events):
        now += passed
        assert ids.add(f"r{number}", now + age, now * MINUTE_MS)
