"""Parts into one file: redacted, within a limit, a manifest that says what is missing; whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from promovolvectl.client.doctor_kinds import BundleNode, BundlePart
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.scrub import Scrubber
from promovolvectl.local.bundle.collecting import Part

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
_KEPT_LEAST: Final = 4_096  # of a log that must be cut: less tells nothing


def fitted(parts: Iterable[Part], limit_bytes: int, scrub: Scrubber) -> list[tuple[BundlePart, bytes]]:
    """Redacted parts that fit into the limit together, before they are packed. Those that can be cut come last: they
    lose their beginnings when there is no room for all of them, each its share."""
    left = limit_bytes
    rows: dict[str, tuple[BundlePart, bytes]] = {}
    logs: list[Part] = []
    order = [*parts]
    for part in order:
        if part.text is None:
            rows[part.path] = _row(part, "missing", b"", scrub(part.why)), b""
        elif part.tail:
            logs.append(part)
        else:
            data = scrub(part.text).encode()
            if len(data) > left:
                why = f"{len(data)} bytes; {left} were left of {limit_bytes}"
                rows[part.path] = _row(part, "left_out", b"", why), b""
            else:
                left -= len(data)
                rows[part.path] = _row(part, "whole", data, ""), data
    for number, part in enumerate(logs):
        row, data = _log(part, left // (len(logs) - number), scrub)
        left -= len(data)
        rows[part.path] = row, data
    return [rows[part.path] for part in order]


def _log(part: Part, share: int, scrub: Scrubber) -> tuple[BundlePart, bytes]:
    data = scrub(part.text or "").encode()
    if len(data) <= share:
        return _row(part, "cut" if part.why else "whole", data, part.why), data
    if share < _KEPT_LEAST:
        return _row(part, "left_out", b"", f"{len(data)} bytes; no room within the limit"), b""
    kept = data[-share:].partition(b"\n")[2]
    return _row(part, "cut", kept, f"the last {len(kept)} of {len(data)} bytes"), kept


def _row(part: Part, state: Any, data: bytes, why: str) -> BundlePart:
    digest = hashlib.sha256(data).hexdigest() if state in ("whole", "cut") else ""
    return BundlePart(
        path=part.path, source=part.source, at=part.at, state=state, size_bytes=len(data), sha256=digest, why=why
    )


def manifest(head: dict[str, Any], nodes: Sequence[BundleNode], rows: Sequence[BundlePart]) -> bytes:
    """`head`: who made it, when, of which cluster."""
    document = {"format": FORMAT, **head, "nodes": nodes, "parts": rows}
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


def write(path: Path, fitting: Sequence[tuple[BundlePart, bytes]], told: bytes) -> tuple[int, str]:
    """The file's size and sha256. Raises CommandFailed (17), also for a file that is there already."""
    if path.exists():
        raise CommandFailed(
            ExitStatus.LOCAL_FILE,
            "E-FILE",
            f"{path} is there already",
            hint="name another file with -f",
            about=str(path),
        )
    root = path.name.removesuffix(".gz").removesuffix(".tar")
    try:
        with _replacing(path) as stream, tarfile.open(fileobj=stream, mode="w:gz") as tar:
            _add(tar, f"{root}/{MANIFEST}", told)
            for row, data in fitting:
                if row.state in ("whole", "cut"):
                    _add(tar, f"{root}/{row.path}", data)
        with path.open("rb") as stream:
            return path.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        text = f"{path} can't be written: {error.strerror}"
        raise CommandFailed(ExitStatus.LOCAL_FILE, "E-FILE", text, about=str(path)) from error


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file of its owner's alone that appears under its name when it is whole."""
    handle, temporary = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(data), 0o600, int(time.time())
    tar.addfile(entry, io.BytesIO(data))
