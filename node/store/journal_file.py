"""A journal in one file, a line each. Blocks for as long as its disk takes to sync, so it is for rare events only."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from pathlib import Path


class FileJournal:
    """Appends and syncs; when the file holds twice what is kept, it is replaced by what is kept, at once or not at
    all. A line that a crash left unfinished is ended before the next one, and whoever reads it finds it unreadable."""

    def __init__(self, path: Path, lines_max: int) -> None:
        self._path = path
        self._lines_max = lines_max
        written = path.read_bytes().split(b"\n") if path.exists() else []
        self._torn = bool(written) and written[-1] != b""
        found = [line for line in written if line]
        self._in_file = len(found)
        self._lines: deque[bytes] = deque(found, maxlen=lines_max)

    def append(self, line: bytes) -> None:
        """See `Journal.append`."""
        self._lines.append(line)
        if self._in_file >= 2 * self._lines_max:
            self._replace()
            return
        with self._path.open("ab") as file:
            file.write((b"\n" if self._torn else b"") + line + b"\n")
            self._torn = True
            file.flush()
            os.fsync(file.fileno())
            self._torn = False
        self._in_file += 1

    def lines(self) -> list[bytes]:
        """See `Journal.lines`."""
        return list(self._lines)

    def _replace(self) -> None:
        beside = self._path.with_suffix(".new")
        with beside.open("wb") as file:
            file.write(b"".join(line + b"\n" for line in self._lines))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)
        self._in_file, self._torn = len(self._lines), False
        with contextlib.closing(_Directory(self._path.parent)) as folder:
            os.fsync(folder.fileno)


class _Directory:
    """A folder's descriptor: a rename is durable once the folder is synced."""

    def __init__(self, path: Path) -> None:
        self.fileno = os.open(path, os.O_RDONLY)

    def close(self) -> None:
        os.close(self.fileno)
