"""Each file that is written from the code holds what would be written now; what writes it tells what it does when it is
asked for help, and then writes nothing."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import generated

SCRIPTS = generated.ROOT / "scripts"
MAKERS = sorted(path.stem for path in SCRIPTS.glob("*.py") if "generated.main(" in path.read_text("utf-8"))
# These write from a recording and from measurements; a test of the dashboard's page compares that one.
OTHERS = ["dashboard_page", "performance_page"]


def test_the_makers_are_found() -> None:
    assert MAKERS == ["cli_reference", "every_key", "openapi", "scenario_tables"]


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_written_from_the_code_is_current(name: str) -> None:
    made = importlib.import_module(f"scripts.{name}").pages()
    assert made
    assert generated.stale(made) == [], f"python -m scripts.{name}"


@pytest.mark.parametrize("name", [*MAKERS, *OTHERS])
def test_asked_for_help_it_helps_and_writes_nothing(name: str, tmp_path: Path) -> None:
    """From a tree in which nothing can have been written yet."""
    for folder in ("scripts", "node", "promovolvectl"):
        (tmp_path / folder).symlink_to(generated.ROOT / folder)
    done = subprocess.run(
        [sys.executable, "-m", f"scripts.{name}", "--help"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: python -m scripts.{name} ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["node", "promovolvectl", "scripts"]


def test_a_maker_writes_what_differs_compares_when_told_and_makes_nothing_for_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    page = tmp_path / "page.md"

    def made() -> dict[Path, str]:
        return {page: "now\n"}

    def never() -> dict[Path, str]:
        raise AssertionError("made although only help was asked for")

    with pytest.raises(SystemExit, match="0"):
        generated.main("pages", "What it is for.", never, ["--help"])
    assert "What it is for." in capsys.readouterr().out
    assert generated.main("pages", "", made, ["--check"]) == 1
    assert not page.exists()
    page.write_bytes(b"now\r\n")
    assert generated.main("pages", "", made, ["--check"]) == 1
    assert capsys.readouterr().out == "page.md is out of date: python -m scripts.pages\n" * 2
    assert generated.main("pages", "", made, []) == 0
    assert (page.read_bytes(), capsys.readouterr().out) == (b"now\n", "page.md written\n")
    assert generated.main("pages", "", made, ["--check"]) == 0
    assert capsys.readouterr().out == ""
