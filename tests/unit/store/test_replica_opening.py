"""How an open is told, and what was set aside beside a replica's file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from node.core.clock import ManualClock, rfc3339
from node.store import datafile
from node.store.replica_file import NOTE_NAME, set_aside
from node.store.replica_opening import Opening, after_begin, kept_files, kept_of

WALL_MS = 1_800_000_000_123


def test_what_a_start_sets_aside_is_listed_with_its_notes_and_removed_by_its_command(tmp_path: Path) -> None:
    folder = tmp_path / "a folder's replica"
    folder.mkdir()
    clock = ManualClock(mono_ns=0, wall_ms=WALL_MS)
    for _ in range(2):  # at one moment
        (folder / datafile.DATA_NAME).write_bytes(b"x" * 100)
        (folder / NOTE_NAME).write_bytes(b"{}")
        set_aside(folder, clock)
    (folder / datafile.DATA_NAME).write_bytes(b"in use")
    second, first = sorted(kept_files(folder), key=lambda one: -len(one.path))
    assert [(one.bytes, one.at_ms) for one in (first, second)] == [(102, WALL_MS)] * 2
    assert first.path == str(folder / f"data.mdb.damaged-{rfc3339(WALL_MS).replace(':', '').replace('.', '')}")
    subprocess.run(["/bin/sh", "-c", first.remove], check=True)
    assert kept_files(folder) == (second,)
    subprocess.run(["/bin/sh", "-c", second.remove], check=True)
    assert sorted(path.name for path in folder.iterdir()) == [datafile.DATA_NAME]


def test_a_start_that_found_no_data_has_kept_a_note_only_and_other_names_are_nobody_s() -> None:
    stamp = "2026-11-30T142305123Z"
    files = [Path(f"/r/{name}") for name in (f"identity.json.damaged-{stamp}", "data.mdb", "pid", "data.mdb.damaged-1")]
    files += [Path("/r/data.mdb.format-1-2026-11-29T142305123Z"), Path("/r/data.mdb.damaged-2026-99-99T999999123Z")]
    kept = kept_of((file, 5) for file in files)
    assert [one.path for one in kept] == [str(files[0]), str(files[4]), str(files[5])], "the newest first"
    assert [one.at_ms > 0 for one in kept] == [True, True, False]
    assert kept_files(Path("/nowhere")) == ()


@pytest.mark.parametrize(
    ("opening", "last", "this", "how", "words"),
    [
        (Opening("reused"), 4, 5, "reused", "as it was left"),
        (Opening("fresh"), 0, 5, "fresh", "there was no file"),
        (Opening("reused"), 3, 5, "older_copy", "last opened by start 3, and there were starts up to 4"),
        (Opening("older_copy", "it has had 7 of 9 commits"), 4, 5, "older_copy", "it has had 7 of 9 commits"),
        (Opening("older_copy", "it has had 7 of 9 commits"), 2, 5, "older_copy", "9 commits; its file was last"),
        (Opening("set_aside", "it is empty", "/r/x"), 0, 5, "set_aside", "it is empty; it is kept as /r/x"),
        (Opening("set_aside", "it is missing"), 0, 5, "set_aside", "nothing of it is left"),
        (Opening("migrated", "it had format 1", "/r/y"), 4, 5, "migrated", "the old one is /r/y"),
    ],
)
def test_an_open_is_told_in_words_by_what_told_it(opening: Opening, last: int, this: int, how: str, words: str) -> None:
    told = after_begin(opening, last, this)
    assert told.how == how
    assert words in told.words()
    assert told.usual == (how in ("reused", "fresh"))
    if last == this - 1:
        assert "starts up to" not in told.words(), "equal numbers tell nothing"
