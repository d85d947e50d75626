"""Batching: what one loop turn produces for one peer leaves in as few frames as fit.

A frame is a CBOR array of envelopes. Encoded envelopes are joined behind an array head, so that a message is encoded
once and never copied into another structure first. Frames are filled to what the receiver checks the quick way
(`limits.frame_batch_bytes`), so that a batch never costs a scan and never holds too many items.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, NamedTuple

from node.core.errors import RemoteProtocolError
from node.wire.codec import loads

_HEAD_BYTES_MAX: Final = 5


class Queued(NamedTuple):
    """An encoded envelope that waits, and its message's type name."""

    name: str
    data: bytes


class Packed(NamedTuple):
    """A frame, the type names of its envelopes, and their bytes without the frame's head."""

    data: bytes
    names: list[str]
    payload_bytes: int


def pack_next(envelopes: deque[Queued], bytes_max: int) -> Packed:
    """Takes encoded envelopes from the left, as many as fit, and joins them into one frame.

    An envelope that alone exceeds `bytes_max` gets a frame of its own, one byte longer than itself.
    """
    name, data = envelopes.popleft()
    names, batch = [name], [data]
    size = len(data)
    while envelopes and size + len(envelopes[0].data) + _HEAD_BYTES_MAX <= bytes_max:
        name, data = envelopes.popleft()
        names.append(name)
        batch.append(data)
        size += len(data)
    return Packed(_head(len(batch)) + b"".join(batch), names, size)


def unpack(frame: bytes, bytes_max: int) -> list[Any]:
    """The elements of a frame, still undecoded envelopes; raises RemoteProtocolError."""
    if len(frame) > bytes_max:
        raise RemoteProtocolError("too_large", f"{len(frame)} bytes")
    document = loads(frame)
    if not isinstance(document, list):
        raise RemoteProtocolError("malformed", "a frame is an array")
    return document


def _head(count: int) -> bytes:
    return bytes([0x80 | count]) if count < 24 else b"\x9a" + count.to_bytes(4, "big")
