"""Reading a replica's index: see `node.store.replica_index`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile

import lmdb

from node.store.replica_index import AFTER_SITE, EXPIRY_DB, SITE_END, Row, number_of, rows_of

Record = Callable[[bytes], bytes | None]


def under(cursor: lmdb.Cursor[bytes], prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    """What stands under keys that begin so."""
    if cursor.set_range(prefix):
        yield from takewhile(lambda item: item[0].startswith(prefix), cursor.iternext())


def keys_of_site(cursor: lmdb.Cursor[bytes], site: str) -> Iterator[str]:
    """The keys of a site, in order."""
    prefix = site.encode(errors="replace") + SITE_END
    if cursor.set_range(prefix):
        for name in cursor.iternext(values=False):
            if not name.startswith(prefix):
                return
            yield name.decode()


def sites(cursor: lmdb.Cursor[bytes]) -> Iterator[str]:
    """Each site once; one step for each."""
    found = cursor.first()
    while found:
        site = cursor.key().partition(SITE_END)[0]
        yield site.decode()
        found = cursor.set_range(site + AFTER_SITE)


def due(cursor: lmdb.Cursor[bytes], record: Record, before_ms: int, stale: Callable[[Row], None]) -> Iterator[bytes]:
    """The places of the entries that expire before then; rows that lead to no such entry are said to be stale."""
    for key, place in _rows(cursor):
        if number_of(key) >= before_ms:
            return
        row = Row(EXPIRY_DB, key, place)
        if row in rows_of(place, record(place)):
            yield place
        else:
            stale(row)


def tombstones(cursor: lmdb.Cursor[bytes], since_hlc: int) -> Iterator[bytes]:
    """The places of the tombstones of that clock and later, the oldest first."""
    if cursor.set_range(since_hlc.to_bytes(8, "big")):
        yield from cursor.iternext(keys=False)


def _rows(cursor: lmdb.Cursor[bytes]) -> Iterator[tuple[bytes, bytes]]:
    if cursor.first():
        yield from cursor.iternext()
