"""docs/operations.md has a row for each question and invariant, with commands and tests that exist."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

from promovolvectl.cli.walk import leaves

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text("utf-8")
QUESTIONS = [
    f"Q{number}"
    for number in (1, 4, 6, 8, 9, 11, 12, 15, 17, 18, 21, 24, 28, 30, 31, 33, 34, 35, 37, 39, 45, 48, 50, 51, 53)
]
RULES = ["Q41", "Q47"]
INVARIANTS = [f"I{number}" for number in range(1, 13)]
CELL = re.compile(r"(?<!\\)\|")
ROWS = [[cell.strip() for cell in CELL.split(line)[1:-1]] for line in PAGE.splitlines() if re.match(r"\| [QI]\d", line)]


def test_each_question_has_one_row_that_says_all() -> None:
    assert [row[0] for row in ROWS] == QUESTIONS + RULES + INVARIANTS
    assert not [row[0] for row in ROWS if len(row) != 5 or not all(row)]


def test_each_row_names_a_command_and_each_named_command_exists() -> None:
    names = {leaf.words: leaf for leaf in leaves()}
    assert not [row[0] for row in ROWS if not re.fullmatch(r"`promovolvectl [^`]+`", row[2])]
    for line in re.findall(r"`promovolvectl ([^`]+)`", PAGE):
        words = shlex.split(line.replace("\\|", "|"))
        leaf = next((names[tuple(words[:size])] for size in (3, 2, 1) if tuple(words[:size]) in names), None)
        assert leaf is not None, line
        common = {"--filter", "--columns", "--dry-run"}
        assert not [word for word in words if word.startswith("--") and word not in common and not leaf.takes(word)]


def test_each_named_test_exists_and_each_row_has_one() -> None:
    for row in ROWS:
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", row[4])
        assert named, row[0]
        for path, name in named:
            tree = ast.parse((ROOT / "tests" / path).read_text("utf-8"))
            assert name in {part.name for part in tree.body if isinstance(part, ast.FunctionDef)}, f"{path}::{name}"
