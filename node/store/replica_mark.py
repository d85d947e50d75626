"""How many commits a replica's file has had, remembered outside its folder: an older copy of the file has had fewer.

The file itself can't tell: a copy that was made and put back within one run of its node has missed no start. The mark
is written after each commit and never synced: it outlives the process, and what a power cut takes of it makes it lag
behind the file, which says nothing against the file.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

_BYTES: Final = 8


class CommitMark:
    """In the file `path`; nowhere when there is none, or it can't be written: then every file is as new as can be."""

    def __init__(self, path: Path | None) -> None:
        self._handle = -1
        if path is not None:
            with contextlib.suppress(OSError):
                self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def read(self) -> int:
        """The commits that were counted; 0 when none were."""
        if self._handle < 0:
            return 0
        try:
            return int.from_bytes(os.pread(self._handle, _BYTES, 0), "big")
        except OSError:
            return 0

    def write(self, commits: int) -> None:
        if self._handle >= 0:
            with contextlib.suppress(OSError):
                os.pwrite(self._handle, commits.to_bytes(_BYTES, "big"), 0)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
