"""Totals: impressions, clicks, calls to action and spend, lifetime and by hour and day, derived from facts alone.

An event belongs to two local days: the advertiser's, by which budgets run, and the publisher's, by which it is paid. So
hours and days are kept for both, and the finest rows (campaign, site, category) carry both days in their key.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from node.ads.facts import CallToAction, Click, Folded, Impression
from node.ads.postings import UNKNOWN
from node.core.errors import RemoteProtocolError
from node.store.port import StoredFact
from node.wire.codec import CODEC
from node.wire.registry import REGISTRY, wire_type

CONSUMER: Final = "totals.2"  # with another consumer's name totals of another shape are made anew from the facts
UNREADABLE: Final = "unreadable"
CAMPAIGN, CREATIVE = "campaign", "creative"
CAMPAIGN_DAY, CAMPAIGN_HOUR = "campaign-day", "campaign-hour"  # in the advertiser's timezone
SITE_DAY, SITE_HOUR = "site-day", "site-hour"  # in the publisher's timezone
ADVERTISER = "advertiser"
DIMENSIONS = "dimensions"  # campaign, advertiser's day, publisher's day, site, category
_COUNTED: Final = frozenset(REGISTRY.name_of(shape) for shape in (Impression, Click, CallToAction, Folded))
_UTC: Final = ZoneInfo("UTC")


@wire_type("state.totals")
class Totals(msgspec.Struct, frozen=True):
    """Counted events; money in micro-units."""

    impressions: int = 0
    clicks: int = 0
    spend_micros: int = 0
    margin_micros: int = 0
    ctas: int = 0
    folds: int = 0

    def plus(self, more: Totals) -> Totals:
        return Totals(
            self.impressions + more.impressions,
            self.clicks + more.clicks,
            self.spend_micros + more.spend_micros,
            self.margin_micros + more.margin_micros,
            self.ctas + more.ctas,
            self.folds + more.folds,
        )


class TotalsProjection:
    """See `flows.follower.Projection`."""

    def keys(self, facts: Sequence[StoredFact]) -> tuple[str, ...]:
        """Rows of all scopes that the facts count in."""
        return tuple(sorted({key for fact in facts for key in _counted(fact)[0]}))

    def fold(self, facts: Sequence[StoredFact], rows: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """The rows with the facts added."""
        after: dict[str, Totals] = {}
        for fact in facts:
            keys, change = _counted(fact)
            for key in keys:
                known = after.get(key) or read_totals(rows.get(key))
                after[key] = known.plus(change)
        return {key: CODEC.encode_record(row) for key, row in after.items()}


def totals_key(scope: str, *parts: str) -> str:
    """Rows of a scope sort together, and within it in the order of the parts."""
    return " ".join((scope, *(part or UNKNOWN for part in parts)))


def read_totals(body: bytes | None) -> Totals:
    """A stored row; all zero when there is none. Raises RemoteProtocolError for one that is not of totals."""
    if body is None:
        return Totals()
    row = CODEC.decode_record(body)
    if not isinstance(row, Totals):
        raise RemoteProtocolError("malformed", "not a row of totals")
    return row


def local_hour(at_ms: int, timezone: str) -> str:
    """The hour that a wall instant has in a timezone, with its offset: clocks that are put back have one twice. In UTC
    where the timezone is one that this machine does not know."""
    return dt.datetime.fromtimestamp(at_ms / 1000, tz=_zone(timezone)).isoformat(timespec="hours")


def _counted(stored: StoredFact) -> tuple[tuple[str, ...], Totals]:
    """The rows that a fact counts in, and what it adds to each."""
    if stored.type not in _COUNTED:
        return (), Totals()
    try:
        fact = CODEC.decode_record(stored.body)
    except RemoteProtocolError:
        return (UNREADABLE,), Totals(impressions=1)
    match fact:
        case Impression(price_micros=price, margin_micros=margin):
            return _keys(stored, fact, fact.day), Totals(1, 0, price, margin)
        case Click():
            return _keys(stored, fact, ""), Totals(0, 1)
        case CallToAction():
            return _keys(stored, fact, ""), Totals(ctas=1)
        case Folded():
            return _keys(stored, fact, ""), Totals(folds=1)
        case _:
            return (UNREADABLE,), Totals(impressions=1)


def _keys(stored: StoredFact, fact: Impression | Click | CallToAction | Folded, day: str) -> tuple[str, ...]:
    at_ms = fact.at_ms or stored.at_ms
    hour, site_hour = local_hour(at_ms, fact.timezone), local_hour(at_ms, fact.site_timezone)
    day, site_day = day or hour[:10], site_hour[:10]
    return (
        totals_key(CAMPAIGN, fact.campaign),
        totals_key(CREATIVE, fact.creative),
        totals_key(ADVERTISER, fact.advertiser),
        totals_key(CAMPAIGN_DAY, fact.campaign, day),
        totals_key(CAMPAIGN_HOUR, fact.campaign, hour),
        totals_key(SITE_DAY, fact.site, site_day),
        totals_key(SITE_HOUR, fact.site, site_hour),
        totals_key(DIMENSIONS, fact.campaign, day, site_day, fact.site, fact.category),
    )


@lru_cache(maxsize=256)
def _zone(timezone: str) -> ZoneInfo:
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return _UTC
