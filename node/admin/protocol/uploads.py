"""Documents larger than one message."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.piece_send")
class SendPiece(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a document; see `node.wire.chunks`. `transfer` is a name that the sender draws; empty `data` asks
    where to go on."""

    transfer: str
    size: int
    digest: str
    offset: int
    data: bytes


@wire_type("admin.piece_taken")
class PieceTaken(msgspec.Struct, frozen=True, kw_only=True):
    """The offset that is wanted next; the document's size when it is whole."""

    wanted: int
