"""Batching: what one loop turn produces for one peer leaves in as few frames as fit.

A frame is a CBOR array of envelopes. Encoded envelopes are joined behind an array head, so that a message is encoded
once and never copied into another structure first. Frames are filled to what the receiver checks the quick way
(`limits.frame_batch_bytes`), so that a batch never costs a scan and never holds too many items.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from node.core.errors import RemoteProtocolError
from node.wire.codec import loads


def pack(envelopes: Iterable[bytes], bytes_max: int) -> list[bytes]:
    """Joins encoded envelopes into frames of at most `bytes_max` bytes each, in order.

    An envelope that alone exceeds the limit gets a frame of its own, one byte longer than itself.
    """
    frames: list[bytes] = []
    batch: list[bytes] = []
    size = 0
    for item in envelopes:
        if batch and size + len(item) + 5 > bytes_max:
            frames.append(_join(batch))
            batch, size = [], 0
        batch.append(item)
        size += len(item)
    if batch:
        frames.append(_join(batch))
    return frames


def unpack(frame: bytes, bytes_max: int) -> list[Any]:
    """The elements of a frame, still undecoded envelopes; raises RemoteProtocolError."""
    if len(frame) > bytes_max:
        raise RemoteProtocolError("too_large", f"{len(frame)} bytes")
    document = loads(frame)
    if not isinstance(document, list):
        raise RemoteProtocolError("malformed", "a frame is an array")
    return document


def _join(batch: list[bytes]) -> bytes:
    count = len(batch)
    head = bytes([0x80 | count]) if count < 24 else b"\x9a" + count.to_bytes(4, "big")
    return head + b"".join(batch)
