"""D17: a state store's file that was copied here, or put back from an older copy, is refused until somebody says that
it is to go on as new."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from node.core import limits
from node.core.clock import MS, ManualClock
from node.core.errors import OperatingError
from node.core.hashing import HASH_VERSION, MAP_COUNT, SHARD_COUNT
from node.store import compaction, datafile, whereabouts
from node.store.lmdb import LmdbStore
from node.store.port import Identity, Incarnation, Initialise, NextIncarnation
from node.store.whereabouts import Place, Reached, why_not


@pytest.mark.parametrize(
    ("inside", "beside", "transaction", "words"),
    [
        (None, None, 0, ""),
        (Place(7), None, 0, ""),
        (Place(7), Reached(7, 9), 9, ""),
        (Place(7), Reached(7, 9), 12, ""),
        (Place(8), None, 0, "is a copy"),
        (Place(8), Reached(8, 9), 9, "is a copy"),
        (None, Reached(8, 9), 9, "is not the file"),
        (Place(7), Reached(7, 9), 8, "is older"),
    ],
)
def test_the_rule(inside: Place | None, beside: Reached | None, transaction: int, words: str) -> None:
    found = why_not(7, inside, beside, transaction)
    assert found.startswith(words)
    assert bool(found) == bool(words)


class Here:
    """The folder of a store that a node opens, writes to and closes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock(mono_ns=1_000 * MS)

    @property
    def file(self) -> Path:
        return self.folder / datafile.DATA_NAME

    def open(self) -> LmdbStore:
        return LmdbStore(self.folder, self.clock, boot="b", lasting=True)

    def used(self, writes: int = 3) -> int:
        """The node's number of this start."""
        store = self.open()
        try:
            for _ in range(writes):
                [found] = store.apply([NextIncarnation("n1")])
                assert isinstance(found, Incarnation)
            return found.number
        finally:
            store.close()

    def refused(self) -> str:
        with pytest.raises(OperatingError) as error:
            self.open()
        assert error.value.code == "E-STORE-COPIED"
        assert "--as-new" in error.value.hint
        return error.value.message


@pytest.fixture
def here(tmp_path: Path) -> Here:
    made = Here(tmp_path / "store")
    store = made.open()
    store.apply([Initialise(Identity("c-1", "local", SHARD_COUNT, MAP_COUNT, HASH_VERSION))])
    store.close()
    made.used()
    return made


def test_the_file_itself_is_opened_again_and_again(here: Here) -> None:
    assert [here.used(), here.used()] == [6, 9]
    moved = Here(here.folder.with_name("elsewhere"))
    here.folder.rename(moved.folder)
    assert moved.used() == 12, "a folder that was moved is no copy"


@pytest.mark.parametrize("whole", [True, False], ids=["folder", "data file alone"])
def test_a_copy_elsewhere_is_refused_and_the_original_is_not(here: Here, whole: bool) -> None:
    copy = Here(here.folder.with_name("copy"))
    if whole:
        shutil.copytree(here.folder, copy.folder)
    else:
        copy.folder.mkdir()
        shutil.copy(here.file, copy.file)
    before = copy.file.read_bytes()
    assert "is a copy" in copy.refused()
    assert copy.file.read_bytes() == before, "what is refused is left as it is"
    assert here.used() == 6


def test_an_older_copy_written_over_the_file_is_refused(here: Here, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    shutil.copy(here.file, kept)
    here.used()
    inode = here.file.stat().st_ino
    shutil.copyfile(kept, here.file)
    assert here.file.stat().st_ino == inode
    assert "is older" in here.refused()


def test_an_older_copy_in_place_of_the_file_is_refused(here: Here, tmp_path: Path) -> None:
    shutil.copy(here.file, tmp_path / "kept")
    here.used()
    (tmp_path / "kept").replace(here.file)
    here.refused()


def test_a_copy_that_was_made_while_a_node_ran_is_known_by_its_age_after_a_crash(here: Here, tmp_path: Path) -> None:
    store = here.open()
    shutil.copy(here.file, tmp_path / "kept")
    here.clock.advance_ns(limits.store_noted_ms * MS)
    store.apply([NextIncarnation("n1")])
    store._env.close()  # killed: nothing is noted at the end
    store._occupancy.close()
    shutil.copyfile(tmp_path / "kept", here.file)
    assert "is older" in here.refused()


def test_a_compacted_file_and_one_that_was_named_as_new_are_opened(here: Here, tmp_path: Path) -> None:
    compaction.compact(here.folder)
    assert here.used() == 6
    copy = Here(tmp_path / "copy")
    shutil.copytree(here.folder, copy.folder)
    copy.refused()
    assert whereabouts.unname(copy.file) == 1
    whereabouts.forget(copy.folder)
    assert copy.used() == 9
    copy.folder.rename(tmp_path / "again")
    assert Here(tmp_path / "again").used() == 12


def test_who_only_looks_may_look_at_a_copy(here: Here, tmp_path: Path) -> None:
    shutil.copytree(here.folder, tmp_path / "copy")
    LmdbStore(tmp_path / "copy", here.clock, boot="b").close()
