"""D8: a replica's directory that this process can't use refuses the start, with the path and what is wrong with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from node.core.clock import ManualClock
from node.core.errors import OperatingError
from node.store.replica_open import open_replica

NOBODY = 65534


def refused(path: Path) -> OperatingError:
    with pytest.raises(OperatingError) as caught:
        open_replica(path, ManualClock(), cluster_id="c-1", node="n1", tenure=1, map_bytes_max=1 << 24)
    return caught.value


def refused_as(user: int, path: Path) -> str:
    """The refusal that another user gets, in a process of its own."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            said = refused(path).message
        except BaseException as problem:
            said = f"not refused: {problem!r}"
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = str(json.load(answer))
    os.waitpid(pid, 0)
    return said


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory that every user can reach."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user, or mount")


@needs_root
@pytest.mark.parametrize(("owner", "mode"), [(0, 0o700), (NOBODY, 0o500), (NOBODY, 0o300)])
def test_d8_a_directory_with_the_wrong_owner_or_mode_is_named_with_its_mode(
    folder: Path, owner: int, mode: int
) -> None:
    path = folder / "replica"
    path.mkdir()
    os.chown(path, owner, owner)
    path.chmod(mode)
    said = refused_as(NOBODY, path)
    assert str(path) in said
    assert f"{mode:04o}" in said


@needs_root
def test_d8_a_data_file_of_another_user_is_named(folder: Path) -> None:
    path = folder / "replica"
    open_replica(path, ManualClock(), cluster_id="c-1", node="n1", tenure=1, map_bytes_max=1 << 24)[0].close()
    before = (path / "data.mdb").read_bytes()
    os.chown(path, NOBODY, NOBODY)
    assert str(path) in refused_as(NOBODY, path)
    assert (path / "data.mdb").read_bytes() == before


def test_d8_a_file_in_the_place_of_the_directory_is_named(tmp_path: Path) -> None:
    there = tmp_path / "replica"
    there.write_text("not a directory")
    error = refused(there)
    assert f"{there} is a file" in error.message
    assert error.hint.endswith(f"mv {there} {there}.aside")
    below = refused(there / "deeper" / "still")
    assert f"{there} is a file" in below.message


@needs_root
def test_d8_a_file_system_that_is_mounted_read_only_is_said_to_be(folder: Path) -> None:
    path = folder / "replica"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", path], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a tmpfs can't be mounted here: {mounted.stderr.decode().strip()}")
    try:
        error = refused(path)
    finally:
        subprocess.run(["umount", path], check=True)
    assert (error.code, str(path) in error.message, "read-only" in error.message) == ("E-STORE-PATH", True, True)
