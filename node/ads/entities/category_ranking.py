"""Which of a page's categories are auctioned, and what each is worth on the site, as its rankers said last.

No auction waits for a ranker: it goes by the last word, and what is missing or old is asked for on the side, so the
next one knows more. A ranker that stays silent counts for less with every hour.

A category that nobody bids on takes no place from one that somebody bids on; and one whose campaigns have changed is
auctioned whatever its rank, so that no pool goes on with what a campaign was before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from node.actors.actor import Context
from node.ads import messages as m
from node.ads.auction import PRIOR_WEIGHT, rank_categories
from node.ads.entities.ranker import KIND
from node.ads.ranking import ranker_id, remembered_quote
from node.ads.taxonomy import load_taxonomy
from node.core.clock import Moment
from node.core.ids import EntityRef
from node.core.limits import ranks_told_max

ASK_TIMEOUT_MS = 1_000
RENEW_MS = 4 * 60_000  # before the next periodic auction
IDLE_MS = 30 * 60_000  # should a campaign's change be missed, then for no longer than this


class RankTold(msgspec.Struct, frozen=True):
    """A ranker's answer, or what came in its place."""

    category: str
    outcome: Any


class CategoryRanking:
    """Lives in its auctioneer's cell, which hands every `RankTold` to `hear`; in memory only, and so by the
    monotonic clock, in ms."""

    def __init__(self, site: str) -> None:
        self._site = site
        self._told: dict[str, tuple[m.Rank, Moment]] = {}  # what was told longest ago comes first
        self._asked: set[str] = set()
        self._idle: dict[str, int] = {}  # since when nobody bids
        self._changed: set[str] = set()

    # ---- which are auctioned

    def changed(self, categories: Iterable[str]) -> None:
        """Campaigns that bid on these have changed."""
        self._changed.update(categories)

    def settled(self) -> None:
        """Every page that the changes are about is being auctioned."""
        self._changed.clear()

    def chosen(self, categories: tuple[tuple[str, float], ...], mono_ms: int) -> tuple[str, ...]:
        """Of a page's categories with their confidences."""
        names = [category for category, _ in categories]
        weights = {name: self._draw(name, mono_ms) for name in names if name in self._told}
        idle = {name for name in names if name in self._idle and mono_ms - self._idle[name] < IDLE_MS}
        ranked = [category for category, _ in rank_categories(categories, weights, idle)]
        wanted = [name for name in names if not self._changed.isdisjoint(_reach(name))] if self._changed else ()
        return tuple(dict.fromkeys((*ranked, *wanted)))

    def found(self, categories: Iterable[str], answers: Mapping[str, m.CategoryBidResponse], mono_ms: int) -> None:
        """What the bidders of these, and of all above them, answered: whether anybody bids there."""
        for category in dict.fromkeys(categories):
            given = [answers.get(each) for each in _reach(category)]
            if all(answer is not None and answer.complete and not _anybody(answer) for answer in given):
                self._idle[category] = mono_ms
            else:
                self._idle.pop(category, None)

    # ---- what they are worth

    def renew(self, ctx: Context, categories: Iterable[str]) -> None:
        """Ask for the weights of those of which nothing, or nothing recent, is known."""
        now_ms = ctx.moment().mono_ms
        for category in categories:
            at_ms = self._told[category][1].mono_ms if category in self._told else now_ms - RENEW_MS
            if category not in self._asked and now_ms - at_ms >= RENEW_MS:
                self._asked.add(category)
                ranker = EntityRef(KIND, ranker_id(category, self._site))
                ctx.ask(ranker, m.GetRank(), ASK_TIMEOUT_MS, lambda outcome, of=category: RankTold(of, outcome))  # type: ignore[misc]

    def hear(self, told: RankTold, now: Moment) -> None:
        self._asked.discard(told.category)
        if isinstance(told.outcome, m.Rank):
            self._told.pop(told.category, None)
            self._told[told.category] = (told.outcome, now)
            while len(self._told) > ranks_told_max:
                del self._told[next(iter(self._told))]

    def mean(self, category: str) -> float:
        """The expected weight, as it was told last: prices follow from it, so nothing random is in it."""
        known = self._told.get(category)
        return PRIOR_WEIGHT if known is None else known[0].mean

    def heard(self) -> tuple[m.RankHeard, ...]:
        """All that is known, the most valuable first."""
        found = (m.RankHeard(name, rank.mean, rank.draw, at.wall_ms) for name, (rank, at) in self._told.items())
        return tuple(sorted(found, key=lambda rank: (-rank.mean, rank.category)))

    def _draw(self, category: str, mono_ms: int) -> float:
        rank, at = self._told[category]
        return remembered_quote((rank.draw, at.mono_ms + RENEW_MS), mono_ms)


def _reach(category: str) -> tuple[str, ...]:
    return (category, *load_taxonomy().ancestors(category))


def _anybody(answer: m.CategoryBidResponse) -> bool:
    return bool(answer.offers or answer.rejected_by_floor or answer.other_sizes or answer.turned_away)
