"""Files nested deeper than any reader follows: refused like any other that can't be read, never a bug of ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from node.core.errors import BadInput, OperatingError
from node.http.access import parse_access
from node.store.datafile import read_note
from promovolvectl.cli.offered import _kept
from promovolvectl.cli.settings import faults_of
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.profiles import Profile, load_file
from promovolvectl.local import founding, layout
from promovolvectl.local.demo.loader import parse
from promovolvectl.tui.recording import read

DEEP = 100_000 * "["
TOML = f"a = {DEEP}"


def _write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("reads", "name", "text", "error"),
    [
        (load_file, "config.toml", TOML, CommandFailed),
        (lambda path: layout.read(path.parent), "cluster.toml", TOML, CommandFailed),
        (lambda path: founding._known(path.parent), founding._FILE, DEEP, CommandFailed),
        (lambda path: parse(path.read_text(), path.parent), "demo.toml", TOML, BadInput),
        (lambda path: parse_access(path.read_text()), "access.toml", TOML, BadInput),
        (lambda path: read_note(path.parent, path.name, Profile), "note.json", DEEP, OperatingError),
        (read, "seen.jsonl", DEEP, CommandFailed),
    ],
    ids=["profiles", "layout", "founding", "demo", "access", "note", "recording"],
)
def test_a_file_too_deep_to_be_read_is_refused(
    reads: Callable[[Path], object], name: str, text: str, error: type[Exception], tmp_path: Path
) -> None:
    file = _write(tmp_path / name, text)
    with pytest.raises(error):
        reads(file)


def test_a_configuration_too_deep_to_be_read_is_a_fault_of_it() -> None:
    (fault,) = faults_of(TOML)
    assert "recursion" in fault.text


def test_a_cache_too_deep_to_be_read_is_none(tmp_path: Path) -> None:
    assert _kept(_write(tmp_path / "names.json", DEEP)) == {}
