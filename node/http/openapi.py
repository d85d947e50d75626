"""The API's description as OpenAPI 3.1, made from the table of routes: nothing of it is written by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any, Final

import msgspec

from node.http.admin_bodies import PARAMS
from node.http.answers import Problem
from node.http.problem import MEDIA_TYPE
from node.http.route import EVENTS, JSON, Route
from node.http.wording import camel

VERSION: Final = "1"
IDEMPOTENCY_KEY: Final = "Idempotency-Key"
_REF: Final = "#/components/schemas/{name}"


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """The whole description, as plain values, in a stable order."""
    routes = tuple(routes)
    used = (shape for route in routes for shape in (route.body, route.answer) if shape is not None)
    names: tuple[type[msgspec.Struct], ...] = (*dict.fromkeys(used), Problem)
    found, components = msgspec.json.schema_components(names, ref_template=_REF)
    by_shape = dict(zip(names, found, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_shape)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "promovolve",
            "version": VERSION,
            "description": "Serving, tracking and administration of an ad network that targets content, never people.",
        },
        "paths": paths,
        "components": {
            "schemas": {name: _named(schema) for name, schema in sorted(components.items())},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _named(schema: dict[str, Any]) -> dict[str, Any]:
    """A shape's schema under the names that its fields have on the wire."""
    found = dict(schema)
    if "properties" in found:
        found["properties"] = {camel(name): value for name, value in found["properties"].items()}
    if "required" in found:
        found["required"] = [camel(name) for name in found["required"]]
    return found


def encoded(routes: Iterable[Route]) -> bytes:
    """The document as the file and the node give it."""
    return json.dumps(document(routes), indent=1, ensure_ascii=False).encode() + b"\n"


def _operation(route: Route, shapes: dict[type[msgspec.Struct], Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {"operationId": route.name, "summary": route.summary}
    parameters = list(_parameters(route))
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": shapes[route.body]}}}
    if route.scope:
        operation["security"] = [{"bearer": []}]
        operation["description"] = f"Takes a token with the scope `{route.scope}`."
    operation["responses"] = _responses(route, shapes)
    return operation


def _parameters(route: Route) -> Iterator[dict[str, Any]]:
    for name in route.params:
        yield {"name": name, "in": "path", "required": True, "schema": msgspec.json.schema(PARAMS[name])}
    if route.query is not None:
        for field in msgspec.structs.fields(route.query):
            schema = msgspec.json.schema(field.type)
            if field.default not in (msgspec.NODEFAULT, None, ""):
                schema["default"] = field.default
            yield {"name": field.encode_name, "in": "query", "required": field.required, "schema": schema}
    if route.mutates:
        text = "Names the request: sent again under the same key it is answered the same, and nothing happens twice."
        schema = {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$"}
        yield {"name": IDEMPOTENCY_KEY, "in": "header", "required": True, "description": text, "schema": schema}
    if route.media == EVENTS:
        text = "Go on behind this event."
        schema = {"type": "string", "pattern": "^[0-9]{1,18}$"}
        yield {"name": "Last-Event-ID", "in": "header", "required": False, "description": text, "schema": schema}


def _responses(route: Route, shapes: dict[type[msgspec.Struct], Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status in (route.status, *route.other):
        response: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if status != HTTPStatus.NO_CONTENT and route.answer is not None:
            response["content"] = {JSON: {"schema": shapes[route.answer]}}
        elif status != HTTPStatus.NO_CONTENT:
            response["content"] = {route.media: {}}
        found[str(status)] = response
    for status in sorted(route.problems):
        content = {MEDIA_TYPE: {"schema": shapes[Problem]}}
        found[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
    return found
