"""D12, D19: a power cut under a replica, and the kernel's other limits: inodes, descriptors, the size of a file."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from faulty_disk import FaultyDisk
from replica_process import replica_process

from node.core.clock import ManualClock
from node.core.errors import OperatingError
from node.core.hashing import leaf_of, map_of
from node.store.replica_lmdb import LmdbReplica
from node.store.replica_open import open_replica
from node.store.replica_port import ReplicaBatch, ReplicaEntry

PAGE_BYTES = 4_096
KEYS = 50


def pages(data: bytes) -> list[bytes]:
    return [data[at : at + PAGE_BYTES] for at in range(0, len(data), PAGE_BYTES)]


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, bytes]:
    """A replica whose node died while a commit of puts and removals waited for its sync: its folder, what was on the
    platter for certain, and what had been written since."""
    folder = tmp_path_factory.mktemp("cut")
    disk = FaultyDisk(folder / "faults", "replica/data.mdb")
    file = folder / "replica" / "data.mdb"
    with replica_process(folder / "replica", disk.env) as node:
        for number in range(KEYS):
            node.put(f"s{number}|a", f"first {number}")
        node.ask("remove", "s0|a")
        node.until("committed")
        synced = file.read_bytes()
        disk.hold()
        for number in range(1, KEYS):
            node.put(f"s{number}|a", "second " * 100)
        node.ask("remove", "s1|a")
        node.until("fault", "E-DISK-SLOW")
        node.kill()
    written = file.read_bytes()
    assert written != synced
    return folder / "replica", synced, written


def test_d12_the_header_of_a_commit_is_written_behind_its_sync(cut: tuple[Path, bytes, bytes]) -> None:
    """Else what could be lost would have been seen, and acknowledged."""
    _, synced, written = cut
    assert pages(synced)[:2] == pages(written)[:2]
    assert pages(synced)[2:] != pages(written)[2:]


@pytest.mark.parametrize("seed", range(8))
def test_d12_of_a_commit_that_was_not_synced_any_page_may_be_lost_and_all_before_it_holds(
    cut: tuple[Path, bytes, bytes], tmp_path: Path, seed: int
) -> None:
    folder, synced, written = cut
    rng = random.Random(seed)
    old = pages(synced)
    old += [bytes(PAGE_BYTES)] * (len(pages(written)) - len(old))
    kept = [new if rng.random() < seed / 7 else before for before, new in zip(old, pages(written), strict=True)]
    shutil.copytree(folder, tmp_path / "replica")
    (tmp_path / "replica" / "data.mdb").write_bytes(b"".join(kept))
    with replica_process(tmp_path / "replica") as again:
        assert again.opened["how"] == "reused"
        assert [again.get(f"s{n}|a") for n in range(KEYS)] == [None, *(f"first {n}" for n in range(1, KEYS))]
        again.put("s1|a", "third")
        again.until("committed")
        assert again.ask("health")["damaged_found"] == 0


def opened(path: Path) -> LmdbReplica:
    return open_replica(path, ManualClock(), cluster_id="c-1", node="n1", tenure=1, map_bytes_max=1 << 26)[0]


def put(replica: LmdbReplica, key: str, size: int = 100) -> None:
    entry = ReplicaEntry(key, 1, 2, "n1", 0, tombstone=False, value=b"x" * size)
    replica.commit(ReplicaBatch((entry,), (), {}, 0, {}))


def has(replica: LmdbReplica, key: str) -> bool:
    return replica.get(map_of(key), leaf_of(key), key) is not None


def test_d19_without_descriptors_an_open_replica_goes_on_and_a_closed_one_says_why_it_does_not_open(
    tmp_path: Path,
) -> None:
    replica, other = opened(tmp_path / "one"), opened(tmp_path / "two")
    other.close()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        put(replica, "s|a")
        with pytest.raises(OperatingError) as caught:
            opened(tmp_path / "two")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert str(tmp_path / "two") in caught.value.message
    assert "Too many open files" in caught.value.message
    assert has(replica, "s|a")
    replica.close()
    opened(tmp_path / "two").close()


def test_d19_at_the_size_that_a_file_may_have_the_commit_is_refused_and_goes_in_later(tmp_path: Path) -> None:
    replica = opened(tmp_path / "replica")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "replica" / "data.mdb").stat().st_size, hard))
    try:
        with pytest.raises(OperatingError) as caught:
            put(replica, "s|a", 500_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (caught.value.code, caught.value.definite, replica.poisoned) == ("E-REPLICA-DISK", True, "")
    put(replica, "s|a", 500_000)
    assert has(replica, "s|a")
    replica.close()


@pytest.fixture
def few_inodes(tmp_path: Path) -> Iterator[Path]:
    """A file system for three files, its own folder among them."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount a tmpfs")
    folder = tmp_path / "few"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=8m,nr_inodes=3", "tmpfs", str(folder)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("a tmpfs can't be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_d19_without_inodes_the_start_is_refused_with_the_path_and_succeeds_once_there_are_some(
    few_inodes: Path,
) -> None:
    path = few_inodes / "replica"
    path.mkdir()
    (few_inodes / "other").touch()
    with pytest.raises(OperatingError) as caught:
        opened(path)
    assert str(path) in caught.value.message
    assert "No space left" in caught.value.message
    (few_inodes / "other").unlink()
    subprocess.run(["mount", "-o", "remount,size=8m,nr_inodes=20", str(few_inodes)], check=True)
    replica = opened(path)
    put(replica, "s|a")
    assert has(replica, "s|a")
    replica.close()


def test_d19_an_open_replica_needs_no_inode(few_inodes: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=8m,nr_inodes=20", str(few_inodes)], check=True)
    replica = opened(few_inodes / "replica")
    fillers = (few_inodes / f"filler-{number}" for number in range(20))
    with pytest.raises(OSError, match="No space left"):
        deque((filler.touch() for filler in fillers), maxlen=0)
    put(replica, "s|a")
    assert has(replica, "s|a")
    replica.commit(ReplicaBatch((), (), {}, 0, {}, tenure=7))
    assert replica.identity.tenure == 7, "the note beside the data is a hint only"
    replica.close()
