"""What a replica's file holds besides its entries: whose it is, the clock mark, the counts and the leaf digests.

Each is a record under a fixed key of the database `meta`, in the envelope of `node.store.record`. `Get` reads a key of
that database; a missing record reads as what a new replica has. All raise RecordDamaged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from node.core.errors import PromovolveError
from node.core.hashing import MAP_COUNT
from node.store.record import seal, unseal
from node.store.replica_codec import CHUNK_COUNT, CHUNK_LEAVES, digests_of
from node.store.replica_port import MapCount, ReplicaIdentity

FORMAT: Final = 2  # 1 had neither index nor quarantine: see `replica_migrate`
ENTRIES_DB: Final = b"entries"
META_DB: Final = b"meta"
QUARANTINE_DB: Final = b"quarantine"  # damaged records by place, behind the time they were found (8 bytes, ms)
IDENTITY_KEY: Final = b"identity"
MARK_KEY: Final = b"hlc-mark"
COUNTS_KEY: Final = b"counts"
Get = Callable[[bytes], bytes | None]


class Damage(PromovolveError):
    """Why a replica's file can't be used; it is set aside and never read."""


def meta(get: Get, key: bytes) -> bytes:
    """The contents of a record, empty when there is none."""
    value = get(key)
    return b"" if value is None else unseal(key, value).body


def identity_record(identity: ReplicaIdentity) -> bytes:
    return seal(IDENTITY_KEY, msgspec.msgpack.encode(identity))


def stored_identity(get: Get) -> ReplicaIdentity:
    """Whose replica it is; raises Damage when the file doesn't say."""
    body = meta(get, IDENTITY_KEY)
    if not body:
        raise Damage("it has no identity record")
    return msgspec.msgpack.decode(body, type=ReplicaIdentity)


def stored_mark(get: Get) -> int:
    return int.from_bytes(meta(get, MARK_KEY), "big")


def stored_counts(get: Get) -> list[MapCount]:
    body = meta(get, COUNTS_KEY)
    return msgspec.msgpack.decode(body, type=list[MapCount]) if body else [MapCount()] * MAP_COUNT


def stored_digests(get: Get, map_: int) -> list[int]:
    """The leaf digests of one map."""
    row: list[int] = []
    for chunk in range(CHUNK_COUNT):
        row += digests_of(meta(get, chunk_key(map_, chunk))) or [0] * CHUNK_LEAVES
    return row


def chunk_key(map_: int, chunk: int) -> bytes:
    """Where one chunk of a map's leaf digests stands."""
    return b"digests" + bytes((map_, chunk))
