"""uvicorn inside the node's own loop, on a socket that was bound before, so that a port in use is told at the start."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from node.core.errors import OperatingError
from node.http.quick import QuickRoutes, quick_protocol


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The node handles signals itself: a SIGTERM drains."""
        yield


def bind(address: str) -> socket.socket:
    """A listening socket for `host:port`; raises OperatingError `E-PORT-IN-USE`."""
    host, _, port = address.rpartition(":")
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), int(port)))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise OperatingError(
                "E-PORT-IN-USE",
                f"http {address}: the port is in use",
                hint="stop what listens there, or give wire.http another port",
            ) from None
        raise OperatingError("E-ADDRESS", f"http {address}: {error.strerror}") from None
    return listener


class HttpServer:
    """Serves an application until it is stopped. `quick`: what is answered before it comes to that."""

    def __init__(self, app: ASGIApp, listener: socket.socket, quick: QuickRoutes) -> None:
        config = uvicorn.Config(
            app,
            http=quick_protocol(quick),
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_keep_alive=15,
            timeout_graceful_shutdown=5,
            server_header=False,
        )
        self._listener = listener
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        host, port = self._listener.getsockname()[:2]
        return f"{host}:{port}"

    async def start(self) -> None:
        """Returns when requests are taken."""
        self._task = asyncio.create_task(self._server.serve([self._listener]), name="http")
        while not self._server.started and not self._task.done():  # noqa: ASYNC110 - uvicorn gives no event for it
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        """Stop accepting, let running requests end."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
