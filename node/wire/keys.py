"""Key files: a CURVE key pair in TOML, readable by its owner alone.

A secret that others can read is refused rather than used (`reliability.md` C11): a warning would be read by nobody.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Final, NoReturn

import tomli_w

from node.core import limits
from node.core.errors import BadInput, OperatingError
from node.core.private_file import UnfitFile, read_private
from node.wire.roster import KeyPair

_PRIVATE: Final = 0o600


def read_key_pair(path: Path) -> KeyPair:
    """The key pair in a file; raises OperatingError `E-KEY-FILE` with what to run when the file can't be trusted."""
    try:
        data = read_private(path, limits.key_file_bytes_max)
    except UnfitFile as unfit:
        # Whose it is, and so what makes another one, is known to who asked.
        _refuse(path, unfit.what, unfit.hint or ("promovolvectl explain E-KEY-FILE" if unfit.unreadable else ""))
    return _parse(path, data)


def write_key_pair(path: Path, pair: KeyPair) -> None:
    """Writes a new key file with mode 0600, whole or not at all; an existing one is never replaced.

    Raises OperatingError `E-KEY-FILE`.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    text = key_document(pair)
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
        _refuse(path, f"can't be written: {error.strerror or error}")


def key_document(pair: KeyPair) -> str:
    """What stands in a key file: both halves."""
    return tomli_w.dumps({"public_key": pair.public, "secret_key": pair.secret})


def _parse(path: Path, data: bytes) -> KeyPair:
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
