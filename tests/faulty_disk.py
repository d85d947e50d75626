"""A disk that fails on request, for one file of a process under test: see `data/faulty_disk.c`."""

from __future__ import annotations

import errno
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "data" / "faulty_disk.c"


class FaultyDisk:
    """Faults of the files whose path contains `concerned`, in processes that are started with `env`."""

    def __init__(self, folder: Path, concerned: str) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler: the disk's faults can't be built")
        folder.mkdir()
        self._folder = folder
        library = folder.with_suffix(".so")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
        self.env = {"LD_PRELOAD": str(library), "FAULTY_DISK": str(folder), "FAULTY_DISK_FILE": concerned}

    def fail(self, what: str, error: int = errno.EIO, count: int = 1, after: int = 0) -> None:
        """`what` is sync or write; `count` of them, behind `after` that don't; a negative one for ever, 0 every other
        one."""
        part = self._folder / "part"
        part.write_text(f"{error} {count} {after}")
        part.rename(self._folder / what)

    def hold(self) -> None:
        """Syncs wait from now on."""
        (self._folder / "hold").touch()

    def cut_short(self) -> None:
        """Writes stop half-way from now on."""
        (self._folder / "short").touch()

    def heal(self) -> None:
        for file in self._folder.iterdir():
            file.unlink(missing_ok=True)
