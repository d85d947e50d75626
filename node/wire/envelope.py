"""The envelope: `[protocol, kind, to, from, correlation, deadline, trace, type, version, body]`, and an eleventh
where handlers failed at it before: how many, so that no move of its shard makes a new message of a poisonous one.

`to` is `entity type|entity id|shard`, `@singleton`, or a path such as `/membership`. `from` is `name@incarnation`; the
transport checks it against the key that the bytes came under. `deadline` is the milliseconds that were left when the
frame was made, since monotonic clocks of two processes can't be compared; zero means none.
"""

from __future__ import annotations

import enum
import re
from functools import lru_cache
from typing import Any, Final

import msgspec

from node.core.errors import BadInput, LocalProtocolError, RemoteProtocolError
from node.core.ids import EntityRef, NodeId, Ref, ServiceRef, SingletonRef
from node.wire.codec import Codec, dumps

PROTOCOL: Final = 1
ELEMENTS: Final = 10
_NS_PER_MS: Final = 1_000_000
# What may stand in no name: C0 and C1 controls, and what turns the direction of the text around it. The grammar of each
# kind of name is its edge's to check; these no edge lets in, and a terminal or a log would obey them.
_DRIVES: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class Kind(enum.IntEnum):
    """What a message expects: nothing, a reply, or being matched with the ask it answers."""

    TELL = 0
    ASK = 1
    REPLY = 2
    REJECT = 3


_KINDS: Final = tuple(Kind)


class Envelope(msgspec.Struct, frozen=True):
    """One message on its way. `correlation` is the asker's number, 0 for a tell; `deadline_ns` is local monotonic
    time, 0 for none; `trace` names the cause that started the chain; `deliveries`: how often a handler failed at it."""

    kind: Kind
    to: Ref
    sender: NodeId
    message: msgspec.Struct
    correlation: int = 0
    deadline_ns: int = 0
    trace: str = ""
    deliveries: int = 0


def is_envelope(document: Any) -> bool:
    """Whether a decoded element has the size of an envelope: what its elements are is another question."""
    return isinstance(document, list) and len(document) in (ELEMENTS, ELEMENTS + 1)


def encode(envelope: Envelope, codec: Codec, now_ns: int) -> bytes:
    """One envelope as CBOR; raises LocalProtocolError for an unregistered message."""
    name, version, body = codec.body_of(envelope.message)
    deadline_ns = envelope.deadline_ns
    document = [
        PROTOCOL,
        envelope.kind.value,
        _to_text(envelope.to),
        _sender_text(envelope.sender),
        envelope.correlation,
        max(1, (deadline_ns - now_ns) // _NS_PER_MS) if deadline_ns else 0,
        envelope.trace,
        name,
        version,
        body,
    ]
    if envelope.deliveries:
        document.append(envelope.deliveries)
    return dumps(document)


def decode(document: Any, codec: Codec, me: str, now_ns: int) -> Envelope:
    """The envelope in a decoded frame's element; `me` is the receiving node's name. Raises RemoteProtocolError."""
    if not is_envelope(document):
        raise RemoteProtocolError("malformed", "an envelope has ten elements, or eleven")
    protocol, kind, to, sender, correlation, left_ms, trace, name, version, body, *failed = document
    if protocol != PROTOCOL:
        raise RemoteProtocolError("protocol", f"{protocol!r} instead of {PROTOCOL}")
    if not (isinstance(to, str) and isinstance(sender, str) and isinstance(trace, str)):
        raise RemoteProtocolError("malformed", "to, from or trace is not text")
    if not (_count(correlation) and _count(left_ms) and all(map(_count, failed))):
        raise RemoteProtocolError("malformed", "correlation, deadline or deliveries is not a count")
    if type(kind) is not int or not 0 <= kind < len(_KINDS):
        raise RemoteProtocolError("malformed", f"kind {kind!r}"[:80])
    return Envelope(
        _KINDS[kind],
        _to_ref(to, me),
        _sender(sender),
        codec.message_of(name, version, body),
        correlation,
        now_ns + left_ms * _NS_PER_MS if left_ms else 0,
        trace,
        failed[0] if failed else 0,
    )


def _count(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


# The same few references and nodes come up all the time. `typed`, since named tuples of two classes compare equal.


@lru_cache(maxsize=16_384, typed=True)
def _to_text(to: Ref) -> str:
    match to:
        case EntityRef(kind, entity_id):
            if "|" in kind:
                raise LocalProtocolError(f"entity type {kind!r} holds a separator")
            return f"{kind}|{entity_id}|{to.shard}"
        case SingletonRef(name):
            return f"@{name}"
        case ServiceRef(_, path):
            return path


@lru_cache(maxsize=16_384)
def _to_ref(text: str, me: str) -> Ref:
    if _DRIVES.search(text):
        raise RemoteProtocolError("malformed", "to holds control characters")
    if text.startswith("/"):
        return ServiceRef(me, text)
    if text.startswith("@"):
        return SingletonRef(text[1:])
    kind, _, rest = text.partition("|")
    entity_id, _, shard = rest.rpartition("|")
    ref = EntityRef(kind, entity_id)
    if not kind or not entity_id or shard != str(ref.shard):
        raise RemoteProtocolError("malformed", "to is not type|id|shard")
    return ref


@lru_cache(maxsize=1_024)
def _sender_text(sender: NodeId) -> str:
    return str(sender)


@lru_cache(maxsize=1_024)
def _sender(text: str) -> NodeId:
    try:
        return NodeId.parse(text)
    except (BadInput, ValueError) as error:
        raise RemoteProtocolError("malformed", "from is not name@incarnation") from error
