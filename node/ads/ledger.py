"""The ledger: what went into and out of each account on each day (UTC) for each campaign, derived from facts alone.

The day is that of the fact's own time. A fact of money that can't be read is counted in a row of its own, under
`UNREADABLE`: the sums of a ledger that has such a row lack what it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from node.ads.facts import Impression, MoneyHeld, MoneyReleased
from node.ads.postings import campaign_of, postings_of
from node.core.clock import rfc3339
from node.core.errors import RemoteProtocolError
from node.store.port import StoredFact
from node.wire.codec import CODEC
from node.wire.registry import REGISTRY, wire_type

CONSUMER: Final = "ledger.2"  # with another consumer's name a ledger of another shape is made anew from the facts
UNREADABLE: Final = "unreadable"
MONEY: Final = frozenset(REGISTRY.name_of(shape) for shape in (Impression, MoneyHeld, MoneyReleased))


@wire_type("state.ledger_entry")
class LedgerEntry(msgspec.Struct, frozen=True):
    """What one campaign's facts moved into and out of one account on one day, in how many postings. Micros, neither
    below zero."""

    postings: int = 0
    in_micros: int = 0
    out_micros: int = 0


class Place(NamedTuple):
    """Where an entry stands. `owner` is an id, of a campaign where `account` is `held`."""

    day: str
    account: str
    owner: str
    campaign: str


class Ledger:
    """See `flows.follower.Projection`."""

    def keys(self, facts: Sequence[StoredFact]) -> tuple[str, ...]:
        """Rows of the accounts, campaigns and days that the facts speak of."""
        return tuple(sorted({key for fact in facts for key, _ in _entries(fact)}))

    def fold(self, facts: Sequence[StoredFact], rows: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """The rows with the facts added."""
        after: dict[str, LedgerEntry] = {}
        for fact in facts:
            for key, micros in _entries(fact):
                entry = after.get(key) or read_entry(rows.get(key))
                after[key] = LedgerEntry(
                    entry.postings + 1, entry.in_micros + max(micros, 0), entry.out_micros + max(-micros, 0)
                )
        return {key: CODEC.encode_record(entry) for key, entry in after.items()}


def entry_key(place: Place) -> str:
    """Days sort together, and in a day the accounts of a kind."""
    return " ".join(place)


def place_of(key: str) -> Place | None:
    """Raises RemoteProtocolError for a key that is no ledger's; None for the row of what can't be read."""
    parts = key.split(" ")
    if key == UNREADABLE:
        return None
    if len(parts) != len(Place._fields):
        raise RemoteProtocolError("malformed", f"no key of a ledger: {key[:80]!r}")
    return Place(*parts)


def read_entry(body: bytes | None) -> LedgerEntry:
    """A stored entry; all zero when there is none. Raises RemoteProtocolError for one that is not a ledger's."""
    if body is None:
        return LedgerEntry()
    entry = CODEC.decode_record(body)
    if not isinstance(entry, LedgerEntry):
        raise RemoteProtocolError("malformed", "not a ledger entry")
    return entry


def _entries(stored: StoredFact) -> list[tuple[str, int]]:
    """What one fact moves in which entry."""
    if stored.type not in MONEY:
        return []
    try:
        fact = CODEC.decode_record(stored.body)
    except RemoteProtocolError:
        return [(UNREADABLE, 0)]
    if REGISTRY.of(fact).name != stored.type:
        return [(UNREADABLE, 0)]
    day, campaign = rfc3339(stored.at_ms)[:10], campaign_of(fact)
    return [(entry_key(Place(day, kind, owner, campaign)), micros) for kind, owner, micros in postings_of(fact)]
