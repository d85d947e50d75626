"""The ASGI application: the hot routes by a small table in front, the rest by Starlette's router.

Starlette's routing alone costs as much as a whole decision, so serving and beacons don't pass through it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response as StarletteResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from node.core import limits
from node.engine.nodeservice import NodeService
from node.http import metrics, probes, serve
from node.http.cluster import ClusterGate
from node.http.guard import REFUSED
from node.http.overload import RETRY_AFTER_S, Kind, Overload, OverloadSettings
from node.http.problem import ProblemError, Response, leaving, not_allowed, overloaded, send_response

_log = logging.getLogger(__name__)

PREFLIGHT = Response(
    204,
    b"",
    "",
    (
        ("access-control-allow-methods", "GET, POST, OPTIONS"),
        ("access-control-allow-headers", "content-type"),
        ("access-control-max-age", "86400"),
    ),
)

Handler = Callable[[Scope, bytes], Awaitable[Response]]


class App:
    """See the module. `base_url` is what tracking urls begin with."""

    def __init__(
        self, gate: ClusterGate, service: NodeService, base_url: str, overload: Overload | None = None
    ) -> None:
        self._gate = gate
        self._hot: dict[tuple[str, str], tuple[Kind, Handler]] = {
            ("POST", "/v1/serve/batch"): (Kind.SERVE, lambda scope, body: serve.serve_batch(gate, base_url, body)),
            ("POST", "/v1/classify-page"): (Kind.CLASSIFY, lambda scope, body: serve.classify_page(gate, body)),
            ("GET", "/v1/imp"): (Kind.EVENT, lambda scope, body: serve.track(gate, "imp", scope["query_string"])),
            ("GET", "/v1/click"): (Kind.EVENT, lambda scope, body: serve.track(gate, "click", scope["query_string"])),
        }
        self.overload = overload or Overload(OverloadSettings(), gate.now_ns())
        self._rest = _starlette(gate, service)
        service.edges.append(self.counters)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._rest(scope, receive, send)
            return
        if scope["method"] == "OPTIONS":
            # A page on any host may ask: what it may not do is decided per site.
            await send_response(send, PREFLIGHT)
            return
        hot = self._hot.get((scope["method"], scope["path"]))
        if hot is None:
            allowed = [method for method, path in self._hot if path == scope["path"]]
            if allowed:
                await send_response(send, not_allowed(scope["method"], scope["path"], allowed))
            else:
                await self._rest(scope, receive, send)
            return
        await send_response(send, await self._answer(*hot, scope, receive))

    def counters(self) -> dict[str, int]:
        """The limit, what is inside and what was refused, for the node's report."""
        return self.overload.counters() | {f"http.refused_{reason}": count for reason, count in REFUSED.items()}

    async def _answer(self, kind: Kind, handler: Handler, scope: Scope, receive: Receive) -> Response:
        if not self._gate.accepts_work:
            return leaving()
        try:
            # A body that comes slowly is its sender's slowness: it says nothing about this node, nor takes room.
            body = await _body(receive)
            ticket = self.overload.admit(kind, self._gate.now_ns())
            if ticket is None:
                return overloaded(RETRY_AFTER_S[kind]).response()
            try:
                return await handler(scope, body)
            finally:
                self.overload.done(ticket, self._gate.now_ns())
        except ProblemError as problem:
            return problem.response()
        except Exception:
            _log.exception("a request failed: %s %s", scope["method"], scope["path"])
            return ProblemError(500, "Internal error", "a fault of this server; it is in its log").response()


async def _body(receive: Receive) -> bytes:
    try:
        async with asyncio.timeout(limits.http_body_ms_max / 1_000):
            return await _whole_body(receive)
    except TimeoutError:
        text = f"no whole body in {limits.http_body_ms_max / 1_000:g} s"
        raise ProblemError(408, "Request timeout", text) from None


async def _whole_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ProblemError(400, "Bad request", "the client went away")
        part = message.get("body", b"")
        size += len(part)
        if size > limits.http_body_bytes_max:
            raise ProblemError(413, "Too large", f"a body has at most {limits.http_body_bytes_max} bytes")
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _starlette(gate: ClusterGate, service: NodeService) -> Starlette:
    async def alive(_request: Request) -> StarletteResponse:
        return _starlette_response(probes.alive())

    async def ready(_request: Request) -> StarletteResponse:
        return _starlette_response(probes.ready(service.checks()))

    async def startup(_request: Request) -> StarletteResponse:
        return _starlette_response(probes.startup(service.start_phases()))

    async def metrics_page(_request: Request) -> StarletteResponse:
        return StarletteResponse(metrics.exposition(service), media_type="text/plain; version=0.0.4")

    async def approve(request: Request) -> StarletteResponse:
        body = await _body(request.receive)
        path = request.path_params
        return _starlette_response(await serve.approve(gate, path["publisher"], path["site"], body))

    async def pending(request: Request) -> StarletteResponse:
        path = request.path_params
        return _starlette_response(await serve.pending(gate, path["publisher"], path["site"]))

    async def problem(_request: Request, error: Exception) -> StarletteResponse:
        found = error if isinstance(error, ProblemError) else ProblemError(500, "Internal error", "see the log")
        return _starlette_response(found.response())

    async def not_found(request: Request, _error: Exception) -> StarletteResponse:
        found = ProblemError(404, "Not found", f"there is no {request.method} {request.url.path}")
        return _starlette_response(found.response())

    async def wrong_method(request: Request, error: Exception) -> StarletteResponse:
        allowed = (getattr(error, "headers", None) or {}).get("Allow", "")
        return _starlette_response(not_allowed(request.method, request.url.path, allowed.split(", ")))

    approval = "/v1/publishers/{publisher}/sites/{site}/approval"
    return Starlette(
        routes=[
            *(Route(path, alive) for path in probes.ALIVE),
            *(Route(path, ready) for path in probes.READY),
            *(Route(path, startup) for path in probes.STARTUP),
            Route("/metrics", metrics_page),
            Route(f"{approval}/approve", approve, methods=["POST"]),
            Route(f"{approval}/pending", pending),
        ],
        exception_handlers={ProblemError: problem, 404: not_found, 405: wrong_method, Exception: problem},
    )


def _starlette_response(response: Response) -> StarletteResponse:
    return StarletteResponse(
        response.body, response.status, dict(response.headers), media_type=response.media_type or None
    )
