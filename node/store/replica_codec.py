"""An entry of the ServeIndex as bytes on disk, inside the envelope of `node.store.record`.

The envelope's revision and epoch carry the entry's clock and epoch. Body, big endian: flags (1 byte; 1 is a tombstone),
`expires_at_ms` (8), length of the origin (1), origin, value. A key is map (1 byte), leaf (1 byte), the name in UTF-8,
so that a leaf is a range of keys.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from node.core.errors import BadInput
from node.core.hashing import LEAF_COUNT, leaf_of, map_of
from node.store.record import HEAD_BYTES, RecordDamaged, revision_of, seal, unseal
from node.store.replica_port import ReplicaEntry

KEY_BYTES_MAX: Final = 511  # LMDB's own bound
CHUNK_LEAVES: Final = 64  # leaf digests in one record: 1 KiB, small enough to stay out of overflow pages
CHUNK_COUNT: Final = LEAF_COUNT // CHUNK_LEAVES
_HEAD: Final = struct.Struct(">BQB")
_TOMBSTONE: Final = 1
_DIGEST_BYTES: Final = 16


def leaf_prefix(map_: int, leaf: int) -> bytes:
    """What all keys of a leaf begin with."""
    return bytes((map_, leaf))


def key_bytes(key: str) -> bytes:
    """Where a key stands in the file; raises BadInput."""
    try:
        encoded = key.encode()
    except UnicodeEncodeError as error:
        raise BadInput("key", f"{key[:60]!r} is not text that UTF-8 can hold") from error
    if not encoded or len(encoded) + 2 > KEY_BYTES_MAX:
        raise BadInput("key", f"{key[:60]!r} has {len(encoded)} bytes; 1 to {KEY_BYTES_MAX - 2} can be kept")
    return leaf_prefix(map_of(key), leaf_of(key)) + encoded


def entry_bytes(key: bytes, entry: ReplicaEntry) -> bytes:
    """The value to store under `key_bytes(entry.key)`; raises BadInput."""
    flags = _TOMBSTONE if entry.tombstone else 0
    try:
        origin = entry.origin.encode()
        body = _HEAD.pack(flags, entry.expires_at_ms, len(origin)) + origin + entry.value
        return seal(key, body, revision=entry.hlc, epoch=entry.epoch)
    except (struct.error, UnicodeEncodeError) as error:
        raise BadInput("entry", f"{entry.key!r}: its origin or a number can't be kept: {error}") from error


def entry_of(key: bytes, value: bytes) -> ReplicaEntry:
    """The entry that was stored; raises RecordDamaged (or RecordTooNew) when it is not that any more."""
    sealed = unseal(key, value)
    try:
        flags, expires_at_ms, size = _HEAD.unpack_from(sealed.body)
        start = _HEAD.size + size
        return ReplicaEntry(
            key=key[2:].decode(),
            epoch=sealed.epoch,
            hlc=sealed.revision,
            origin=sealed.body[_HEAD.size : start].decode(),
            expires_at_ms=expires_at_ms,
            tombstone=bool(flags & _TOMBSTONE),
            value=sealed.body[start:],
        )
    except (struct.error, UnicodeDecodeError) as error:
        raise RecordDamaged(key, f"its checksum is right, its contents are not: {error}") from error


class Head(NamedTuple):
    """What an index needs to know of an entry."""

    hlc: int
    expires_at_ms: int
    tombstone: bool


def peek(record: bytes) -> Head | None:
    """The head of an entry's record, without a look at its checksum; None when it is too short for one."""
    if len(record) < HEAD_BYTES + _HEAD.size:
        return None
    flags, expires_at_ms, _ = _HEAD.unpack_from(record, HEAD_BYTES)
    return Head(revision_of(record), expires_at_ms, bool(flags & _TOMBSTONE))


def digests_bytes(digests: Iterable[int]) -> bytes:
    """Leaf digests of one chunk in order."""
    return b"".join(digest.to_bytes(_DIGEST_BYTES, "big") for digest in digests)


def digests_of(data: bytes) -> list[int]:
    """What `digests_bytes` was given."""
    return [int.from_bytes(data[at : at + _DIGEST_BYTES], "big") for at in range(0, len(data), _DIGEST_BYTES)]
