"""A file system of a few MiB in a folder's place, which a test fills and makes room on again."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest

from node.store import whereabouts

BLOCK_BYTES = 4_096


def needs_mounts() -> None:
    """Skips where this process may not mount."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a tmpfs")
    if shutil.which("mount") is None:
        pytest.skip("the command mount is missing")


class SmallDisk:
    """What is mounted."""

    def __init__(self, folder: Path) -> None:
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Until not one block is left."""
        with self._filler.open("ab", buffering=0) as file:
            writes = iter(lambda: file.write(bytes(BLOCK_BYTES)), None)
            with pytest.raises(OSError, match="No space left"):
                deque(writes, maxlen=0)

    def make_room(self) -> None:
        self._filler.unlink()


def compact(folder: Path) -> None:
    """Rewrites an LMDB file without free pages, so that the next write needs room on the disk."""
    tidy = folder / "tidy"
    tidy.mkdir()
    environment = lmdb.open(str(folder), readonly=True, lock=False)
    environment.copy(str(tidy), compact=True)
    environment.close()
    (tidy / "data.mdb").replace(folder / "data.mdb")
    tidy.rmdir()


def go_on_as_new(folder: Path) -> None:
    """A store's file that was copied is taken for the file of before: nobody used another one meanwhile."""
    whereabouts.unname(folder / "data.mdb")
    whereabouts.forget(folder)


@contextlib.contextmanager
def small_disk(folder: Path, mib: int) -> Iterator[SmallDisk]:
    """A tmpfs over an LMDB directory that nobody uses now nor when this ends; its data moves there and back."""
    needs_mounts()
    aside = folder.with_name(f"{folder.name}.aside")
    shutil.copytree(folder, aside)
    options = f"size={mib}m,mode=0700,uid={os.getuid()}"
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(aside)
        pytest.skip(f"a tmpfs can't be mounted here: {done.stderr.strip()}")
    try:
        shutil.copytree(aside, folder, dirs_exist_ok=True)
        compact(folder)
        go_on_as_new(folder)
        yield SmallDisk(folder)
    finally:
        shutil.rmtree(aside)
        shutil.copytree(folder, aside, ignore=shutil.ignore_patterns("filler"))
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        shutil.rmtree(folder)
        aside.rename(folder)
        go_on_as_new(folder)
