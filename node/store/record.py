"""The envelope of every stored value: LMDB has no checksums, and a flipped bit mostly reads without an error.

Layout, big endian: format (1 byte), revision (8), epoch (8), checksum (8), body. The checksum is xxh64 over the key,
the three numbers and the xxh64 of the body: it is bound to the key, so that a value under another's key is damage too.
The body's part can be computed before the transaction begins; what is left inside it is a few dozen bytes.

It finds damage, it doesn't keep out a forger: who can write the file owns the node.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec
import xxhash

from node.core.errors import OperatingError

RECORD_FORMAT: Final = 1
_NUMBERS: Final = struct.Struct(">BQQ")
_SUM: Final = struct.Struct(">Q")
HEAD_BYTES: Final = _NUMBERS.size + _SUM.size


class Sealed(msgspec.Struct, frozen=True):
    """An opened envelope whose checksum was right."""

    revision: int
    epoch: int
    body: bytes


class RecordDamaged(OperatingError):
    """A stored value is not what was written under this key; it is never served, gossiped or merged."""

    def __init__(self, key: bytes, detail: str) -> None:
        super().__init__("E-RECORD-DAMAGED", f"record {key!r}: {detail}", hint="restore it from a backup or a peer")
        self.key = key


class RecordTooNew(OperatingError):
    """A value was written by a later release in a format that this one does not know."""

    def __init__(self, key: bytes, found: int) -> None:
        message = f"record {key!r} has format {found}, this release reads {RECORD_FORMAT}"
        super().__init__("E-NEWER-FORMAT", message, hint="run the release that wrote it, or a later one")


def body_sum(body: bytes) -> bytes:
    """The body's part of the checksum."""
    return bytes(xxhash.xxh64_digest(body))


def seal(key: bytes, body: bytes, *, revision: int = 0, epoch: int = 0, summed: bytes | None = None) -> bytes:
    """The value to store under `key`; `summed` is `body_sum(body)` when it is known already."""
    numbers = _NUMBERS.pack(RECORD_FORMAT, revision, epoch)
    return numbers + _checksum(key, numbers, body_sum(body) if summed is None else summed) + body


def unseal(key: bytes, value: bytes) -> Sealed:
    """Opens what `seal` made; raises RecordDamaged or RecordTooNew."""
    if len(value) < HEAD_BYTES:
        raise RecordDamaged(key, f"{len(value)} bytes are less than a header")
    numbers, body = value[: _NUMBERS.size], value[HEAD_BYTES:]
    if value[_NUMBERS.size : HEAD_BYTES] != _checksum(key, numbers, body_sum(body)):
        raise RecordDamaged(key, "its checksum is wrong")
    form, revision, epoch = _NUMBERS.unpack(numbers)
    if form > RECORD_FORMAT:
        raise RecordTooNew(key, form)
    return Sealed(revision, epoch, body)


def revision_of(value: bytes) -> int:
    """The revision of what `seal` made, unchecked."""
    return int(_NUMBERS.unpack_from(value)[1])


def _checksum(key: bytes, numbers: bytes, summed: bytes) -> bytes:
    return bytes(xxhash.xxh64_digest(_SUM.pack(len(key)) + key + numbers + summed))
