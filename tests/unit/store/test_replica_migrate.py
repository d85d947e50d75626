"""A replica of format 1, as an earlier release left it, under this one."""

from __future__ import annotations

import asyncio
import gzip
import resource
from pathlib import Path

import pytest

from node.core import faultpoints
from node.core.clock import ManualClock
from node.core.errors import OperatingError
from node.core.hashing import leaf_of, map_of
from node.store.replica_check import check
from node.store.replica_file import NOTE_NAME
from node.store.replica_lmdb import LmdbReplica
from node.store.replica_open import open_replica
from node.store.replica_opening import Opening

FIXTURE = Path(__file__).parents[2] / "data" / "replica" / "format-1.mdb.gz"
NOTE = '{"cluster_id":"c-1","node":"n1","tenure":3,"format":1}'
LIVE = sorted(f"s{n % 3}.example|{n}" for n in range(12) if n % 4 != 3)
REMOVED = [f"s{n % 3}.example|{n}" for n in range(12) if n % 4 == 3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "replica"
    folder.mkdir()
    (folder / "data.mdb").write_bytes(gzip.decompress(FIXTURE.read_bytes()))
    (folder / NOTE_NAME).write_text(NOTE)
    return folder


def opened(folder: Path) -> tuple[LmdbReplica, Opening]:
    return open_replica(folder, ManualClock(), cluster_id="c-1", node="n1", tenure=3, map_bytes_max=1 << 26)


def check_contents(folder: Path, replica: LmdbReplica) -> None:
    """All that the old file held is here, and its index; nothing is left of the way there."""
    assert (replica.identity.tenure, replica.identity.format, replica.hlc_mark()) == (3, 2, 77)
    assert sorted(key for site in replica.sites() for key in replica.keys_of_site(site)) == LIVE
    found = replica.get(map_of(LIVE[0]), leaf_of(LIVE[0]), LIVE[0])
    assert found is not None
    assert found.value == b"view 0"
    assert [entry.key for entry in replica.tombstones(9)] == REMOVED
    assert len(replica.due(1 << 60, 99)) == len(LIVE) - 1
    assert sum(count.keys for count in replica.counts()) == len(LIVE)
    assert not (folder / "migrating").exists()
    replica.close()
    assert asyncio.run(check(folder)).sound


def test_d18_an_older_format_is_migrated_and_the_old_file_kept(folder: Path) -> None:
    before = (folder / "data.mdb").read_bytes()
    replica, opening = opened(folder)
    assert opening.how == "migrated"
    assert "format 1" in opening.reason
    assert "format-1-2023-11-14T" in opening.path
    assert Path(opening.path).read_bytes() == before
    check_contents(folder, replica)
    replica, opening = opened(folder)
    replica.close()
    assert opening == Opening("reused")


@pytest.mark.parametrize("point", sorted(faultpoints.MIGRATION_POINTS))
def test_d21_a_migration_that_is_cut_short_goes_through_at_the_next_start(folder: Path, point: str) -> None:
    before = (folder / "data.mdb").read_bytes()

    class Cut(BaseException):
        pass

    def cut(reached: str) -> None:
        if reached == point:
            raise Cut

    faultpoints.arm(cut)
    try:
        with pytest.raises(Cut):
            opened(folder)
    finally:
        faultpoints.arm(None)
    replica, opening = opened(folder)
    assert opening.how == ("reused" if point == "replica.replaced" else "migrated")
    kept = list(folder.glob("data.mdb.format-1-*"))
    assert [file.read_bytes() for file in kept] == [before], "kept once, whole"
    check_contents(folder, replica)


def test_a_disk_without_room_for_the_copy_leaves_the_old_file_as_it_was(folder: Path) -> None:
    before = (folder / "data.mdb").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before), hard))
    try:
        with pytest.raises(OperatingError, match="brought to format 2") as caught:
            opened(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.code == "E-REPLICA-DISK"
    assert "second copy" in caught.value.hint
    assert (folder / "data.mdb").read_bytes() == before
    assert not (folder / "migrating").exists()
    assert opened(folder)[1].how == "migrated"


def test_an_old_file_is_checked_without_being_changed(folder: Path) -> None:
    before = (folder / "data.mdb").read_bytes()
    report = asyncio.run(check(folder))
    assert (report.sound, report.format, report.checked) == (True, 1, 12)
    assert (folder / "data.mdb").read_bytes() == before
