"""What an operator sends that is larger than one document, piece by piece (`node.wire.chunks`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from node.admin import protocol as p
from node.admin.outcomes import USAGE
from node.core.errors import RemoteProtocolError
from node.wire.chunks import Inbox, Piece

if TYPE_CHECKING:
    from node.admin.server import AdminServer


class Uploads:
    """Takes pieces; `claim` gives a document to the request that names its transfer."""

    def __init__(self, server: AdminServer) -> None:
        self._clock = server.engine.world.clock
        self._counters = server.engine.counters
        self._inbox = Inbox()
        server.handlers[p.SendPiece] = self.piece

    async def piece(self, request: p.SendPiece, call: p.Meta) -> tuple[p.PieceTaken, p.Meta]:
        piece = Piece(request.size, request.digest, request.offset, request.data)
        try:
            wanted = self._inbox.take(request.transfer, piece, self._clock.mono_ns())
        except RemoteProtocolError as error:
            self._counters[f"upload_{error.reason}"] += 1
            text = f"piece refused: {error.reason}, {error.detail}"
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, about=request.transfer) from error
        return p.PieceTaken(wanted=wanted), call

    def claim(self, transfer: str) -> bytes:
        """A whole document, once; raises AdminRefusal."""
        document = self._inbox.claim(transfer)
        if document is None:
            text = "what was to be sent before is not here, or not whole"
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, hint="send it again", about=transfer)
        return document
