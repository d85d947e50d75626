"""Who uses a folder of the embedded store: everybody who has its file open, or one that replaces the file, alone.

The file may be renamed only while nobody has it open: who had would go on writing into the one that is no longer there.
The lock is the kernel's (`flock`), so that it goes with its process, whatever ends it.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from node.core.errors import OperatingError
from node.store import datafile

LOCK_NAME: Final = "users.lock"


class Occupancy:
    """Held from here to `close`. `alone`: nobody else may have it. Raises OperatingError `E-STORE-LIVE` (wanted alone
    and others have it) or `E-STORE-REPLACED` (somebody has it alone); `E-STORE-PATH`."""

    def __init__(self, path: Path, *, alone: bool) -> None:
        try:
            self._handle = os.open(path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise datafile.path_error(path / LOCK_NAME, error) from error
        try:
            fcntl.flock(self._handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._handle)
            raise _taken(path, alone=alone) from None

    def close(self) -> None:
        os.close(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def users(path: Path) -> tuple[int, ...]:
    """The processes that have the folder, this one excepted, out of the kernel's own table of locks."""
    try:
        inode = str((path / LOCK_NAME).stat().st_ino)
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return ()
    # "1: FLOCK  ADVISORY  READ 4123 08:01:131 0 EOF"; what waits for a lock has an arrow before its kind.
    held = (line.split() for line in lines if "->" not in line)
    found = {int(words[4]) for words in held if words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode}
    return tuple(sorted(found - {os.getpid()}))


def _taken(path: Path, *, alone: bool) -> OperatingError:
    if alone:
        who = ", ".join(map(str, users(path))) or "unknown"
        return OperatingError("E-STORE-LIVE", f"{path} is open in process {who}", hint="promovolvectl down")
    return OperatingError(
        "E-STORE-REPLACED",
        f"{path}: its file is being restored or compacted at this moment",
        hint="start again when that command has ended",
    )
