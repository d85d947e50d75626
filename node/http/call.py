"""A request as its handler gets it: what it was sent to, with which parameters, and its body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive, Scope, Send

from node.core import limits
from node.http.bodies import refused_shape
from node.http.problem import ProblemError, Response, bad_request

T = TypeVar("T")


@dataclass(slots=True)  # not frozen: that would cost a page view a microsecond more
class Call:
    """`params`: those of the path, decoded. Nobody changes one."""

    scope: Scope
    body: bytes = b""
    params: dict[str, str] = field(default_factory=dict)

    def header(self, name: bytes) -> str:
        """A header's text, "" for none; raises ProblemError for one that is given twice, or holds no ASCII."""
        found = [value for key, value in self.scope.get("headers", ()) if key == name]
        text = name.decode()
        if len(found) > 1:
            raise bad_request(text, "is given twice")
        if found and not found[0].isascii():
            raise bad_request(text, "holds what is not ASCII")
        return found[0].decode("ascii") if found else ""

    def query(self, shape: type[T]) -> T:
        """The query string as its shape; raises ProblemError 400 that names the field."""
        return msgspec_convert(query_fields(self.scope["query_string"]), shape)


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that goes on: server-sent events, until either side ends it."""

    parts: AsyncIterator[bytes]


Answer = Response | Stream
Handler = Callable[[Call], Awaitable[Answer]]


def query_fields(query: bytes) -> dict[str, str]:
    """A query string's fields, each once; raises ProblemError."""
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=limits.http_query_fields_max)
    except ValueError:
        raise bad_request("query", "not a query string, or one of too many fields") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        raise bad_request(next(name for name in names if names.count(name) > 1)[:60], "is given twice")
    return fields


def msgspec_convert(fields: dict[str, str], shape: type[T]) -> T:
    try:
        return msgspec.convert(fields, shape, strict=False)
    except msgspec.ValidationError as error:
        raise refused_shape(error, "query") from None


async def body_of(receive: Receive) -> bytes:
    """The whole body; raises ProblemError for one that is too long, late or cut off."""
    try:
        async with asyncio.timeout(limits.http_body_ms_max / 1_000):
            return await _whole_body(receive)
    except TimeoutError:
        text = f"no whole body in {limits.http_body_ms_max / 1_000:g} s"
        raise ProblemError(408, "Request timeout", text, about="body") from None


async def _whole_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ProblemError(400, "Bad request", "the client went away", about="body")
        part = message.get("body", b"")
        size += len(part)
        if size > limits.http_body_bytes_max:
            raise too_large()
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def too_large() -> ProblemError:
    """413."""
    return ProblemError(413, "Too large", f"a body has at most {limits.http_body_bytes_max} bytes", about="body")


async def send_stream(send: Send, receive: Receive, stream: Stream) -> None:
    """Server-sent events by ASGI, until they end or the client goes away."""
    headers = [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-store"),
        (b"access-control-allow-origin", b"*"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})

    async def pump() -> None:
        async for part in stream.parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    pumping = asyncio.ensure_future(pump())
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({pumping, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (pumping, gone):
            task.cancel()
        await asyncio.gather(pumping, gone, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
