"""The ASGI application: each request to its route's handler, by the table in `routes`.

The hot routes are found by one look into a dictionary; what has parameters in its path is looked for by its shape.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Mapping
from typing import Any

from starlette.types import Receive, Scope, Send

from node.ads.guards.rate_gate import RateGate
from node.core import limits
from node.core.clock import MS
from node.engine.nodeservice import NodeService
from node.http import metrics, openapi, probes, serve
from node.http.beacons import BeaconGate
from node.http.call import Answer, Call, Handler, Stream, body_of, send_stream, too_large
from node.http.cluster import ClusterGate
from node.http.guard import REFUSED
from node.http.overload import RETRY_AFTER_S, Kind, Overload, OverloadSettings
from node.http.problem import ProblemError, Response, leaving, not_allowed, overloaded, send_response
from node.http.quick import Answered, QuickHandler
from node.http.route import GET, TEXT, Route, Table
from node.http.routes import PUBLIC

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


class App:
    """See the module. `base_url` is what tracking urls begin with; `more`: further routes with their handlers; `quick`:
    those that need no task."""

    def __init__(
        self,
        gate: ClusterGate,
        service: NodeService,
        base_url: str,
        overload: Overload | None = None,
        more: Mapping[Route, Handler] | None = None,
    ) -> None:
        self._gate = gate
        self._base_url = base_url
        self._going_on: set[asyncio.Task[None]] = set()
        self._mounts: Counter[str] = Counter()
        self.table = Table((*PUBLIC, *(more or {})))
        self._beacons = BeaconGate()
        self._handlers = {
            **_public(gate, service, base_url, self.table, self._mounts, self._beacons),
            **{route.name: handler for route, handler in (more or {}).items()},
        }
        self._hot: dict[tuple[str, str], tuple[Kind, Handler, bool]] = {
            (route.method, route.path): (route.kind, self._handlers[route.name], route.body is not None)
            for route in self.table.routes
            if route.kind is not None and not route.params
        }
        self._view = next((route.method, route.path) for route in PUBLIC if route.name == "serve")
        method, path = self._view
        self.quick: dict[tuple[bytes, bytes], QuickHandler] = {(method.encode(), path.encode()): self._serve_at_once}
        self.overload = overload or Overload(OverloadSettings(), gate.now_ns())
        service.edges.append(self.counters)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"this application speaks HTTP, not {scope['type']}")
        if scope["method"] == "OPTIONS":
            # A page on any host may ask: what it may not do is decided per site.
            await send_response(send, PREFLIGHT)
            return
        hot = self._hot.get((scope["method"], scope["path"]))
        answer = await (self._rest(scope, receive) if hot is None else self._admitted(*hot, scope, receive))
        if isinstance(answer, Stream):
            await send_stream(send, receive, answer)
        else:
            await send_response(send, answer)

    def counters(self) -> dict[str, int]:
        """The limit, what is inside and what was refused, for the node's report."""
        told = {f"refused_{reason}": count for reason, count in REFUSED.items()} | self._mounts
        told["refused_beacons"] = self._beacons.refused
        return self.overload.counters() | {f"http.{name}": count for name, count in told.items()}

    async def _admitted(
        self,
        kind: Kind,
        handler: Handler,
        has_body: bool,
        scope: Scope,
        receive: Receive,
        params: dict[str, str] | None = None,
    ) -> Answer:
        """The answer of a route under the limit of requests inside."""
        if not self._gate.accepts_work:
            return leaving()
        try:
            # A body that comes slowly is its sender's slowness: it says nothing about this node, nor takes room.
            body = await body_of(receive) if has_body else b""
            ticket = self.overload.admit(kind, self._gate.now_ns())
            if ticket is None:
                return overloaded(RETRY_AFTER_S[kind]).response()
            try:
                return await handler(Call(scope, body, params or {}))
            finally:
                self.overload.done(ticket, self._gate.now_ns())
        except ProblemError as problem:
            return problem.response()
        except Exception:
            return _fault(scope["method"], scope["path"])

    def _serve_at_once(self, body: bytes, answer: Answered) -> None:
        """A page view: as `_admitted` does it, by callbacks."""
        if not self._gate.accepts_work:
            answer(leaving())
            return
        if len(body) > limits.http_body_bytes_max:
            answer(too_large().response())
            return
        ticket = self.overload.admit(Kind.SERVE, self._gate.now_ns())
        if ticket is None:
            answer(overloaded(RETRY_AFTER_S[Kind.SERVE]).response())
            return

        def done(response: Response) -> None:
            self.overload.done(ticket, self._gate.now_ns())
            answer(response)

        async def go_on(rest: Coroutine[Any, Any, Response]) -> None:
            try:
                response = await rest
            except ProblemError as problem:
                response = problem.response()
            except Exception:
                response = _fault(*self._view)
            done(response)

        def later(rest: Coroutine[Any, Any, Response]) -> None:
            task = asyncio.get_running_loop().create_task(go_on(rest))
            self._going_on.add(task)
            task.add_done_callback(self._going_on.discard)

        try:
            serve.serve_at_once(self._gate, self._base_url, body, later, done)
        except Exception:
            done(_fault(*self._view))

    async def _rest(self, scope: Scope, receive: Receive) -> Answer:
        method, path = scope["method"], scope["path"]
        found, params = self.table.find(path)
        route = found.get(method)
        if method == "HEAD" and GET in found and found[GET].kind is None:
            route = found[GET]
        if not found:
            return ProblemError(404, "Not found", f"there is no {method} {path[:200]}").response()
        if route is None:
            return not_allowed(method, path, sorted(found))
        if route.kind is not None:
            has_body = route.body is not None
            return await self._admitted(route.kind, self._handlers[route.name], has_body, scope, receive, params)
        try:
            body = await body_of(receive) if route.body is not None else b""
            return await self._handlers[route.name](Call(scope, body, params))
        except ProblemError as problem:
            return problem.response()
        except Exception:
            return _fault(scope["method"], scope["path"])


