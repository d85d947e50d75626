"""How the embedded store lays its records out: keys, and what a request can have encoded before its transaction.

One database, one prefix byte for each family of keys:

    M name                  the format, the placement's version, the fact counter, the identity, the file's own place
    S kind NUL id           a state: shard (2 bytes), body
    X shard kind NUL id     index of states by shard; no value
    D kind NUL id           the tombstone of a deleted state: shard (2 bytes)
    L name                  a lease
    P shard                 a row of the placement table
    B key                   a record of the coordinator's book
    N node                  an incarnation counter
    C consumer              the offset that a consumer of facts stands at
    J consumer NUL key      a row that it has made
    ~ offset                a fact (8 bytes, big endian): behind all others, so that the log is appended, and its pages
                            are filled, at the end

Named databases would need the write lock to be opened, and a process stopped while it holds that would stop every
start.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, Protocol

import msgspec

from node.store import port
from node.store.keys import body_of, request_refusal, state_name
from node.store.record import body_sum

FORMAT: Final = 1
FORMAT_KEY: Final = b"Mformat"
IDENTITY_KEY: Final = b"Midentity"
VERSION_KEY: Final = b"Mplacement-version"
FACTS_KEY: Final = b"Mfacts-last"
SHARD: Final = struct.Struct(">H")
OFFSET: Final = struct.Struct(">cQ")
FACT: Final = b"~"
BOOK: Final = b"B"
INDEX: Final = b"X"


class Table(Protocol):
    """The database within an open transaction."""

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        ...

    def put(self, key: bytes, value: bytes) -> None:
        """Adds or replaces a value."""
        ...

    def delete(self, key: bytes) -> None:
        """Removes a key, if it is there."""
        ...

    def append(self, key: bytes, value: bytes) -> None:
        """Adds a value under a key greater than all before."""
        ...

    def items_from(self, key: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values from `key` on, in the order of their bytes."""
        ...


class Counter(msgspec.Struct, frozen=True):
    """A number that is stored."""

    value: int = 0


class FactRow(msgspec.Struct, frozen=True):
    """A fact as stored; its offset is its key."""

    kind: str
    id: str
    at_ms: int
    type: str
    body: bytes


class Prepared(msgspec.Struct, frozen=True):
    """A request with everything encoded that does not depend on what the transaction will find."""

    request: port.Request
    refusal: port.StoreFailed | None
    body: bytes = b""
    summed: bytes = b""
    facts: tuple[tuple[bytes, bytes], ...] = ()


def prepare(request: port.Request, wall_ms: int) -> Prepared:
    """Encodes a request ahead of its transaction: a process that is stopped inside one stops every other writer."""
    refusal = request_refusal(request)
    if refusal is not None or not isinstance(request, port.StateChange):
        return Prepared(request, refusal)
    body = SHARD.pack(request.shard) + body_of(request)
    rows = (
        msgspec.msgpack.encode(FactRow(request.kind, request.id, wall_ms, fact.type, fact.body))
        for fact in request.facts
    )
    return Prepared(request, None, body, body_sum(body), tuple((row, body_sum(row)) for row in rows))


def state_key(kind: str, id_: str) -> bytes:
    return b"S" + state_name(kind, id_)


def tombstone_key(kind: str, id_: str) -> bytes:
    return b"D" + state_name(kind, id_)


def index_key(shard: int, kind: str, id_: str) -> bytes:
    return INDEX + SHARD.pack(shard) + state_name(kind, id_)


def fact_key(offset: int) -> bytes:
    return OFFSET.pack(FACT, offset)


def book_key(key: str) -> bytes:
    return BOOK + key.encode()


def consumer_key(name: str) -> bytes:
    return b"C" + name.encode()


def projection_key(name: str, key: str) -> bytes:
    """With an empty key: what all rows of a consumer begin with."""
    return b"J" + state_name(name, key)


def row_key(shard: int) -> bytes:
    return b"P" + SHARD.pack(shard)
