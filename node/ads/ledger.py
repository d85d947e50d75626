"""The ledger: impressions, clicks and spend of each campaign on each day (UTC), derived from the log of facts.

The day is that of the fact's own time. A fact that can't be read is counted in a row of its own, `UNREADABLE`: the
sums of a ledger that has such a row are too low by what it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from node.ads.facts import Click, Impression
from node.core.clock import rfc3339
from node.core.errors import RemoteProtocolError
from node.store.port import StoredFact
from node.wire.codec import CODEC
from node.wire.registry import REGISTRY, wire_type

CONSUMER: Final = "ledger"
UNREADABLE: Final = "unreadable"
_COUNTED: Final = frozenset(REGISTRY.name_of(shape) for shape in (Impression, Click))


@wire_type("state.ledger_row")
class LedgerRow(msgspec.Struct, frozen=True):
    """One campaign's day; money in micro-units."""

    impressions: int = 0
    clicks: int = 0
    spend_micros: int = 0


class Ledger:
    """See `flows.follower.Projection`."""

    def keys(self, facts: Sequence[StoredFact]) -> tuple[str, ...]:
        """Rows of the campaigns and days that the facts speak of."""
        return tuple(sorted({key for fact in facts for key, _ in _entries(fact)}))

    def fold(self, facts: Sequence[StoredFact], rows: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """The rows with the facts added."""
        after: dict[str, LedgerRow] = {}
        for fact in facts:
            for key, change in _entries(fact):
                row = after.get(key) or read_row(rows.get(key))
                after[key] = LedgerRow(
                    row.impressions + change.impressions,
                    row.clicks + change.clicks,
                    row.spend_micros + change.spend_micros,
                )
        return {key: CODEC.encode_record(row) for key, row in after.items()}


def ledger_key(day: str, campaign: str) -> str:
    """The row of a campaign on a day, `2026-02-03`; days sort together."""
    return f"{day} {campaign}"


def read_row(body: bytes | None) -> LedgerRow:
    """A stored row; all zero when there is none. Raises RemoteProtocolError for one that is not a ledger's."""
    if body is None:
        return LedgerRow()
    row = CODEC.decode_record(body)
    if not isinstance(row, LedgerRow):
        raise RemoteProtocolError("malformed", "not a ledger row")
    return row


def _entries(fact: StoredFact) -> list[tuple[str, LedgerRow]]:
    """What one fact adds to which row: at most one."""
    if fact.type not in _COUNTED:
        return []
    day = rfc3339(fact.at_ms)[:10]
    try:
        event = CODEC.decode_record(fact.body)
    except RemoteProtocolError:
        return [(UNREADABLE, LedgerRow(impressions=1))]
    match event:
        case Impression(campaign=campaign, price_micros=price):
            return [(ledger_key(day, campaign), LedgerRow(impressions=1, spend_micros=price))]
        case Click(campaign=campaign):
            return [(ledger_key(day, campaign), LedgerRow(clicks=1))]
        case _:
            return [(UNREADABLE, LedgerRow(impressions=1))]
