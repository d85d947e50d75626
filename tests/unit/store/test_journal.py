"""The journal of decisions: the same on disk and in memory, bounded, and whole after a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from node.store.journal import Journal, MemoryJournal
from node.store.journal_file import FileJournal


@pytest.fixture(params=["file", "memory"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Journal:
    return FileJournal(tmp_path / "log", 3) if request.param == "file" else MemoryJournal(3)


def test_the_newest_are_kept(journal: Journal) -> None:
    for i in range(20):
        journal.append(b"%d" % i)
        assert journal.lines() == [b"%d" % n for n in range(max(0, i - 2), i + 1)]


def test_it_outlives_its_process_and_its_file_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for i in range(50):
        FileJournal(path, 3).append(b"line %d" % i)
        assert FileJournal(path, 3).lines()[-1] == b"line %d" % i
        assert len(path.read_bytes().splitlines()) <= 6
    assert FileJournal(path, 3).lines() == [b"line 47", b"line 48", b"line 49"]


def test_a_line_that_a_crash_cut_off_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "log"
    FileJournal(path, 5).append(b"whole")
    path.write_bytes(path.read_bytes() + b"cut o")
    journal = FileJournal(path, 5)
    journal.append(b"next")
    assert FileJournal(path, 5).lines() == [b"whole", b"cut o", b"next"]


def test_a_full_disk_is_said_and_the_line_can_still_be_read(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "away" / "log", 5)
    with pytest.raises(OSError, match="No such file"):
        journal.append(b"kept")
    assert journal.lines() == [b"kept"]