def _fault(method: str, path: str) -> Response:
    _log.exception("a request failed: %s %s", method, path)
    return ProblemError(500, "Internal error", "a fault of this server; it is in its log").response()


def _public(
    gate: ClusterGate,
    service: NodeService,
    base_url: str,
    table: Table,
    mounts: Counter[str],
    beacons: BeaconGate,
) -> dict[str, Handler]:
    """The handlers of what needs no token, by their routes' names."""

    async def batch(call: Call) -> Answer:
        return await serve.serve_batch(gate, base_url, call.body)

    async def classify(call: Call) -> Answer:
        return await serve.classify_page(gate, call.body)

    def beacon(event: str) -> Handler:
        async def tracked(call: Call) -> Answer:
            beacons.check(call, gate.now_ns() // MS)
            return await serve.track(gate, event, call)

        return tracked

    async def fold(call: Call) -> Answer:
        beacons.check(call, gate.now_ns() // MS)
        return await serve.fold(gate, call.body)

    rates = RateGate(rate_per_s=1.0, burst=limits.http_token_checks_burst)

    async def mount(call: Call) -> Answer:
        return await serve.mount(mounts, call)

    async def check_token(call: Call) -> Answer:
        return await serve.check_token(gate, rates, gate.now_ns() // MS, call)

    async def alive(_call: Call) -> Answer:
        return probes.alive()

    async def ready(_call: Call) -> Answer:
        return probes.ready(service.checks())

    async def startup(_call: Call) -> Answer:
        return probes.startup(service.start_phases())

    async def exposition(_call: Call) -> Answer:
        return Response(200, metrics.exposition(service), TEXT)

    described: list[Response] = []

    async def described_once(_call: Call) -> Answer:
        if not described:
            described.append(Response(200, openapi.encoded(table.routes)))
        return described[0]

    by_probe = {**dict.fromkeys(probes.ALIVE, alive), **dict.fromkeys(probes.READY, ready)}
    by_probe |= dict.fromkeys(probes.STARTUP, startup)
    return {
        "serve": batch,
        "classify": classify,
        "imp": beacon("imp"),
        "click": beacon("click"),
        "cta": beacon("cta"),
        "mount": mount,
        "checkToken": check_token,
        "fold": fold,
        "openapi": described_once,
        "metrics": exposition,
        **{route.name: by_probe[route.path] for route in PUBLIC if route.path in by_probe},
    }
