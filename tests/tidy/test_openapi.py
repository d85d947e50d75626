"""docs/openapi.json is what the table of routes says, and says something of each route."""

from __future__ import annotations

import json

import jsonschema
import pytest

from node.http.openapi import encoded
from node.http.route import Table
from node.http.routes import EVERY
from scripts.openapi import TARGET

WRITTEN = json.loads(TARGET.read_text("utf-8"))


def test_the_document_is_the_table() -> None:
    assert json.loads(encoded(EVERY)) == WRITTEN, "python -m scripts.openapi"


def test_each_route_is_described_once() -> None:
    described = {(path, method) for path, methods in WRITTEN["paths"].items() for method in methods}
    assert described == {(route.path, route.method.lower()) for route in Table(EVERY).routes}
    for methods in WRITTEN["paths"].values():
        for operation in methods.values():
            assert operation["summary"]
            assert operation["responses"]


@pytest.mark.parametrize("name", sorted(WRITTEN["components"]["schemas"]))
def test_each_shape_is_a_schema_whose_references_exist(name: str) -> None:
    schema = WRITTEN["components"]["schemas"][name]
    jsonschema.Draft202012Validator.check_schema(schema)
    text = json.dumps(schema)
    for part in text.split('"$ref": "#/components/schemas/')[1:]:
        assert part.partition('"')[0] in WRITTEN["components"]["schemas"]
