"""Answers to the requests that most of a node's work is, without a task, an ASGI scope or messages to and from one.

A request whose route is `quick` and that came whole in one read is given to its handler where it was read; the handler
answers by a callback, at once or later, exactly once. Whatever is not so simple (a body that is still coming, a client
that waits to be told to go on, a request behind another on its connection) goes to the application like all others,
which answers the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from node.http.guard import GuardedProtocol
from node.http.problem import Response

Answered = Callable[[Response], None]
QuickHandler = Callable[[bytes, Answered], None]
# By method and target, as they stand in a request's first line.
QuickRoutes = Mapping[tuple[bytes, bytes], QuickHandler]

_ANY_PAGE = b"access-control-allow-origin: *\r\n"
_CLOSE = ("connection", "close")


def quick_protocol(routes: QuickRoutes) -> type[QuickProtocol]:
    """Connections of a server with these quick routes; the mapping may be filled later."""

    class _Connection(QuickProtocol):
        quick_routes = routes

    return _Connection


class _Nobody:
    """Nobody waits for news of an exchange: its handler calls back."""

    def set(self) -> None:
        pass


class _Exchange:
    """A request that a quick handler has and that has no answer yet: as much of uvicorn's own cycle as a connection
    asks of the one that it is at."""

    __slots__ = ("disconnected", "keep_alive", "response_complete")
    message_event: ClassVar[_Nobody] = _Nobody()

    def __init__(self, keep_alive: bool) -> None:
        self.disconnected = False
        self.keep_alive = keep_alive
        self.response_complete = False


class QuickProtocol(GuardedProtocol):
    """One connection."""

    quick_routes: ClassVar[QuickRoutes] = {}

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._handler: QuickHandler | None = None  # of the request whose body is being read
        self._parts: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._handler is not None:  # there is more to come
            self._handler = None
            if not self.transport.is_closing():
                super().on_headers_complete()
                for part in self._parts:
                    super().on_body(part)

    def on_headers_complete(self) -> None:
        handler = self.quick_routes.get((self.parser.get_method(), self.url))
        before: Any = self.cycle
        busy = before is not None and not before.response_complete
        if handler is None or busy or self.expect_100_continue or self.parser.should_upgrade():
            super().on_headers_complete()
        else:
            self._head_read()
            self._handler, self._parts = handler, []

    def on_body(self, body: bytes) -> None:
        if self._handler is None:
            super().on_body(body)
        else:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        handler = self._handler
        if handler is None:
            super().on_message_complete()
            return
        self._handler = None
        keep_alive = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
        exchange: Any = _Exchange(keep_alive)
        self.cycle = exchange
        handler(b"".join(self._parts), partial(self._answered, exchange))

    def _answered(self, exchange: _Exchange, response: Response) -> None:
        if not self.flow.write_paused or exchange.disconnected:
            self._write(exchange, response)
            return
        task = self.loop.create_task(self._answered_slowly(exchange, response))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _answered_slowly(self, exchange: _Exchange, response: Response) -> None:
        """A reader that does not read holds up its own answers, and nothing else."""
        await self.flow.drain()
        self._write(exchange, response)

    def _write(self, exchange: _Exchange, response: Response) -> None:
        if exchange.disconnected or self.transport.is_closing():
            return
        exchange.response_complete = True
        headers = response.headers
        if _CLOSE in headers:
            exchange.keep_alive = False
        elif not exchange.keep_alive:
            headers = (*headers, _CLOSE)
        self.transport.write(self._head(response, headers) + response.body)
        if not exchange.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def _head(self, response: Response, headers: tuple[tuple[str, str], ...]) -> bytes:
        parts = [STATUS_LINE[response.status]]
        for name, value in self.server_state.default_headers:
            parts += (name, b": ", value, b"\r\n")
        if response.status != 204:
            parts.append(b"content-length: %d\r\n" % len(response.body))
        parts.append(_ANY_PAGE)
        if response.media_type:
            parts.append(b"content-type: %b\r\n" % response.media_type.encode())
        parts += [f"{key}: {text}\r\n".encode() for key, text in headers]
        parts.append(b"\r\n")
        return b"".join(parts)
