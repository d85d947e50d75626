"""Documents larger than a frame, in bounded pieces: in order, resumable, with a hash of the whole at the end.

A sender cuts a document with `cut`; a receiver puts it together in an `Inbox`, which says after each piece from where
on it wants more. A sender that lost an answer asks with an empty piece and goes on from there. A piece that leaves a
gap, comes again, overlaps, goes beyond the announced size or belongs to another document is refused and changes
nothing, except that what can't become whole any more is forgotten. Pure: time is an argument.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from node.core import limits
from node.core.clock import MS
from node.core.errors import RemoteProtocolError


@dataclass(frozen=True, slots=True)
class Piece:
    """`data` of a document of `size` bytes from `offset` on; `digest` is the SHA-256 of the whole, in hex."""

    size: int
    digest: str
    offset: int
    data: bytes


def cut(document: bytes, piece_bytes: int = limits.chunk_bytes, offset: int = 0) -> Iterator[Piece]:
    """The pieces of a document from `offset` on, in order; of an empty one there is none."""
    digest = hashlib.sha256(document).hexdigest()
    for at in range(offset, len(document), piece_bytes):
        yield Piece(len(document), digest, at, document[at : at + piece_bytes])


@dataclass(slots=True)
class _Growing:
    size: int
    digest: str
    touched_ns: int
    data: bytearray = field(default_factory=bytearray)


class Inbox:
    """Documents on their way in, each under a key of its sender's. Those that nobody goes on with are forgotten after
    `chunks_idle_ms_max`, and all together hold no more than `chunked_bytes_max` bytes."""

    def __init__(self) -> None:
        self._growing: dict[Hashable, _Growing] = {}

    def take(self, key: Hashable, piece: Piece, now_ns: int) -> int:
        """The offset that is wanted next, the document's size when it is whole. Raises RemoteProtocolError."""
        self.forget_idle(now_ns)
        growing = self._growing.get(key)
        if growing is None:
            growing = self._begin(key, piece, now_ns)
        if (piece.size, piece.digest) != (growing.size, growing.digest):
            raise RemoteProtocolError("another_document", "its size or digest is not that of the pieces before")
        growing.touched_ns = now_ns
        held = len(growing.data)
        if not piece.data:
            return held
        if len(piece.data) > limits.chunk_bytes:
            raise RemoteProtocolError("piece_too_large", f"{len(piece.data)} bytes; at most {limits.chunk_bytes}")
        if piece.offset != held:
            what = "gap" if piece.offset > held else "repeated"
            raise RemoteProtocolError(what, f"offset {piece.offset}, wanted is {held}")
        if held + len(piece.data) > growing.size:
            del self._growing[key]
            raise RemoteProtocolError("endless", f"more than the announced {growing.size} bytes")
        growing.data += piece.data
        if len(growing.data) == growing.size and hashlib.sha256(growing.data).hexdigest() != growing.digest:
            del self._growing[key]
            raise RemoteProtocolError("damaged", "the whole has another digest than was announced")
        return len(growing.data)

    def claim(self, key: Hashable) -> bytes | None:
        """The document, once, when it is whole; else None."""
        growing = self._growing.get(key)
        if growing is None or len(growing.data) < growing.size:
            return None
        del self._growing[key]
        return bytes(growing.data)

    def forget_idle(self, now_ns: int) -> None:
        """Drops what nobody has gone on with for long."""
        idle_ns = limits.chunks_idle_ms_max * MS
        for key in [key for key, one in self._growing.items() if now_ns - one.touched_ns > idle_ns]:
            del self._growing[key]

    def _begin(self, key: Hashable, piece: Piece, now_ns: int) -> _Growing:
        reserved = sum(one.size for one in self._growing.values())
        if not 0 < piece.size <= limits.chunked_bytes_max - reserved or len(self._growing) >= limits.chunked_open_max:
            room = limits.chunked_bytes_max - reserved
            raise RemoteProtocolError("no_room", f"{piece.size} bytes; there is room for {room} now")
        if piece.offset:
            raise RemoteProtocolError("gap", f"offset {piece.offset}, wanted is 0")
        growing = self._growing[key] = _Growing(piece.size, piece.digest, now_ns)
        return growing
