"""Files with a secret: read only when their owner alone can use them.

A secret that others can read is refused rather than used (`reliability.md` C11): a warning would be read by nobody.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from pathlib import Path
from typing import Final

from node.core.errors import PromovolveError

_OTHERS: Final = 0o077


class UnfitFile(PromovolveError):
    """Why a file can't be trusted: `what` goes on after its path, `hint` is what to run; `unreadable` when it can't
    even be opened."""

    def __init__(self, what: str, hint: str = "", *, unreadable: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.unreadable = unreadable


def read_private(path: Path, bytes_max: int) -> bytes:
    """The content of a regular file of this user's that nobody else can use. Raises UnfitFile."""
    try:
        # Non-blocking, or a FIFO of that name would hold us for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnfitFile("is a symbolic link", "give the path of the file itself") from None
        raise UnfitFile(f"can't be read: {error.strerror or error}", unreadable=True) from None
    if stat.S_ISDIR(os.fstat(handle).st_mode):  # no file object can be made of one
        os.close(handle)
        raise UnfitFile("is a directory", "give the path of the file in it")
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise UnfitFile("is not a regular file")
        if found.st_uid != os.geteuid():
            raise UnfitFile(f"belongs to user {found.st_uid}", f"chown {os.geteuid()} {shlex.quote(str(path))}")
        if found.st_mode & _OTHERS:
            mode = stat.S_IMODE(found.st_mode)
            raise UnfitFile(f"can be used by others (mode {mode:04o})", f"chmod 600 {shlex.quote(str(path))}")
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise UnfitFile(f"is longer than {bytes_max} bytes")
    return data
