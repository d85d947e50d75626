"""Whether what entities count themselves is what the facts say: pure.

An entity's counters change in the transactions of its facts, so they agree at every moment between two of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from node.ads.budget import BudgetState
from node.ads.facts import CallToAction, Click, Folded, Impression, MoneyHeld, MoneyReleased
from node.ads.money import format_money
from node.core.errors import RemoteProtocolError
from node.store.port import StoredFact
from node.wire.codec import CODEC
from node.wire.registry import REGISTRY

_COUNTED = frozenset(
    REGISTRY.name_of(shape) for shape in (CallToAction, Click, Folded, Impression, MoneyHeld, MoneyReleased)
)


class Difference(msgspec.Struct, frozen=True):
    """`kind` says what differs of `object`: as it is stored or counted, and as the facts make it."""

    kind: str
    object: str
    found: str
    expected: str


class Counted(msgspec.Struct, frozen=True):
    """What a campaign counts itself."""

    impressions: int
    clicks: int
    budget: BudgetState
    ctas: int = 0
    folds: int = 0


class Counters:
    """What all campaigns and advertisers should have counted, by the facts so far; micros. Of what was counted after
    `settled_ms` (wall) an advertiser may not have been told yet."""

    def __init__(self, settled_ms: int) -> None:
        self._settled_ms = settled_ms
        self._impressions: Counter[str] = Counter()
        self._clicks: Counter[str] = Counter()
        self._ctas: Counter[str] = Counter()
        self._folds: Counter[str] = Counter()
        self._held: Counter[str] = Counter()
        self._days: Counter[tuple[str, str]] = Counter()  # campaign, day
        self._charged: Counter[str] = Counter()  # by advertiser
        self._settled: Counter[str] = Counter()  # and of that up to `settled_ms`
        self.at = 0

    def add(self, facts: Sequence[StoredFact]) -> None:
        """Facts that follow those before. What can't be read is passed over: the ledger tells of it."""
        for stored in facts:
            self.at = stored.offset
            if stored.type in _COUNTED:
                try:
                    self._count(CODEC.decode_record(stored.body))
                except RemoteProtocolError:
                    continue

    def _count(self, fact: msgspec.Struct) -> None:
        match fact:
            case Impression(campaign=campaign, price_micros=price):
                self._impressions[campaign] += 1
                self._days[campaign, fact.day] += price
                self._charged[fact.advertiser] += price
                self._settled[fact.advertiser] += price if fact.at_ms <= self._settled_ms else 0
                self._held[campaign] -= fact.from_held_micros
            case Click(campaign=campaign):
                self._clicks[campaign] += 1
            case CallToAction(campaign=campaign):
                self._ctas[campaign] += 1
            case Folded(campaign=campaign):
                self._folds[campaign] += 1
            case MoneyHeld(campaign=campaign, amount_micros=amount):
                self._held[campaign] += amount
            case MoneyReleased(campaign=campaign, amount_micros=amount):
                self._held[campaign] -= amount
            case _:
                pass

    def campaign(self, campaign: str, own: Counted) -> list[Difference]:
        """How a campaign's own counters differ."""
        budget = own.budget
        pairs = (
            ("impressions", str(own.impressions), str(self._impressions[campaign])),
            ("clicks", str(own.clicks), str(self._clicks[campaign])),
            ("calls to action", str(own.ctas), str(self._ctas[campaign])),
            ("folds", str(own.folds), str(self._folds[campaign])),
            (
                f"spend of {budget.day}",
                format_money(budget.spent_micros),
                format_money(self._days[campaign, budget.day]),
            ),
            ("held", format_money(budget.escrow_micros), format_money(self._held[campaign])),
        )
        return list(_differing(f"campaign/{campaign}", pairs))

    def advertiser(self, advertiser: str, charged_micros: int) -> list[Difference]:
        """How an advertiser's own count of what it was charged differs: less than is settled, or more than was."""
        if self._settled[advertiser] <= charged_micros <= self._charged[advertiser]:
            return []
        expected = format_money(self._charged[advertiser])
        return [Difference("charged", f"advertiser/{advertiser}", format_money(charged_micros), expected)]

    def strangers(self, campaigns: Iterable[str]) -> list[Difference]:
        """Campaigns that facts speak of and that do not exist."""
        known = set(campaigns)
        counters = (self._impressions, self._clicks, self._ctas, self._folds, self._held)
        counted = sorted({name for counter in counters for name in counter} - known)
        return [
            Difference("campaign", f"campaign/{name}", "does not exist", f"{self._impressions[name]} impressions")
            for name in counted
        ]


def _differing(about: str, pairs: Iterable[tuple[str, str, str]]) -> Iterator[Difference]:
    return (Difference(what, about, found, expected) for what, found, expected in pairs if found != expected)
