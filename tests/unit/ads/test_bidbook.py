"""The bid book: the row V20 of the vectors, and what an answer out of state owes."""

import msgspec
import pytest

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


def book(*quotes: m.Quote, registered: tuple[str, ...] | None = None, settled: bool = True) -> b.Book:
    found = b.Book(CATEGORY)
    for each in quotes:
        found = b.taken(found, each, 0)
    return b.listed(found, [q.campaign for q in quotes] if registered is None else registered, settled=settled)


def ask(found: b.Book, floor: float = 0.5, now_ms: int = 1_000) -> m.CategoryBidResponse:
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
    assert b.listed(found, ("known", "stranger"), settled=True).strangers(0) == ()


def test_a_late_bidder_does_not_erase_its_category() -> None:
    """TR06. What it bid before stands for as long as a quote does; the answer only says that it is not whole."""
    found = book(quote("a", 5), quote("b", 4), registered=("a", "b", "late"))
    answer = ask(found)
    assert (campaigns(answer), answer.complete, answer.missing) == (["a", "b"], False, ("late",))


def test_before_the_directory_has_answered_nothing_is_complete() -> None:
    answer = ask(b.taken(b.Book(CATEGORY), quote("a", 5), 0))
    assert (campaigns(answer), answer.complete) == (["a"], False)


def test_a_shorter_list_erases_no_bid() -> None:
    """TR07. A partial push shrank a registry, and the campaigns that it left out were gone for good."""
    whole = book(quote("a", 5), quote("b", 4))
    partial = b.listed(whole, ("a",), settled=False)
    assert campaigns(ask(partial)) == ["a", "b"]
    assert campaigns(ask(b.listed(b.listed(whole, ("a",), settled=True), ("a", "b"), settled=True))) == ["a", "b"]


def test_an_older_quote_never_replaces_a_newer() -> None:
    found = b.taken(book(quote("a", 5, as_of_ms=10)), quote("a", 1, as_of_ms=9), 5)
    assert ask(found).offers[0].cpm_micros == 5 * UNIT
    withdrawn = b.taken(found, quote("a", 5, as_of_ms=11, active=False), 6)
    assert campaigns(ask(withdrawn)) == []


def test_who_has_no_money_today_comes_last_and_the_list_is_cut() -> None:
    many = [quote(f"k{n:03}", 1 + n) for n in range(limits.bidder_campaigns_max)]
    answer = ask(book(quote("rich", 999, solvent=False), *many))
    assert answer.truncated
    assert "rich" not in campaigns(answer)
    assert campaigns(answer)[0] == f"k{limits.bidder_campaigns_max - 1:03}"
