"""A client of an earlier release and the server of this one: what it sends is understood, what it reads is there.

`tests/data/clients` holds what the clients of a release send and read: of each HTTP operation the least and the most of
its body, the parameters that it must give, and the kinds of what is in an answer; of each message of the admin protocol
its fields. Files are never written anew: a later release gets files of its own beside them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node.admin import protocol as p
from node.http.bodies import parse
from node.http.openapi import document
from node.http.route import Table
from node.http.routes import EVERY
from node.wire.registry import REGISTRY

CLIENTS = Path(__file__).parents[1] / "data" / "clients"
HTTP: dict[str, dict[str, Any]] = json.loads((CLIENTS / "http-1.json").read_text("utf-8"))
ADMIN: dict[str, list[str]] = json.loads((CLIENTS / "admin-1.json").read_text("utf-8"))
ROUTES = {f"{route.method} {route.path}": route for route in Table(EVERY).routes}
DOCUMENT = document(EVERY)


def described(operation: str) -> dict[str, Any]:
    method, _, path = operation.partition(" ")
    found: dict[str, Any] = DOCUMENT["paths"][path][method.lower()]
    return found


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return resolved(DOCUMENT["components"]["schemas"][name]) if name else schema


def kinds(schema: dict[str, Any]) -> set[str]:
    """The JSON types that a value may have."""
    schema = resolved(schema)
    if "anyOf" in schema:
        return set[str]().union(*(kinds(each) for each in schema["anyOf"]))
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return {"string" if isinstance(value, str) else "integer" for value in values} or {schema.get("type", "any")}


@pytest.mark.parametrize("operation", HTTP)
def test_op49_what_an_old_client_sends_is_understood(operation: str) -> None:
    """A field that was added later became mandatory, and every publish was refused."""
    sent, route = HTTP[operation], ROUTES[operation]
    wanted = {each["name"] for each in described(operation).get("parameters", ()) if each["required"]}
    assert wanted <= {*sent.get("asks", ()), *route.params}
    if "least" not in sent:
        assert route.body is None, "it sends none"
        return
    assert route.body is not None
    for body in (sent["least"], sent["most"]):
        assert isinstance(parse(json.dumps(body).encode(), route.body), route.body)


@pytest.mark.parametrize("operation", [name for name, row in HTTP.items() if "reads" in row])
def test_op49_what_an_old_client_reads_is_in_every_answer(operation: str) -> None:
    good = next(answer for status, answer in described(operation)["responses"].items() if status.startswith("2"))
    found = resolved(good["content"]["application/json"]["schema"])["properties"]
    for name, known in HTTP[operation]["reads"].items():
        old = {known} if isinstance(known, str) else set(known)
        old |= {"integer"} if "number" in old else set()
        assert kinds(found[name]) <= old, f"{name} was {sorted(old)}"


@pytest.mark.parametrize("name", ADMIN)
def test_op49_an_older_command_and_this_node_understand_each_other(name: str) -> None:
    """New fields have defaults, and what was there before is there still."""
    known = REGISTRY.named(name)
    fields = {field.name: field for field in msgspec.structs.fields(known.cls)}
    assert {field.name for field in fields.values() if field.required} <= set(ADMIN[name])
    assert set(ADMIN[name]) <= fields.keys() | known.aliases.keys()


def test_the_files_hold_what_they_are_for() -> None:
    assert len(HTTP) > 50
    assert len({REGISTRY.name_of(kind) for kind in p.REPLIES} & ADMIN.keys()) > 50
