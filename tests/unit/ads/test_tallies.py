"""What is counted for operators: by the hour, within bounds, and unknown urls beside the known one that was meant."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from node.ads import messages as m
from node.ads.entities.auction_tally import AuctionTally
from node.ads.entities.site_learning import FloorLearning
from node.ads.entities.site_state import SiteState
from node.ads.floors.demand import Demand
from node.ads.pages_compared import lacking, page_hash
from node.ads.tally import HOUR_MS, HOURS, OTHERS, HourlyCount, Tally
from node.ads.unknown_pages import MINUTE_MS, UnknownPages
from node.core import limits

NOW = 1_700_000_000_000 // HOUR_MS * HOUR_MS + 10 * MINUTE_MS
SITE = "https://news.example"


def test_counts_stand_under_the_hour_in_which_they_came() -> None:
    tally = Tally()
    tally.add("late", NOW - 23 * HOUR_MS)
    tally.add("late", NOW - HOUR_MS, 2)
    tally.add("late", NOW, 3)
    tally.add("other", NOW)
    assert tally.told(NOW) == (HourlyCount("late", 3, 2, 6), HourlyCount("other", 1, 0, 1))
    assert tally.told(NOW + HOUR_MS) == (HourlyCount("late", 0, 3, 5), HourlyCount("other", 0, 1, 1))
    assert tally.told(NOW + HOURS * HOUR_MS) == ()


def test_no_number_of_labels_or_hours_makes_a_tally_grow_for_ever() -> None:
    tally = Tally()
    for number in range(2 * limits.tally_labels_max):
        tally.add(f"campaign-{number}", NOW)
    found = {count.label: count.day for count in tally.told(NOW)}
    assert len(found) == limits.tally_labels_max + 1
    assert found[OTHERS] == limits.tally_labels_max
    for hour in range(3 * HOURS):
        tally.add("x", NOW + hour * HOUR_MS)
    assert len(tally._hours) == HOURS
    tally.add("x", NOW)  # a clock that was set back: what it had made the future is forgotten
    assert tally.told(NOW) == (HourlyCount("x", 1, 0, 1),)


def test_question_11_who_was_late_is_counted_by_category_and_campaign() -> None:
    tally = AuctionTally()
    late = m.CategoryBidResponse("653", (), 0, complete=False, missing=("rail", "bus"))
    tally.answered("653", late, NOW)
    tally.answered("653", late, NOW + HOUR_MS)
    tally.answered("1", None, NOW + HOUR_MS)
    tally.answered("3", m.CategoryBidResponse("3", (), 0, complete=False), NOW + HOUR_MS)
    tally.answered("2", m.CategoryBidResponse("2", (), 0, complete=True), NOW + HOUR_MS)
    told = tally.told(4, 1, (), NOW + HOUR_MS)
    assert {(count.label, count.this_hour, count.last_hour) for count in told.late} == {
        ("653|rail", 1, 1),
        ("653|bus", 1, 1),
        ("1|", 1, 0),
        ("3|?", 1, 0),
    }
    heard = {row.category: (row.answered_ms, row.complete) for row in told.bidders}
    then = NOW + HOUR_MS
    assert heard == {"1": (0, False), "3": (then, False), "653": (then, False), "2": (then, True)}
    assert (told.pages, told.waiting) == (4, 1)


def test_question_24_an_unknown_url_stands_beside_the_known_one_that_is_written_most_like_it() -> None:
    known = {f"{SITE}/food/", f"{SITE}/food/bread?id=7", f"{SITE}/cars", "https://other.example/food"}
    unknown = UnknownPages()
    for url in (f"{SITE}/food", "http://www.news.example/Cars/#top", f"{SITE}/food/bread?id=8", f"{SITE}/food"):
        unknown.viewed(url, NOW)
    unknown.viewed("https://third.example/food", NOW + 1)
    unknown.viewed(f"{SITE}/cars", NOW + 2)  # it is known by now
    found = {page.url: (page.views, page.nearest) for page in unknown.told(known)}
    assert found == {
        f"{SITE}/food": (2, f"{SITE}/food/"),
        "http://www.news.example/Cars/#top": (1, f"{SITE}/cars"),
        f"{SITE}/food/bread?id=8": (1, f"{SITE}/food/bread?id=7"),
        "https://third.example/food": (1, ""),
    }
    assert unknown.told(known)[0].url == f"{SITE}/food", "the most viewed first"
    assert [page.nearest for page in unknown.told({f"{SITE}/cars"})] == [*([f"{SITE}/cars"] * 3), ""]


def test_question_24_unknown_urls_are_counted_by_the_minute_and_kept_within_bounds() -> None:
    unknown = UnknownPages()
    for number in range(2 * limits.unknown_pages_kept):
        unknown.viewed(f"{SITE}/{number}", NOW)
    assert unknown.last_minute(NOW) == 0, "the minute is not over"
    assert unknown.last_minute(NOW + MINUTE_MS) == 2 * limits.unknown_pages_kept
    assert unknown.last_minute(NOW + 2 * MINUTE_MS) == 0
    kept = unknown.told(())
    assert {page.url for page in kept} == {
        f"{SITE}/{number}" for number in range(limits.unknown_pages_kept, 2 * limits.unknown_pages_kept)
    }


def test_question_28_a_sweep_that_decides_what_held_already_is_counted_apart_and_is_no_fact() -> None:
    written: list[Any] = []
    ctx = SimpleNamespace(wall_ms=lambda: NOW, persist=lambda _, *, facts, then: written.extend(facts))
    learning, state = FloorLearning("news.example"), SiteState("news.example", "news.example", "ann", (), 100_000, b"")
    two = Demand(2, 0, 5_000_000, 4_000_000, 4_000_000)
    ticks = 2 * (8 * 4 + 60) + 8  # two whole cycles, and the beginning of a third
    for _ in range(ticks):
        learning.take(state, m.DemandSeen({"653": two, "": two}))
        state = learning.tick(cast("Any", ctx), state)
    found = {count.label: count.day for count in learning.tally.told(NOW)}
    assert (found["sweep decided"], found["sweep without a change"]) == (2, 2), "a category's, and the site's own"
    assert len(written) == 2
    assert found["tick pushed"] + found["tick without a change"] == ticks
    assert found["tick without a change"] > found["tick pushed"]


def test_pages_that_one_keeps_and_the_other_lacks_are_named_within_bounds() -> None:
    urls = [f"{SITE}/{number}" for number in range(2 * limits.lacking_pages_told_max)]
    wanted = [page_hash(url) for url in urls]
    assert lacking(wanted, urls) == m.PagesLacking((), 0)
    assert lacking(wanted, urls[1:]) == m.PagesLacking((page_hash(urls[0]),), 1)
    found = lacking(wanted, ())
    assert (len(found.urls), found.count) == (limits.lacking_pages_told_max, len(urls))
