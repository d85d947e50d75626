"""Rows that lead to a replica's entries otherwise than by key: by site, by expiry, and tombstones by age.

They stand in databases of their own beside the entries and change in the same transaction, so that opening a replica
needs no pass over it. A row says where an entry is, never what it is: who follows one looks at the entry.

    sites       name of the key                       nothing       entries that carry a value
    expiry      expires_at_ms (8), hash of place (8)  place         those of them that expire
    tombstones  clock (8), hash of place (8)          place

Numbers are big endian, so that the rows' order is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import xxhash

from node.store.replica_codec import peek

INDEXED_FORMAT: Final = 2  # the first format of a replica's file that has them
SITES_DB: Final = b"sites"
EXPIRY_DB: Final = b"expiry"
TOMBSTONES_DB: Final = b"tombstones"
INDEX_DBS: Final = (SITES_DB, EXPIRY_DB, TOMBSTONES_DB)
SITE_END: Final = b"|"
AFTER_SITE: Final = b"}"  # the byte behind `|`: where the keys of a site end


class Row(NamedTuple):
    """One row of a database."""

    db: bytes
    key: bytes
    value: bytes


def rows_of(place: bytes, record: bytes | None) -> frozenset[Row]:
    """The rows of the entry at a place; none of one that is not there or can't be made out."""
    head = None if record is None else peek(record)
    if head is None:
        return frozenset()
    if head.tombstone:
        return frozenset((Row(TOMBSTONES_DB, _number(head.hlc) + _hash(place), place),))
    site = Row(SITES_DB, place[2:], b"")
    if not head.expires_at_ms:
        return frozenset((site,))
    return frozenset((site, Row(EXPIRY_DB, _number(head.expires_at_ms) + _hash(place), place)))


def number_of(row_key: bytes) -> int:
    """The time a row of `expiry` or `tombstones` begins with."""
    return int.from_bytes(row_key[:8], "big")


@dataclass(slots=True)
class RowChanges:
    """What a commit does to the rows."""

    gone: set[Row] = field(default_factory=set)
    new: set[Row] = field(default_factory=set)

    def replace(self, place: bytes, old: bytes | None, new: bytes | None) -> None:
        before, after = rows_of(place, old), rows_of(place, new)
        if before != after:
            self.gone |= before - after
            self.new |= after - before

    def in_order(self) -> Iterator[tuple[Row, bool]]:
        """Each row that goes (False) or comes (True), in the order of the databases; first those that go."""
        yield from ((row, False) for row in sorted(self.gone))
        yield from ((row, True) for row in sorted(self.new))


def names(places: Iterable[bytes]) -> list[str]:
    """The keys at these places; a place that no key has is left out."""
    found = []
    for place in places:
        try:
            found.append(place[2:].decode())
        except UnicodeDecodeError:
            continue
    return found


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")


def _hash(place: bytes) -> bytes:
    return bytes(xxhash.xxh64_digest(place))
