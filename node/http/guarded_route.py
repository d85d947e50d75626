"""A route of administration: what all of them may answer, besides what each says itself."""

from __future__ import annotations

from typing import Any

from node.http.route import GET, GUARDED, Route


def guarded(method: str, path: str, name: str, summary: str, scope: str, **more: Any) -> Route:
    body = more.get("body") is not None
    problems = (*GUARDED, 400, *((408, 413) if body else ()), *((422,) if method != GET else ()))
    return Route(method=method, path=path, name=name, summary=summary, scope=scope, problems=problems, **more)
