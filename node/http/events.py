"""What a publisher is told as it happens: facts as events, and how one is written in a stream. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from node.ads import facts as f
from node.core.clock import rfc3339
from node.core.errors import RemoteProtocolError
from node.http.wording import camel
from node.store.port import StoredFact
from node.wire.codec import CODEC


class Event(msgspec.Struct, frozen=True):
    """`offset` is its fact's, and so its place among all events; `data` is a JSON object in the API's names."""

    offset: int
    type: str
    site: str
    at: str
    data: dict[str, Any]


_TYPES: Final[Mapping[type[msgspec.Struct], Callable[[Any], str]]] = {
    f.CreativeApproved: lambda fact: "auto-approved" if fact.auto else "approved",
    f.CreativeRevoked: lambda fact: "rejected" if fact.rejected else "revoked",
    f.CreativeFlagged: lambda fact: "flagged" if fact.reason else "unflagged",
    f.PageClassified: lambda _fact: "page-classified",
    f.FloorDecided: lambda _fact: "floor-decided",
}

EVENT_TYPES: Final = (
    *("approved", "auto-approved", "rejected", "revoked", "flagged", "unflagged"),
    *("page-classified", "floor-decided"),
)


def event_of(stored: StoredFact) -> Event | None:
    """The event that a fact is to those who listen; None for what is none, or can't be read by this release."""
    try:
        fact = CODEC.decode_record(stored.body)
    except RemoteProtocolError:
        return None
    named = _TYPES.get(type(fact))
    if named is None:
        return None
    fields = msgspec.to_builtins(fact)
    data = {camel(name): value for name, value in fields.items()}
    return Event(stored.offset, named(fact), fields["site"], rfc3339(stored.at_ms), data)


def frame(event: Event) -> bytes:
    """As a server-sent event; its id is what a client that comes back goes on behind."""
    text = msgspec.json.encode({"at": event.at, **event.data}).decode()
    return f"id: {event.offset}\nevent: {event.type}\ndata: {text}\n\n".encode()


def beat(offset: int) -> bytes:
    """Nothing happened up to here: keeps the connection, and moves on where a client would go on."""
    return f": nothing new\nid: {offset}\n\n".encode()
