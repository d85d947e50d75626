"""Strict CBOR (RFC 8949) for registered types.

Encoding turns a registered struct into plain built-ins and those into CBOR. Decoding refuses whatever the design's
section 2 of `cluster.md` forbids, then checks every field against the type. Small documents go through the decoder's
strict options and three quick checks of what those let pass; large ones through `node.wire.scan` before anything is
built. Both ways refuse the same documents; the first costs half.
"""

from __future__ import annotations

import io
import math
from typing import Any, Final, NoReturn

import cbor2
import msgspec

from node.core import limits
from node.core.errors import LocalProtocolError, RemoteProtocolError
from node.wire.registry import REGISTRY, Registry
from node.wire.scan import maybe_not_finite, maybe_unsendable, scan

_BUILTINS: Final = (bytes,)
# Every tag that cbor2 knows, so that none of them runs code; the others reach the tag hook.
_KNOWN_TAGS: Final = (
    *range(6), 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004, 43000, 55799,
)  # fmt: skip


def _refuse_tag(*_: object) -> NoReturn:
    raise ValueError("a tag")


def _text_keys(found: Any, _: bool) -> Any:
    "".join(found)  # raises TypeError for a key that is not text, in less time than a loop takes
    return found


_TAG_DECODERS: Final = dict.fromkeys(_KNOWN_TAGS, _refuse_tag)


def dumps(value: object) -> bytes:
    """CBOR of plain built-ins. Not canonical: bytes of two encoders are never compared.

    Raises LocalProtocolError for what `loads` would refuse: floats that are not finite, integers beyond 64 bits, text
    that is not Unicode, more items than a frame may hold.
    """
    try:
        data = cbor2.dumps(value)
    except (cbor2.CBOREncodeError, ValueError, TypeError, RecursionError) as error:
        raise LocalProtocolError(f"not encodable: {error}") from error
    if maybe_unsendable(data) or len(data) > limits.frame_items_max:
        try:
            scan(data)
        except RemoteProtocolError as error:
            raise LocalProtocolError(f"would be refused by its receiver: {error}") from error
    return data


def loads(data: bytes, *, items_max: int = limits.frame_items_max) -> Any:
    """Plain built-ins from untrusted bytes; raises RemoteProtocolError with a reason for counters."""
    small = len(data) < limits.frame_prescan_bytes_min and len(data) <= items_max
    if not small or maybe_not_finite(data):
        scan(data, items_max=items_max)
        try:
            return cbor2.loads(data)
        except (cbor2.CBORError, ValueError) as error:
            raise RemoteProtocolError("malformed", type(error).__name__) from error
    try:
        return _strict(data)
    except (cbor2.CBORError, ValueError, TypeError) as error:
        scan(data, items_max=items_max)  # it knows the reason, unless that is the text's encoding
        raise RemoteProtocolError("malformed", type(error).__name__) from error


def _strict(data: bytes) -> Any:
    source = io.BytesIO(data)
    document = cbor2.CBORDecoder(
        source,
        tag_hook=_refuse_tag,
        object_hook=_text_keys,
        semantic_decoders=_TAG_DECODERS,
        max_depth=limits.frame_depth_max,
        allow_indefinite=False,
        allow_duplicate_keys=False,
        strict_hashable_types=True,
    ).decode()
    if source.tell() != len(data):
        raise ValueError("trailing bytes")
    msgspec.to_builtins(document, builtin_types=_BUILTINS)  # raises TypeError for undefined and unassigned values
    return document


class Codec:
    """Registered messages to and from `(name, version, body)` and bytes, over one registry."""

    def __init__(self, registry: Registry = REGISTRY) -> None:
        self.registry = registry

    def body_of(self, message: object) -> tuple[str, int, dict[str, Any]]:
        """The type's name, its version and its fields as built-ins; raises LocalProtocolError if unregistered."""
        wire_type = self.registry.of(message)
        body = msgspec.to_builtins(message, builtin_types=_BUILTINS)
        if not isinstance(body, dict):
            raise LocalProtocolError(f"{wire_type.name} must not be array-like")
        return wire_type.name, wire_type.version, body

    def message_of(self, name: object, version: object, body: object) -> msgspec.Struct:
        """The message that came as `(name, version, body)`; raises RemoteProtocolError.

        A body of a newer version is read as far as its fields are known: fields that this release does not know are
        ignored, those that are missing take their defaults.
        """
        if not isinstance(name, str) or not isinstance(version, int) or not isinstance(body, dict):
            _refuse("malformed", "type, version or body of the wrong kind")
        wire_type = self.registry.named(name)
        if wire_type.aliases:
            body = {wire_type.aliases.get(key, key): value for key, value in body.items()}
        try:
            return msgspec.convert(body, wire_type.cls, strict=True, builtin_types=_BUILTINS)
        except (msgspec.ValidationError, ValueError, TypeError) as error:
            _refuse("invalid", f"{name}: {error}")

    def encode(self, message: object) -> bytes:
        """A self-describing document `[name, version, body]`, for values that other nodes read."""
        return dumps(list(self.body_of(message)))

    def decode(self, data: bytes) -> msgspec.Struct:
        """The message in a document written by `encode`; raises RemoteProtocolError."""
        return self._message_in(loads(data))

    def encode_record(self, message: object) -> bytes:
        """A document for our own store: it may be larger than any frame, and is not scanned, which for a large record
        would take longer than writing it."""
        try:
            return cbor2.dumps(list(self.body_of(message)))
        except (cbor2.CBOREncodeError, ValueError, TypeError, RecursionError) as error:
            raise LocalProtocolError(f"not encodable: {error}") from error

    def decode_record(self, data: bytes) -> msgspec.Struct:
        """The message in a document written by `encode_record` and kept under a checksum; raises
        RemoteProtocolError."""
        try:
            return self._message_in(cbor2.loads(data))
        except (cbor2.CBORError, ValueError) as error:
            raise RemoteProtocolError("malformed", type(error).__name__) from error

    def _message_in(self, document: Any) -> msgspec.Struct:
        if not isinstance(document, list) or len(document) != 3:
            _refuse("malformed", "not [name, version, body]")
        return self.message_of(*document)


CODEC: Final = Codec()


def finite(value: float, field: str) -> float:
    """Refuses NaN and the infinities, which CBOR carries and no field of ours may hold."""
    if not math.isfinite(value):
        _refuse("invalid", f"{field} is not a finite number")
    return value


def _refuse(reason: str, detail: str) -> NoReturn:
    raise RemoteProtocolError(reason, detail)
