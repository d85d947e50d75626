"""A data file's outside: whether it may be opened at all, judged before anything in it is read.

LMDB maps its file into memory: reading behind the end of a truncated one kills the process with SIGBUS, which no
handler can catch, and an empty file opens as an empty database. So the file is compared with its own header and with
what its directory remembers, and only then read.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec

from node.core.errors import OperatingError
from node.store.pagewalk import missing_page

DATA_NAME: Final = "data.mdb"
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
T = TypeVar("T", bound=msgspec.Struct)


class Header(NamedTuple):
    """What a data file's header says of its length."""

    last_page: int
    page_bytes: int


def boot_id() -> str:
    """The name of this boot of the machine; raises OperatingError where the system has none."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError as error:
        raise OperatingError("E-NO-BOOT-ID", f"{BOOT_ID}: {error.strerror}", hint="pass the boot's name") from error


def prepare_dir(path: Path) -> None:
    """Makes the directory; raises OperatingError with the path, what is wrong with it and its mode."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as error:
        raise OperatingError(
            "E-STORE-PATH",
            f"{path} is a file, and this process needs a directory of that name",
            hint=f"move it away if nobody needs it there: {shlex.join(('mv', str(path), f'{path}.aside'))}",
        ) from error
    except NotADirectoryError as error:
        above = next((each for each in reversed(path.parents) if each.exists() and not each.is_dir()), path.parent)
        raise OperatingError(
            "E-STORE-PATH", f"{path} can't be made: {above} is a file", hint="move it away, or name another directory"
        ) from error
    except OSError as error:
        raise path_error(path, error) from error
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        raise OperatingError(
            "E-STORE-PATH", f"{path} is on a file system that is mounted read-only", hint="mount it for writing"
        )
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise OperatingError(
            "E-STORE-PATH",
            f"{path} has mode {path.stat().st_mode & 0o777:04o}, this process needs to read and write it",
            hint="give the directory to the user that runs the nodes, mode 0700",
        )


def path_error(path: Path, error: OSError) -> OperatingError:
    """The refusal of a path that the system refused."""
    return OperatingError("E-STORE-PATH", f"{path}: {error.strerror or error}", hint="check its owner, mode and disk")


def missing_data(path: Path) -> str:
    """What is wrong with a data file that must hold something already, or nothing."""
    file = path / DATA_NAME
    if not file.exists():
        return f"{file} is missing"
    if file.stat().st_size == 0:
        return f"{file} is empty"
    return ""


def truncation(path: Path, header: Callable[[], Header], locked: Callable[[], AbstractContextManager[object]]) -> str:
    """What is wrong with a data file that lacks some of its pages, or nothing.

    `header` reads last page number and page size, `locked` holds the file's write lock. A whole file that is shorter
    than its header says (see `pagewalk`) is lengthened, so that the walk is rarely needed twice. Raises OSError.
    """
    file = path / DATA_NAME
    if not is_short(path, header()):
        return ""
    with locked():
        missing = missing_page(file, header().page_bytes)
        if missing:
            return f"{missing}; its header says {header().last_page + 1}"
        lengthen(path, header())
    return ""


def lengthen(path: Path, header: Header) -> None:
    """Makes a whole file as long as its header says. Only under the write lock: another's pages could be behind the
    end by now. Raises OSError."""
    if is_short(path, header):
        os.truncate(path / DATA_NAME, (header.last_page + 1) * header.page_bytes)


def is_short(path: Path, header: Header) -> bool:
    """Whether a file is shorter than its header says."""
    return (path / DATA_NAME).stat().st_size < (header.last_page + 1) * header.page_bytes


def read_note(path: Path, name: str, shape: type[T]) -> T | None:
    """A small file beside the data; None when there is none. Raises OperatingError when it can't be read."""
    file = path / name
    try:
        return msgspec.json.decode(file.read_bytes(), type=shape)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise path_error(file, error) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OperatingError("E-STORE-DAMAGED", f"{file}: {error}", hint="restore it from a backup") from error


def write_note(path: Path, name: str, note: msgspec.Struct) -> None:
    """Replaces a small file beside the data so that a crash leaves the former or the new one. Raises OSError."""
    part = path / f"{name}.{os.getpid()}.part"
    with part.open("wb") as file:
        file.write(msgspec.json.encode(note))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path / name)
    sync_dir(path)


def sync_dir(path: Path) -> None:
    """Makes names in a directory durable. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
