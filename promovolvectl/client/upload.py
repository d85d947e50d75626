"""Sending a document that is larger than one message."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from node.admin.protocol import PieceTaken, SendPiece
from node.wire.chunks import cut

# Asks the cluster: the request and the type of its answer.
Ask = Callable[[Any, type[PieceTaken]], Awaitable[tuple[PieceTaken, Any]]]


async def upload(ask: Ask, document: bytes) -> str:
    """Sends it piece by piece and returns the transfer's name, which a request can then refer to."""
    transfer = secrets.token_hex(8)
    for piece in cut(document):
        await ask(
            SendPiece(transfer=transfer, size=piece.size, digest=piece.digest, offset=piece.offset, data=piece.data),
            PieceTaken,
        )
    return transfer
