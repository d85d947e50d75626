"""What answers on a node's public address: at first only that it lives and what it waits for, then the API itself.

A node that waits for its database must say so to whoever probes it, long before there is an engine to ask.
"""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

LIVE: Final = "/healthz/live"


class Front:
    """An ASGI application; see the module."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None
        self.waits_for = "the state store"

    def become(self, app: ASGIApp) -> None:
        """From now on the API answers."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is not None:
            await self._app(scope, receive, send)
            return
        alive = scope["path"] == LIVE
        body = b"alive\n" if alive else f"starting: waits for {self.waits_for}\n".encode()
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
        if not alive:
            headers.append((b"retry-after", b"1"))
        await send({"type": "http.response.start", "status": 200 if alive else 503, "headers": headers})
        await send({"type": "http.response.body", "body": body})
