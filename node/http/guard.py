"""uvicorn's protocol with bounds on what a client may take before its request is whole: time, bytes, connections.

uvicorn bounds only idle connections that had a request before. Without more, one that sends a header each minute holds
a connection for ever, and one that sends a header without end holds memory without end.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from node.core import limits
from node.http.problem import ProblemError

# What was refused before there was a request, by reason, of this process (I9).
REFUSED: Counter[str] = Counter()


def connections_max() -> int:
    """How many connections may be open: never more than half of the files that the process may have open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(limits.http_connections_max, files // 2)


class GuardedProtocol(HttpToolsProtocol):
    """One connection."""

    head_ms_max = limits.http_head_ms_max

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._head_bytes = 0
        self._in_head = True
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > connections_max():
            self._refuse("connections", ProblemError(503, "Overloaded", "too many connections", retry_after_s=1))
        else:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_ended()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        if self._head_bytes > limits.http_head_bytes_max:
            text = f"a request's line and headers have at most {limits.http_head_bytes_max} bytes"
            self._refuse("head_bytes", ProblemError(431, "Headers too large", text))
        elif self._head_timer is None:
            self._expect_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if not self._in_head:  # a further request of this connection; most are whole when this has been read
            self._head_bytes = 0
            self._in_head = True

    def on_headers_complete(self) -> None:
        self._head_read()
        super().on_headers_complete()

    def _head_read(self) -> None:
        self._in_head = False
        self._head_ended()

    def send_400_response(self, msg: str) -> None:
        """What uvicorn says of a request that can't be read, as a problem document."""
        self._refuse("unreadable", ProblemError(400, "Bad request", msg))

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_ms_max / 1_000, self._late)

    def _head_ended(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _late(self) -> None:
        text = f"no whole request in {self.head_ms_max / 1_000:g} s"
        self._refuse("head_late", ProblemError(408, "Request timeout", text))

    def _refuse(self, reason: str, problem: ProblemError) -> None:
        if self.transport.is_closing():
            return
        REFUSED[reason] += 1
        response = problem.response()
        lines = [
            f"HTTP/1.1 {response.status} {problem.title}",
            f"content-type: {response.media_type}",
            f"content-length: {len(response.body)}",
            *(f"{name}: {value}" for name, value in response.headers),
            "connection: close",
        ]
        self.transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + response.body)
        self.transport.close()
