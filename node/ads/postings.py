"""Double entry: what each fact of money moves between which accounts. Every transaction's postings sum to nothing.

```
money held       advertiser ──▶ held
money released   held ──▶ advertiser
impression       held (what was set aside), advertiser (the rest) ──▶ publisher, platform margin
click            nothing: an ad is paid by the impression
```

A positive amount goes into an account. So an advertiser's balance is what it owes (below zero), a publisher's what it
is owed, and what is held is what campaigns have set aside.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from node.ads.facts import Impression, MoneyHeld, MoneyReleased

ADVERTISER: Final = "advertiser"
PUBLISHER: Final = "publisher"
HELD: Final = "held"
MARGIN: Final = "margin"
UNKNOWN: Final = "-"  # an owner that a fact of an older release does not name; no id begins so


class Posting(NamedTuple):
    """So much into (or, below zero, out of) an account: `kind` and whose it is."""

    kind: str
    owner: str
    micros: int


def postings_of(fact: msgspec.Struct) -> tuple[Posting, ...]:
    """The transaction of a fact; empty for one that moves no money, and without postings of nothing."""
    match fact:
        case MoneyHeld(campaign=campaign, advertiser=advertiser, amount_micros=amount):
            moved = _moved(campaign, advertiser, amount)
        case MoneyReleased(campaign=campaign, advertiser=advertiser, amount_micros=amount):
            moved = _moved(campaign, advertiser, -amount)
        case Impression(price_micros=price, from_held_micros=held, margin_micros=margin):
            moved = (
                Posting(ADVERTISER, fact.advertiser or UNKNOWN, held - price),
                Posting(HELD, fact.campaign, -held),
                Posting(PUBLISHER, fact.publisher or UNKNOWN, price - margin),
                Posting(MARGIN, MARGIN, margin),
            )
        case _:
            return ()
    return tuple(posting for posting in moved if posting.micros)


def campaign_of(fact: msgspec.Struct) -> str:
    """The campaign whose money it is."""
    match fact:
        case MoneyHeld(campaign=campaign) | MoneyReleased(campaign=campaign) | Impression(campaign=campaign):
            return campaign
        case _:
            return UNKNOWN


def _moved(campaign: str, advertiser: str, amount: int) -> tuple[Posting, ...]:
    return (Posting(ADVERTISER, advertiser or UNKNOWN, -amount), Posting(HELD, campaign, amount))
