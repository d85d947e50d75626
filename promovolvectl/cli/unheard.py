"""A standard error that takes everything: what a full disk under it refuses, nobody can be told, and the command ends
as it would have ended."""

from __future__ import annotations

import errno
import io

TYPE_CHECKING = False  # as typing has it, which takes as long to load as all of this
if TYPE_CHECKING:
    from typing import TextIO

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class _Unheard(io.FileIO):
    def write(self, data, /):  # type: ignore[no-untyped-def]  # the buffer's own type has a name in Python 3.12 only
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in NO_ROOM:  # whoever stopped reading has seen enough, which ends us
                raise
            return len(data)


def unheard(stream: TextIO) -> TextIO:
    """The same stream, as a process has it; another kind of stream, as a test's, stays what it is."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    raw = _Unheard(stream.fileno(), "w", closefd=False)
    if isinstance(stream.buffer, io.RawIOBase):  # PYTHONUNBUFFERED, where nothing is kept until a line is whole
        return io.TextIOWrapper(raw, stream.encoding, stream.errors, write_through=True)
    return io.TextIOWrapper(io.BufferedWriter(raw), stream.encoding, stream.errors, line_buffering=True)
