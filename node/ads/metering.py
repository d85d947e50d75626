"""Metering: what was shown and paid for between whom, hour by hour (UTC), from facts alone; bills follow from it.

The hour is that of the fact's own time, as in the ledger, so that both tell the same sums. An hour is final once it is
over for `metering_final_ms` and the projection has come past it: it never changes again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from node.ads.facts import Impression
from node.ads.postings import UNKNOWN
from node.core.clock import rfc3339
from node.core.errors import RemoteProtocolError
from node.core.limits import metering_final_ms
from node.store.port import StoredFact
from node.wire.codec import CODEC
from node.wire.registry import REGISTRY, wire_type

CONSUMER: Final = "metering"
UNREADABLE: Final = "unreadable"  # behind every hour in the order of keys
HOUR_MS: Final = 3_600_000
_PAID: Final = REGISTRY.name_of(Impression)


@wire_type("state.metered")
class Metered(msgspec.Struct, frozen=True):
    """Impressions and what was paid for them, of which the margin stayed with the platform. Micros."""

    impressions: int = 0
    gross_micros: int = 0
    margin_micros: int = 0

    def plus(self, more: Metered) -> Metered:
        return Metered(
            self.impressions + more.impressions,
            self.gross_micros + more.gross_micros,
            self.margin_micros + more.margin_micros,
        )


class Between(NamedTuple):
    """Who paid whom: for which campaign, shown where."""

    advertiser: str
    campaign: str
    site: str
    publisher: str


class Metering:
    """See `flows.follower.Projection`."""

    def keys(self, facts: Sequence[StoredFact]) -> tuple[str, ...]:
        """Rows of the hours and of whom the facts speak of."""
        return tuple(sorted({key for fact in facts for key, _ in _metered(fact)}))

    def fold(self, facts: Sequence[StoredFact], rows: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """The rows with the facts added."""
        after: dict[str, Metered] = {}
        for fact in facts:
            for key, more in _metered(fact):
                known = after.get(key) or read_metered(rows.get(key))
                after[key] = known.plus(more)
        return {key: CODEC.encode_record(row) for key, row in after.items()}


def hour_of(at_ms: int) -> str:
    """The hour of UTC that a wall instant is in, such as `2026-03-01T02`."""
    return rfc3339(at_ms)[:13]


def meter_key(hour: str, between: Between) -> str:
    """Hours sort together, in their order."""
    return " ".join((hour, *(part or UNKNOWN for part in between)))


def meter_of(key: str) -> tuple[str, Between] | None:
    """The hour of a row and whom it is about; None for the row of what can't be read. Raises RemoteProtocolError."""
    if key == UNREADABLE:
        return None
    hour, *between = key.split(" ")
    if len(between) != len(Between._fields):
        raise RemoteProtocolError("malformed", f"no key of the metering: {key[:80]!r}")
    return hour, Between(*between)


def read_metered(body: bytes | None) -> Metered:
    """A stored row; all zero when there is none. Raises RemoteProtocolError for one that is not the metering's."""
    if body is None:
        return Metered()
    row = CODEC.decode_record(body)
    if not isinstance(row, Metered):
        raise RemoteProtocolError("malformed", "not a row of the metering")
    return row


def final_until_ms(now_ms: int, unapplied_ms: int | None) -> int:
    """Where the final hours end (wall ms), given when the first fact was written that has not been counted, if any."""
    known_ms = now_ms if unapplied_ms is None else min(now_ms, unapplied_ms)
    return max(0, known_ms - metering_final_ms) // HOUR_MS * HOUR_MS


def summed(rows: Iterable[tuple[Between, Metered]]) -> dict[Between, Metered]:
    """One sum for each of those between whom there was something."""
    sums: dict[Between, Metered] = {}
    for between, row in rows:
        sums[between] = sums.get(between, Metered()).plus(row)
    return sums


def _metered(stored: StoredFact) -> tuple[tuple[str, Metered], ...]:
    """What one fact adds to which row."""
    if stored.type != _PAID:
        return ()
    try:
        fact = CODEC.decode_record(stored.body)
    except RemoteProtocolError:
        fact = None
    if not isinstance(fact, Impression):
        return ((UNREADABLE, Metered(impressions=1)),)
    between = Between(fact.advertiser, fact.campaign, fact.site, fact.publisher)
    return ((meter_key(hour_of(stored.at_ms), between), Metered(1, fact.price_micros, fact.margin_micros)),)
