"""Documents of the admin protocol as the client sees them: made, read and checked without any IO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from node.admin.protocol import AdminError, Meta
from node.core.errors import LocalProtocolError, RemoteProtocolError
from node.wire.codec import CODEC, dumps, loads
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus


@dataclass(frozen=True, slots=True)
class Incoming:
    """A reply or a push: which request it belongs to, what it says, and who said it when."""

    id: int
    message: msgspec.Struct
    meta: Meta


class Unreadable(Exception):
    """A document that breaks the protocol. `id` is the request it answers, or None when not even that can be read."""

    def __init__(self, request_id: int | None, detail: str) -> None:
        super().__init__(detail)
        self.request_id = request_id
        self.detail = detail


def request(request_id: int, timeout_ms: int, message: msgspec.Struct) -> bytes:
    """`[id, timeout_ms, name, version, body]`. Raises LocalProtocolError for an unregistered type, CommandFailed (2)
    for what no message may hold, such as text that is not Unicode."""
    document = [request_id, timeout_ms, *CODEC.body_of(message)]
    try:
        return dumps(document)
    except LocalProtocolError as error:
        raise CommandFailed(ExitStatus.USAGE, "E-USAGE", f"what was given can't be sent: {error}") from error


def incoming(data: bytes) -> Incoming:
    """The reply in `[id, meta, name, version, body]`; raises Unreadable."""
    try:
        document: Any = loads(data)
    except RemoteProtocolError as error:
        raise Unreadable(None, str(error)) from error
    if not isinstance(document, list) or len(document) != 5:
        raise Unreadable(None, "not [id, meta, name, version, body]")
    request_id = document[0]
    if not isinstance(request_id, int) or isinstance(request_id, bool):
        raise Unreadable(None, "the id is not a number")
    try:
        return Incoming(request_id, CODEC.message_of(*document[2:]), msgspec.convert(document[1], Meta))
    except (RemoteProtocolError, msgspec.ValidationError) as error:
        raise Unreadable(request_id, str(error)) from error


def failure(error: AdminError) -> CommandFailed:
    """The node's refusal as ours; a status that this release doesn't know is reported as a failed operation."""
    try:
        status = ExitStatus(error.exit)
    except ValueError:
        status = ExitStatus.FAILED
    return CommandFailed(
        status, error.code, error.message, hint=error.hint, about=error.object, operation=error.operation
    )
