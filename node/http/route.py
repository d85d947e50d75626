"""A route as data, and the table that finds it for a request.

A route says everything about itself but how it is carried out; that is found by its `name`. A route with a `scope` is
for bearer tokens that have it, one without is public.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from node.http.overload import Kind

GET, POST, PUT, PATCH, DELETE = "GET", "POST", "PUT", "PATCH", "DELETE"
MUTATIONS: Final = frozenset((POST, PUT, PATCH, DELETE))
JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
TEXT: Final = "text/plain; version=0.0.4"
# What every administrative route may answer, besides what it says itself.
GUARDED: Final = (401, 403, 404, 409, 429, 503)

Params = Mapping[str, str]
# (path's parameters, query, body) -> a request of the admin protocol
Order = Callable[[Params, Any, Any], msgspec.Struct]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """`query`, `body` and `answer` are the shapes of what comes and goes; `status` is that of success, `other` are more
    that the answer's shape may have, `problems` those of problem documents. `kind`: its class under the limit of
    requests inside, None for what is never shed. `order`: the admin protocol's request that carries it out, and `shown`
    the one that is asked for its answer afterwards. `reads`: it changes nothing, although its question is a body."""

    method: str
    path: str
    name: str
    summary: str
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct] | None = None
    answer: type[msgspec.Struct] | None = None
    status: int = 200
    other: tuple[int, ...] = ()
    problems: tuple[int, ...] = ()
    scope: str = ""
    kind: Kind | None = None
    media: str = JSON
    order: Order | None = None
    shown: Order | None = None
    reads: bool = False

    @property
    def params(self) -> tuple[str, ...]:
        """The names in the path's braces."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @property
    def mutates(self) -> bool:
        """Whether an administrator changes something by it, which takes an idempotency key."""
        return bool(self.scope) and self.method in MUTATIONS and not self.reads


class Table:
    """Routes by method and path. Raises ValueError for two that a request could mean, or two of one name."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._exact: dict[str, dict[str, Route]] = {}
        self._shaped: dict[int, list[tuple[tuple[str, ...], dict[str, Route]]]] = {}
        for route in self.routes:
            methods = self._methods(route)
            if methods.setdefault(route.method, route) is not route:
                raise ValueError(f"two routes for {route.method} {route.path}")
        names = [route.name for route in self.routes]
        if len(set(names)) != len(names):
            raise ValueError(f"two routes are named {next(name for name in names if names.count(name) > 1)}")

    def _methods(self, route: Route) -> dict[str, Route]:
        if not route.params:
            return self._exact.setdefault(route.path, {})
        parts = tuple(route.path.split("/"))
        shapes = self._shaped.setdefault(len(parts), [])
        for known, methods in shapes:
            if known == parts:
                return methods
        found: dict[str, Route] = {}
        shapes.append((parts, found))
        return found

    def find(self, path: str) -> tuple[Mapping[str, Route], dict[str, str]]:
        """The routes of a path by method, none for an unknown one; and the path's parameters."""
        exact = self._exact.get(path)
        if exact is not None:
            return exact, {}
        given = path.split("/")
        for parts, methods in self._shaped.get(len(given), ()):
            params = _matched(parts, given)
            if params is not None:
                return methods, params
        return {}, {}


def _matched(parts: tuple[str, ...], given: list[str]) -> dict[str, str] | None:
    params: dict[str, str] = {}
    for part, text in zip(parts, given, strict=True):
        if part.startswith("{"):
            if not text:
                return None
            params[part[1:-1]] = text
        elif part != text:
            return None
    return params
