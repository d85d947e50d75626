"""Key files: a CURVE key pair in TOML, readable by its owner alone.

A secret that others can read is refused rather than used (`reliability.md` C11): a warning would be read by nobody.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
import tomllib
from pathlib import Path
from typing import Final, NoReturn

import tomli_w

from node.core import limits
from node.core.errors import BadInput, OperatingError
from node.wire.roster import KeyPair

_OTHERS: Final = 0o077
_PRIVATE: Final = 0o600


def read_key_pair(path: Path) -> KeyPair:
    """The key pair in a file; raises OperatingError `E-KEY-FILE` with what to run when the file can't be trusted."""
    try:
        # Non-blocking, or a FIFO of that name would hold us for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            _refuse(path, "is a symbolic link", "give the path of the file itself")
        _refuse(path, error.strerror or str(error), "promovolvectl up makes the keys of a cluster on this machine")
    if stat.S_ISDIR(os.fstat(handle).st_mode):  # no file object can be made of one
        os.close(handle)
        _refuse(path, "is a directory", "give the path of the key file in it")
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            _refuse(path, "is not a regular file")
        if found.st_uid != os.geteuid():
            _refuse(path, f"belongs to user {found.st_uid}", f"chown {os.geteuid()} {shlex.quote(str(path))}")
        if found.st_mode & _OTHERS:
            mode = stat.S_IMODE(found.st_mode)
            _refuse(path, f"can be used by others (mode {mode:04o})", f"chmod 600 {shlex.quote(str(path))}")
        data = file.read(limits.key_file_bytes_max + 1)
    return _parse(path, data)


def write_key_pair(path: Path, pair: KeyPair) -> None:
    """Writes a new key file with mode 0600, whole or not at all; an existing one is never replaced.

    Raises OperatingError `E-KEY-FILE`.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    text = tomli_w.dumps({"public_key": pair.public, "secret_key": pair.secret})
    try:
        part.unlink(missing_ok=True)
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE)
        try:
            with os.fdopen(handle, "wb") as file:
                os.fchmod(file.fileno(), _PRIVATE)
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            os.link(part, path)  # unlike a rename it fails when the path is taken
        finally:
            part.unlink(missing_ok=True)
        _sync_directory(path.parent)
    except FileExistsError:
        _refuse(path, "exists already", "choose another path, or move the old key away first")
    except OSError as error:
        _refuse(path, error.strerror or str(error))


def _parse(path: Path, data: bytes) -> KeyPair:
    if len(data) > limits.key_file_bytes_max:
        _refuse(path, f"is longer than {limits.key_file_bytes_max} bytes")
    try:
        document = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        _refuse(path, "is not TOML")  # no detail: it would quote the secret
    public, secret = document.get("public_key"), document.get("secret_key")
    if not isinstance(public, str) or not isinstance(secret, str):
        _refuse(path, "has no public_key or no secret_key")
    try:
        return KeyPair(public, secret)
    except BadInput as error:
        _refuse(path, error.message)


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _refuse(path: Path, what: str, hint: str = "") -> NoReturn:
    raise OperatingError("E-KEY-FILE", f"key file {path} {what}", hint=hint) from None
