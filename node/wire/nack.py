"""Definite refusals of asks that could not be taken, so that their senders need not wait for a timeout. Pure.

One for a frame, whatever it held; never for a reply, a rejection or a refusal itself, which nobody waits for.
"""

from __future__ import annotations

from typing import Any

import msgspec

from node.core.errors import RemoteProtocolError
from node.wire.envelope import Kind, is_envelope
from node.wire.registry import Lane, wire_type


class Refusal(msgspec.Struct, frozen=True):
    """One ask, by its sender's number."""

    correlation: int
    reason: str
    detail: str


@wire_type("wire.nack", lane=Lane.DATA)
class Nack(msgspec.Struct, frozen=True):
    """The asks of one frame that were refused before they reached anybody. Nothing of them happened."""

    refusals: tuple[Refusal, ...]


def owed(document: Any, sender: str, error: RemoteProtocolError) -> Refusal | None:
    """The refusal that the sender of an envelope is owed, when so much of it can be read: it asks, under a number, and
    says that it is from `sender`, who is."""
    if not is_envelope(document):
        return None
    kind, claimed, correlation = document[1], document[3], document[4]
    if type(kind) is not int or kind != Kind.ASK or claimed != sender:
        return None
    if type(correlation) is not int or not 0 < correlation < 1 << 63:
        return None
    return Refusal(correlation, error.reason, error.detail[:200])
