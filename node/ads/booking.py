"""Which facts a change of a campaign's account implies: pure, over the account before and after it.

Every micro that an account sets aside, gives back or pays is in exactly one fact, so that the books (`node.ads.ledger`)
can be made from facts alone and compared with the account.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from node.ads import messages as m
from node.ads.budget import BudgetState
from node.ads.facts import CallToAction, Click, Folded, Impression, MoneyHeld, MoneyReleased

PPM: Final = 1_000_000
NOWHERE: Final = m.Inventory("", "", "UTC", 0)
Engagement = m.RecordClick | m.RecordCta | m.RecordFold
_FACTS: Final[Mapping[type[Engagement], type[Click] | type[CallToAction] | type[Folded]]] = {
    m.RecordClick: Click,
    m.RecordCta: CallToAction,
    m.RecordFold: Folded,
}


class Payer(msgspec.Struct, frozen=True):
    """Whose account it is."""

    campaign: str
    advertiser: str


def margin_micros(price_micros: int, margin_ppm: int) -> int:
    """What the platform keeps of a price, in its own disfavour to the micro."""
    return price_micros * margin_ppm // PPM


def money_facts(
    payer: Payer, before: BudgetState, after: BudgetState, *, paid_micros: int = 0
) -> tuple[MoneyHeld | MoneyReleased, ...]:
    """What was set aside or given back between two states of an account, of which `paid_micros` were paid meanwhile."""
    held = after.escrow_micros - before.escrow_micros + from_held_micros(before, after, paid_micros)
    if held > 0:
        return (MoneyHeld(payer.campaign, payer.advertiser, held, after.day),)
    return (MoneyReleased(payer.campaign, payer.advertiser, -held, after.day),) if held else ()


def from_held_micros(before: BudgetState, after: BudgetState, paid_micros: int) -> int:
    """How much of a payment came out of what was set aside."""
    return min(paid_micros, max(0, before.escrow_micros - after.escrow_micros))


def impression(
    payer: Payer, before: BudgetState, after: BudgetState, seen: m.Confirm, *, paid_micros: int, now_ms: int
) -> Impression:
    """An ad was seen, and paid."""
    place = seen.inventory or NOWHERE
    return Impression(
        seen.request_id,
        seen.site,
        payer.campaign,
        seen.creative,
        paid_micros,
        advertiser=payer.advertiser,
        publisher=place.publisher,
        category=place.category,
        from_held_micros=from_held_micros(before, after, paid_micros),
        margin_micros=margin_micros(paid_micros, place.margin_ppm),
        at_ms=now_ms,
        day=after.day,
        timezone=after.timezone,
        site_timezone=place.timezone,
    )


def engagement(payer: Payer, timezone: str, done: Engagement, *, now_ms: int) -> Click | CallToAction | Folded:
    """What a reader did with an ad."""
    place = done.inventory or NOWHERE
    return _FACTS[type(done)](
        done.request_id,
        done.site,
        payer.campaign,
        done.creative,
        advertiser=payer.advertiser,
        publisher=place.publisher,
        category=place.category,
        at_ms=now_ms,
        timezone=timezone,
        site_timezone=place.timezone,
    )
