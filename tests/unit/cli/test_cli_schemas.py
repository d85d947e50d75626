"""The committed schemas: what scripts were promised. They change on purpose or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from promovolvectl.cli.schemas import names, schema_of

FOLDER = Path(__file__).parents[3] / "docs" / "schemas"


def test_every_kind_and_nothing_else_is_committed() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == names()


@pytest.mark.parametrize("kind", names())
def test_the_committed_schema_is_the_one_that_the_types_give(kind: str) -> None:
    committed = json.loads((FOLDER / f"{kind}.json").read_text(encoding="utf-8"))
    assert committed == schema_of(kind), f"promovolvectl schema {kind} > docs/schemas/{kind}.json"
