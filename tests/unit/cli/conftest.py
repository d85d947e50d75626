"""An environment in which nothing of the person who runs the tests is read or written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from canary import RECENTLY_MADE

from promovolvectl.cli.main import main

Invoke = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith(("PROMOVOLVECTL_", "XDG_")) or name in (
            "CI", "GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "NO_COLOR", "FORCE_COLOR", "COLUMNS",
        ):  # fmt: skip
            monkeypatch.delenv(name)
    for kind in ("CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind.lower()))
    monkeypatch.setenv("PROMOVOLVECTL_CONFIG", str(tmp_path / "config.toml"))


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Invoke:
    """Runs one command line in this process: status, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(arguments)
        out, err = capsys.readouterr()
        reports = [path.read_text() for path in (tmp_path / "state").rglob("report-*.txt")]
        asked_for = "-" in arguments and "key" in arguments  # a new key, on standard output
        assert not RECENTLY_MADE.found([err, *reports, "" if asked_for else out]), "a secret was told"
        return status, out, err

    return run
