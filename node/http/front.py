"""What answers on a node's public address: at first only that it lives and what it waits for, then the API itself.

A node that waits for its database must say so to whoever probes it, long before there is an engine to ask.
"""

from __future__ import annotations

from typing import Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from node.engine.readiness import Check
from node.http import probes
from node.http.problem import Response, send_response, unavailable
from node.http.quick import QuickHandler, QuickRoutes


class Api(Protocol):
    """An ASGI application with some routes that need it not."""

    @property
    def quick(self) -> QuickRoutes: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Front:
    """An ASGI application; see the module. `quick`: the API's quick routes, from when it answers."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None
        self.quick: dict[tuple[bytes, bytes], QuickHandler] = {}
        self._waits_for = "the state store"

    def wait_for(self, what: str) -> None:
        """From now on it says that it waits for `what`."""
        self._waits_for = what

    def become(self, app: Api) -> None:
        """From now on the API answers."""
        self._app = app
        self.quick.update(app.quick)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is not None:
            await self._app(scope, receive, send)
            return
        await send_response(send, self._waiting(scope["path"]))

    def _waiting(self, path: str) -> Response:
        waits = Check("start", f"waits for {self._waits_for}")
        if path in probes.ALIVE:
            return probes.alive()
        if path in probes.READY:
            return probes.ready((waits,))
        if path in probes.STARTUP:
            return probes.startup((waits,))
        return unavailable(f"this node is starting: it {waits.reason}").response()
