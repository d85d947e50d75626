"""What an explanation says of a page that left a pool's candidates out: unknown, judged long ago, or of no category."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from node.admin import domain_views
from node.admin import protocol as p
from node.admin.page_words import page_words, told_of_page
from node.ads import messages as m
from node.ads.entities.page_shelf import PageShelfState
from node.ads.entities.site_state import FRESHNESS_WINDOW_MS, SiteState
from node.ads.explain import ServeDecision

SITE, PAGE = "news.example", "https://news.example/rome"
NOW_MS = FRESHNESS_WINDOW_MS * 3


def entry(at_ms: int = NOW_MS, categories: tuple[tuple[str, float], ...] = (("653", 0.9),)) -> m.PageEntry:
    return m.PageEntry(PAGE, categories=categories, classified_at_ms=at_ms, slots=("top",))


def decision(**given: Any) -> ServeDecision:
    said = {"reason": "no_eligible_candidate", "page_categories": ()} | given
    return ServeDecision("r", NOW_MS, SITE, "top", PAGE, candidates=(), **said)


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({}, "the page is unknown to the site"),
        ({PAGE: entry(at_ms=1)}, "the page was judged too long ago"),
        ({PAGE: entry(categories=())}, "no category was found in the page's text"),
        ({PAGE: entry()}, ""),
    ],
)
def test_what_is_known_of_the_page_is_said(known: dict[str, m.PageEntry], words: str) -> None:
    said = page_words(decision(), known)
    assert said.startswith(words)
    assert bool(said) is bool(words)


class Kept:
    """A store with one site, whose page is on its shelf; or one that does not answer."""

    def __init__(self, *pages: m.PageEntry, answers: bool = True) -> None:
        self.asked = 0
        self._pages, self._answers = pages, answers

    async def one(self, _kind: str, name: str, _shape: type) -> SiteState:
        self.asked += 1
        if not self._answers:
            raise p.AdminRefusal(7, "E-STORE", "the store does not answer")
        return SiteState(name, name, "ann", (), 1, b"s" * 32, shelves=1)

    async def some(self, _kind: str, names: list[str], _shape: type) -> list[PageShelfState]:
        return [PageShelfState(SITE, number, self._pages) for number, _ in enumerate(names)]


def why(found: ServeDecision, kept: Kept) -> str:
    shown = domain_views.explanation(found)
    return asyncio.run(told_of_page(cast("Any", kept), found, shown))


def test_an_explanation_says_that_the_page_is_unknown() -> None:
    """`not_auctioned_for_page` alone did not tell it from a page that nobody bids for."""
    said = why(decision(), Kept())
    assert said.startswith("no eligible candidate; the page is unknown to the site: its tag posts")
    assert f"promovolvectl page list {SITE}" in said
    assert why(decision(), Kept(entry())) == "no eligible candidate"


def test_a_store_that_does_not_answer_keeps_nobody_from_the_decision() -> None:
    assert why(decision(), Kept(answers=False)) == "no eligible candidate"


@pytest.mark.parametrize(
    "given", [{"reason": "no_pool"}, {"winner": "rail-1", "reason": ""}, {"page_categories": ("653",)}]
)
def test_of_another_reason_the_store_is_not_asked(given: dict[str, Any]) -> None:
    kept = Kept()
    why(decision(**given), kept)
    assert kept.asked == 0
