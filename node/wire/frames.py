"""Batching: what one loop turn produces for one peer leaves in as few frames as fit.

A frame is a CBOR array `[sender, receiver, first, envelope…]`: who sends as `name@incarnation`, for which incarnation
of the receiver, and the number of its first envelope (see `node.wire.sequence`). A greeting is a frame of its own,
`[name, version, body]`. Encoded envelopes are joined behind the head, so that a message is encoded once and never
copied into another structure first. Frames are filled to what the receiver checks the quick way
(`limits.frame_batch_bytes`), so that a batch never costs a scan and never holds too many items.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, NamedTuple

import cbor2

from node.core.errors import RemoteProtocolError
from node.core.ids import NodeId
from node.wire.codec import loads

HEAD_BYTES_MAX: Final = 128  # an array head of 5, a sender's text of at most 86, two integers of 9
_END: Final = 1 << 63


class Queued(NamedTuple):
    """An encoded envelope that waits, and its message's type name."""

    name: str
    data: bytes


class Packed(NamedTuple):
    """The envelopes of one frame without its head, their type names, and their bytes."""

    parts: list[bytes]
    names: list[str]
    payload_bytes: int


class Head(NamedTuple):
    """What stands before a frame's envelopes."""

    sender: str
    receiver: int
    first: int


def pack_next(envelopes: deque[Queued], bytes_max: int) -> Packed:
    """Takes encoded envelopes from the left, as many as fit into one frame.

    An envelope that alone exceeds `bytes_max` gets a frame of its own.
    """
    name, data = envelopes.popleft()
    names, parts = [name], [data]
    size = len(data)
    room = bytes_max - HEAD_BYTES_MAX
    while envelopes and size + len(envelopes[0].data) <= room:
        name, data = envelopes.popleft()
        names.append(name)
        parts.append(data)
        size += len(data)
    return Packed(parts, names, size)


class Sender:
    """Makes frames of packed envelopes; `me` is encoded once."""

    def __init__(self, me: NodeId) -> None:
        self._me = cbor2.dumps(str(me))

    def frame(self, packed: Packed, receiver: int, first: int) -> bytes:
        """The bytes of a frame for an incarnation of its receiver; `first` numbers its first envelope."""
        count = len(packed.parts) + 3
        array = bytes([0x80 | count]) if count < 24 else b"\x9a" + count.to_bytes(4, "big")
        return b"".join((array, self._me, _uint(receiver), _uint(first), *packed.parts))


def unpack(frame: bytes, bytes_max: int) -> list[Any]:
    """The elements of a frame: its head, then undecoded envelopes. Raises RemoteProtocolError."""
    if len(frame) > bytes_max:
        raise RemoteProtocolError("too_large", f"{len(frame)} bytes")
    document = loads(frame)
    if not isinstance(document, list):
        raise RemoteProtocolError("malformed", "a frame is an array")
    return document


def is_greeting(document: list[Any]) -> bool:
    """Whether an unpacked frame is `[name, version, body]` instead of a batch."""
    return len(document) == 3 and isinstance(document[2], dict)


def head_of(document: list[Any]) -> Head:
    """The head of an unpacked frame; raises RemoteProtocolError."""
    if len(document) < 3:
        raise RemoteProtocolError("malformed", "a frame without a head")
    sender, receiver, first = document[:3]
    if not isinstance(sender, str) or type(receiver) is not int or type(first) is not int or not 0 < first < _END:
        raise RemoteProtocolError("malformed", "a frame's head is not sender, receiver, first")
    return Head(sender, receiver, first)


def _uint(number: int) -> bytes:
    if number < 24:
        return bytes((number,))
    if number < 1 << 16:
        return b"\x19" + number.to_bytes(2, "big")
    return b"\x1b" + number.to_bytes(8, "big")
