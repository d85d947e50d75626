"""The file of bearer tokens, read again when it has changed: what was taken out of it is refused within a second."""

from __future__ import annotations

from pathlib import Path

from node.core import limits
from node.core.clock import MS, Clock
from node.core.errors import BadInput, OperatingError
from node.core.private_file import UnfitFile, read_private
from node.engine.faults import Faults
from node.http.access import Access, parse_access

FAULT = "E-HTTP-ACCESS"


class AccessFile:
    """`now` is what counts at the moment; without a path nobody has a token. A file that has become unfit leaves what
    was read before in effect, and is a fault that the operator sees."""

    def __init__(self, path: Path | None, clock: Clock, faults: Faults) -> None:
        """Raises OperatingError for a file that can't be used: a node starts with what it was told, or not at all."""
        self._path = path
        self._clock = clock
        self._faults = faults
        self._seen = self._stamp()
        self._looked_ns = clock.mono_ns()
        self._access = self._read() if path is not None else Access()

    def now(self) -> Access:
        now_ns = self._clock.mono_ns()
        if self._path is not None and now_ns - self._looked_ns >= limits.http_access_look_ms * MS:
            self._looked_ns = now_ns
            self._look()
        return self._access

    def _look(self) -> None:
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self._access = self._read()
        except OperatingError as error:
            self._faults.put(FAULT, str(self._path), f"{error.message}; the tokens read before still count")
        else:
            self._faults.clear(FAULT, str(self._path))

    def _stamp(self) -> tuple[int, ...]:
        try:
            found = self._path.lstat() if self._path is not None else None
        except OSError:
            return ()
        return (found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode) if found is not None else ()

    def _read(self) -> Access:
        path = self._path
        assert path is not None
        try:
            return parse_access(read_private(path, limits.http_access_bytes_max).decode("utf-8"))
        except UnfitFile as error:
            raise OperatingError("E-CONFIG", f"{path} {error.what}", hint=error.hint) from None
        except UnicodeDecodeError as error:
            raise OperatingError("E-CONFIG", f"{path}: not UTF-8: {error.reason}") from None
        except BadInput as error:
            raise OperatingError("E-CONFIG", f"{path}: {error.message}") from None
