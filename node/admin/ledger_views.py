"""The ledger's rows as operators see them, summed as they ask: pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from node.admin.protocol.facts import GetLedger, LedgerItem
from node.ads.ledger import LedgerEntry, Place
from node.ads.money import format_money
from node.ads.postings import MARGIN

BY: Final = ("account", "campaign", "day")


class Group(NamedTuple):
    """What one item sums up; empty where it does not tell apart."""

    campaign: str
    day: str
    account: str


def account_of(place: Place) -> str:
    return place.account if place.account == MARGIN else f"{place.account}/{place.owner}"


def summed(rows: Iterable[tuple[Place, LedgerEntry]], request: GetLedger) -> list[LedgerItem]:
    """One item for each group that was asked for, in order."""
    sums: dict[Group, LedgerEntry] = {}
    for place, entry in rows:
        if not _wanted(place, request):
            continue
        group = Group(
            place.campaign if request.by == "campaign" else "",
            place.day if request.by == "day" else "",
            account_of(place),
        )
        known = sums.get(group, LedgerEntry())
        sums[group] = LedgerEntry(
            known.postings + entry.postings,
            known.in_micros + entry.in_micros,
            known.out_micros + entry.out_micros,
        )
    return [_item(group, sums[group]) for group in sorted(sums)]


def _wanted(place: Place, request: GetLedger) -> bool:
    return (
        account_of(place).startswith(request.account)
        and request.campaign in ("", place.campaign)
        and request.day in ("", place.day)
    )


def _item(group: Group, entry: LedgerEntry) -> LedgerItem:
    return LedgerItem(
        id=" ".join(part for part in group if part),
        account=group.account,
        campaign=group.campaign or None,
        day=group.day or None,
        received=format_money(entry.in_micros),
        given=format_money(entry.out_micros),
        balance=format_money(entry.in_micros - entry.out_micros),
        postings=entry.postings,
    )
