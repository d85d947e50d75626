"""An archive's file: under its name it is whole and synced, or it is not there.

It is written beside its place under another name, which says whose it is by a lock of the kernel: what a killed command
has left there is cleared away by the next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from node.core.clock import rfc3339
from node.core.errors import OperatingError
from node.core.faultpoints import reach
from node.store import datafile

SUFFIX: Final = ".pbk"
_PART: Final = ".promovolve-backup-{}.part"


class ArchiveFile:
    """Where an archive is being written. `to` is a folder that is there, in which it gets a name of its own, or the
    file that it shall be, which must not be there yet. Raises OperatingError `E-FILE`, `E-EXISTS`."""

    def __init__(self, to: Path) -> None:
        self._to = to
        self.folder = to if to.is_dir() else to.parent
        if to.exists() and not to.is_dir():
            raise _exists(to)
        try:
            _clear(self.folder)
            self._part = self.folder / _PART.format(os.getpid())
            handle = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            self.stream: BinaryIO = os.fdopen(handle, "wb")
        except OSError as error:
            raise _trouble(self.folder, error) from error
        fcntl.flock(self.stream, fcntl.LOCK_EX)

    def keep(self, cluster: str, taken_at_ms: int) -> Path:
        """Gives what was written its name, for good, and returns it. Never in another file's stead."""
        if self._to.is_dir():
            moment = rfc3339(taken_at_ms).translate({ord(char): None for char in "-:."})
            final = self._to / f"{cluster}-{moment}{SUFFIX}"
        else:
            final = self._to
        try:
            self.stream.flush()
            os.fsync(self.stream.fileno())
            reach("backup.written")
            os.link(self._part, final)
            datafile.sync_dir(self.folder)
            reach("backup.named")
        except FileExistsError:
            raise _exists(final) from None
        except OSError as error:
            raise _trouble(final, error) from error
        return final

    def close(self) -> None:
        """Takes the other name away; what was not kept is gone."""
        self._part.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.stream.close()


@contextlib.contextmanager
def archive_file(to: Path) -> Iterator[ArchiveFile]:
    file = ArchiveFile(to)
    try:
        yield file
    except OSError as error:
        raise _trouble(file.folder, error) from error
    finally:
        file.close()


def _clear(folder: Path) -> None:
    """Removes what killed commands have left: nobody holds its lock any more."""
    for part in folder.glob(_PART.format("*")):
        with contextlib.suppress(FileNotFoundError, BlockingIOError), part.open("rb") as left:
            fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()


def _exists(path: Path) -> OperatingError:
    return OperatingError("E-EXISTS", f"{path} is there already", hint="name another file, or a folder")


def _trouble(path: Path, error: OSError) -> OperatingError:
    return OperatingError("E-FILE", f"{path}: {error.strerror or error}", hint="check its owner, mode and disk")
