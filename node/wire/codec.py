"""Strict CBOR (RFC 8949) for registered types.

Encoding turns a registered struct into plain built-ins and those into CBOR. Decoding refuses whatever the design's
section 2 of `cluster.md` forbids, then checks every field against the type. `node.wire.scan` looks at large frames
before anything is built.
"""

from __future__ import annotations

import math
from typing import Any, Final, NoReturn

import cbor2
import msgspec

from node.core import limits
from node.core.errors import LocalProtocolError, RemoteProtocolError
from node.wire.registry import REGISTRY, Registry
from node.wire.scan import scan

_BUILTINS: Final = (bytes,)


def dumps(value: object) -> bytes:
    """CBOR of plain built-ins. Not canonical: bytes of two encoders are never compared."""
    return cbor2.dumps(value)


def loads(data: bytes, *, items_max: int = limits.frame_items_max) -> Any:
    """Plain built-ins from untrusted bytes; raises RemoteProtocolError with a reason for counters."""
    scan(data, items_max=items_max)
    try:
        return cbor2.loads(data)
    except (cbor2.CBORDecodeError, ValueError, RecursionError) as error:
        raise RemoteProtocolError("malformed", type(error).__name__) from error


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
        """A self-describing document `[name, version, body]`, for durable values."""
        return dumps(list(self.body_of(message)))

    def decode(self, data: bytes) -> msgspec.Struct:
        """The message in a document written by `encode`; raises RemoteProtocolError."""
        document = loads(data)
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
