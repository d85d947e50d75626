"""The bid book: the row V20 of the vectors, and what an answer out of state owes."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.ads import bidbook as b
from node.ads import messages as m
from node.ads.targeting import SITE_NOT_ALLOWED, Targeting
from node.ads.view import TurnedAway
from node.core import limits

UNIT = 1_000_000
CATEGORY = "483"
MINUTE_MS = 60_000


def quote(campaign: str, cpm: float, **changed: object) -> m.Quote:
    creative = m.QuotedCreative(f"creative-{campaign}", "", "", "shop.example", "image/png", 300, 250)
    made = m.Quote(campaign, "adv", True, round(cpm * UNIT), (CATEGORY,), (creative,), 1)
    return msgspec.structs.replace(made, **changed)


def book(*quotes: m.Quote, registered: tuple[str, ...] | None = None, settled: bool = True) -> b.BidBook:
    found = b.BidBook(CATEGORY)
    for each in quotes:
        found.take(each, 0)
    found.enlist([q.campaign for q in quotes] if registered is None else registered, settled=settled)
    return found


def ask(found: b.BidBook, floor: float = 0.5, now_ms: int = 1_000) -> m.CategoryBidResponse:
    return b.answer(found, m.CategoryBidRequest("news.example", ((300, 250),), round(floor * UNIT)), now_ms)


def campaigns(answer: m.CategoryBidResponse) -> list[str]:
    return [offer.campaign_id for offer in answer.offers]


def test_v20_a_floor_rejects_and_says_so() -> None:
    answer = ask(book(quote("ten", 10), quote("three", 3)), floor=9.9)
    assert [(offer.campaign_id, offer.cpm_micros) for offer in answer.offers] == [("ten", 10 * UNIT)]
    assert (answer.rejected_by_floor, answer.best_rejected_micros) == (1, 3 * UNIT)


def test_v20_an_aged_quote_is_excluded_and_is_no_floor_rejection() -> None:
    aged = book(quote("twelve", 12))
    assert campaigns(ask(aged, now_ms=10 * MINUTE_MS)) == ["twelve"]
    answer = ask(aged, floor=20, now_ms=10 * MINUTE_MS + 1_000)
    assert (answer.offers, answer.rejected_by_floor, answer.complete, answer.missing) == ((), 0, False, ("twelve",))


def test_v20_a_site_that_is_not_allowed_gets_no_bid() -> None:
    elsewhere = ask(book(quote("elsewhere", 5, targeting=Targeting(sites=("other.example",)))))
    assert campaigns(elsewhere) == []
    assert elsewhere.turned_away == (TurnedAway("elsewhere", SITE_NOT_ALLOWED),), "and is named"
    both = Targeting(sites=("other.example", "news.example"))
    assert campaigns(ask(book(quote("here", 5, targeting=both)))) == ["here"]


@pytest.mark.parametrize(("settled", "expected"), [(True, ["known"]), (False, ["known", "stranger"])])
def test_v20_a_stranger_gets_no_bid_once_all_are_known(settled: bool, expected: list[str]) -> None:
    found = book(quote("known", 6), quote("stranger", 5), registered=("known",), settled=settled)
    assert campaigns(ask(found)) == expected
    assert not ask(found).complete, "it may have registered since, so its absence says nothing"
    found.enlist(("known", "stranger"), settled=True)
    assert found.strangers(0) == ()


def test_a_late_bidder_does_not_erase_its_category() -> None:
    """TR06. What it bid before stands for as long as a quote does; the answer only says that it is not whole."""
    found = book(quote("a", 5), quote("b", 4), registered=("a", "b", "late"))
    answer = ask(found)
    assert (campaigns(answer), answer.complete, answer.missing) == (["a", "b"], False, ("late",))


def test_before_the_directory_has_answered_nothing_is_complete() -> None:
    unlisted = b.BidBook(CATEGORY)
    unlisted.take(quote("a", 5), 0)
    answer = ask(unlisted)
    assert (campaigns(answer), answer.complete) == (["a"], False)


def test_a_shorter_list_erases_no_bid() -> None:
    """TR07. A partial push shrank a registry, and the campaigns that it left out were gone for good."""
    found = book(quote("a", 5), quote("b", 4))
    found.enlist(("a",), settled=False)
    assert campaigns(ask(found)) == ["a", "b"]
    found.enlist(("a",), settled=True)
    found.enlist(("a", "b"), settled=True)
    assert campaigns(ask(found)) == ["a", "b"]


def test_an_older_quote_never_replaces_a_newer() -> None:
    found = book(quote("a", 5, as_of_ms=10))
    found.take(quote("a", 1, as_of_ms=9), 5)
    assert ask(found).offers[0].cpm_micros == 5 * UNIT
    found.take(quote("a", 5, as_of_ms=11, active=False), 6)
    assert campaigns(ask(found)) == []


def test_who_has_no_money_today_comes_last_and_the_list_is_cut() -> None:
    many = [quote(f"k{n:03}", 1 + n) for n in range(limits.bidder_campaigns_max)]
    answer = ask(book(quote("rich", 999, solvent=False), *many))
    assert answer.truncated
    assert "rich" not in campaigns(answer)
    assert campaigns(answer)[0] == f"k{limits.bidder_campaigns_max - 1:03}"


NAMES = st.sampled_from(["a", "b", "c", "d"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), NAMES, st.booleans(), st.integers(0, 3)),
        st.tuples(st.just("enlist"), st.sets(NAMES), st.booleans(), st.just(0)),
        st.tuples(st.just("confirm"), st.none(), st.booleans(), st.just(0)),
        st.tuples(st.just("pass"), st.none(), st.booleans(), st.integers(0, 7)),
    ),
    max_size=25,
)


@given(STEPS)
def test_what_the_book_says_follows_from_its_bids_and_the_register(steps: list[tuple[str, Any, bool, int]]) -> None:
    """Against the definitions, read off all bids."""
    found, now_ms = b.BidBook(CATEGORY), 0
    bids: dict[str, tuple[m.Quote, int]] = {}
    registered: set[str] | None = None
    settled = False
    for step, subject, yes, number in steps:
        match step:
            case "take":
                taken = quote(subject, 1, active=yes, as_of_ms=number)
                found.take(taken, now_ms)
                if subject not in bids or bids[subject][0].as_of_ms <= number:
                    bids[subject] = (taken, now_ms)
            case "enlist":
                found.enlist(sorted(subject), settled=yes)
                registered, settled = subject, yes
            case "confirm":
                found.confirm(settled=yes)
                settled = yes
            case _:
                now_ms += number * MINUTE_MS
        counting = {name for name, (_, taken_ms) in bids.items() if now_ms - taken_ms <= b.QUOTE_AGE_MS_MAX}
        missing = (registered or set()) - counting
        strangers = {
            name
            for name in counting
            if bids[name][0].active and settled and registered is not None and name not in registered
        }
        assert {name: (bid.quote, bid.taken_ms) for name, bid in found.bids.items()} == bids
        assert sorted(found.missing(now_ms)) == sorted(missing)
        assert {name for name in "abcd" if found.lacks(name, now_ms)} == missing
        assert sorted(found.strangers(now_ms)) == sorted(strangers)
        assert found.complete(now_ms) == (registered is not None and settled and not missing and not strangers)


def test_an_answer_names_no_more_missing_than_a_message_holds() -> None:
    late = tuple(f"k{number:03}" for number in range(limits.bidders_missing_told_max + 1))
    answer = ask(book(registered=late))
    assert (answer.complete, len(answer.missing)) == (False, limits.bidders_missing_told_max)


def test_a_bid_outlives_two_lost_renewals_and_is_called_stale_by_then() -> None:
    assert 3 * b.QUOTE_RENEWAL_MS < b.QUOTE_AGE_MS_MAX
    assert 2 * b.QUOTE_RENEWAL_MS < b.QUOTE_STALE_MS < 3 * b.QUOTE_RENEWAL_MS
