"""docs/checks.md has a row for each check, and names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "checks.md").read_text("utf-8")
CHECKS = [f"V{number}" for number in range(1, 21)] + [f"E{number}" for number in range(1, 11)]


def test_each_check_has_one_row_with_a_test_or_a_gap() -> None:
    rows = re.findall(r"^\| ([VE]\d+) \|(.*)\|(.*)\|$", PAGE, re.MULTILINE)
    assert [name for name, _, _ in rows] == CHECKS
    assert not [name for name, test, gap in rows if not (test.strip() or gap.strip())]


def test_each_named_test_exists() -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)
    assert named
    for path, name in named:
        tree = ast.parse((ROOT / "tests" / path).read_text("utf-8"))
        assert name in {part.name for part in tree.body if isinstance(part, ast.FunctionDef)}, f"{path}::{name}"
