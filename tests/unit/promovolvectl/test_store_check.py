"""`store verify` on a whole store, a damaged one and one that kills its reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from node.core.clock import SystemClock
from node.store import port
from node.store.lmdb import LmdbStore
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.store_kinds import DamagedRecord
from promovolvectl.local import store_check


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = LmdbStore(tmp_path / "store", SystemClock())
    row = port.ShardRow(7, "n1", 1, 1, port.ShardState.RUNNING)
    store.apply([port.AcquireLease("c", "n1@1", 60_000), port.WritePlacement("c", "n1@1", 1, 0, (row,))])
    assert store.apply([port.WriteState("site", "x", 7, 1, 0, b"a body to find")]) == [port.Written(1)]
    store.close()
    return tmp_path / "store"


def test_a_whole_store_has_nothing_to_name_and_a_flipped_bit_is_named(folder: Path) -> None:
    found = store_check.verify(folder, say=lambda _: None)
    assert found.damaged == ()
    assert found.checked >= 5
    data = folder / "data.mdb"
    data.write_bytes(data.read_bytes().replace(b"a body to find", b"a body to fine"))
    assert store_check.verify(folder, say=lambda _: None).damaged == (DamagedRecord(record="Ssite:x"),)


def test_a_scan_that_dies_says_how_and_how_far_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_check, "_MODULE", "this_module_ends")
    (folder.parent / "this_module_ends.py").write_text(
        "import os, signal\nprint('{\"checked\": 40}', flush=True)\nos.kill(os.getpid(), signal.SIGBUS)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(folder.parent))
    said: list[str] = []
    with pytest.raises(CommandFailed) as caught:
        store_check.verify(folder, say=said.append)
    assert caught.value.status is ExitStatus.FAILED
    assert "SIGBUS" in caught.value.message
    assert "after 40 records" in caught.value.message
    assert said == ["40 records checked, 0 damaged"]


def test_a_folder_without_a_store_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="missing"):
        store_check.verify(tmp_path / "none", say=lambda _: None)
    assert list(tmp_path.iterdir()) == []
