"""Every secret that the suite makes is a canary: looked for, at the end, wherever no byte of it may stand.

A secret is cut into pieces of sixteen bytes and each piece is looked for as it is, in hexadecimal, base64, Z85 and
what text makes of these, so that half a key in the middle of something larger is found, too. A searcher looks for all
pieces of all secrets in one walk over the data.

Keys of this process are learnt where they are made (`zmq.curve_keypair`), those of processes from their files, which
is where they may stand, and the publishers' signing secrets from the store, where those may.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import html
import io
import re
import tarfile
import threading
import tomllib
import urllib.parse
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pytest
import zmq
from zmq.utils import z85

PIECE: Final = 16
LEAST: Final = 8  # no spelling of a piece is shorter
CHUNK_BYTES: Final = 4 << 20
FILE_BYTES_MAX: Final = 64 << 20
KEY_FILE_BYTES_MAX: Final = 4 << 10
RECENT: Final = 64
_SECRET_KEY: Final = re.compile(r'secret_key\s*=\s*"([^"]{40})"')


# ---- how a secret may be spelled


def spellings(secret: bytes) -> Iterator[bytes]:
    """Every spelling of every piece."""
    for begin in range(0, len(secret) - PIECE + 1, PIECE):
        piece = secret[begin : begin + PIECE]
        yield from _written(piece)
        as_z85: bytes = z85.encode(piece)
        yield from _written(as_z85)
        yield html.escape(as_z85.decode()).encode()
        yield urllib.parse.quote(as_z85, safe="").encode()
        yield repr(piece)[2:-1].encode()


def _written(piece: bytes) -> Iterator[bytes]:
    yield piece
    yield piece.hex().encode()
    yield piece.hex().upper().encode()
    for shift in range(3):
        # What base64 makes of a piece depends on where it begins; the characters shared with neighbours are left out.
        head, whole = (0, 2, 3)[shift], 8 * (shift + len(piece)) // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(b"\0" * shift + piece)[head:whole]


class Searcher:
    """Looks for many secrets at once. `add` them, then ask `found`."""

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}
        self._by_start: dict[bytes, list[bytes]] | None = None
        self._pairs = np.zeros(1 << 16, bool)
        self._starts = np.zeros(0, np.uint32)
        self._longest = 0

    def __len__(self) -> int:
        return len(self._names)

    def add(self, name: str, secret: bytes) -> None:
        """`name` is what a finding says, in place of the secret."""
        self.add_words(name, *spellings(secret))

    def add_words(self, name: str, *words: bytes) -> None:
        """To be found as they are."""
        for word in words:
            assert len(word) >= LEAST, f"{name} would be found everywhere"
            self._names.setdefault(word, name)
        self._by_start = None

    def found(self, data: bytes) -> set[str]:
        """The names of what stands in the data, whole or a piece of it."""
        if self._by_start is None:
            self._prepare()
        names: set[str] = set()
        for begin in range(0, len(data), CHUNK_BYTES):
            names |= self._found(data[begin : begin + CHUNK_BYTES + self._longest])
        return names

    def _prepare(self) -> None:
        self._by_start = {}
        for word in self._names:
            self._by_start.setdefault(word[:4], []).append(word)
        self._pairs = np.zeros(1 << 16, bool)
        for start in self._by_start:
            self._pairs[start[0] << 8 | start[1]] = True
        self._starts = np.array(sorted(int.from_bytes(start, "big") for start in self._by_start), np.uint32)
        self._longest = max(map(len, self._names), default=0)

    def _found(self, data: bytes) -> set[str]:
        if len(data) < LEAST or not self._names:
            return set()
        assert self._by_start is not None
        octets = np.frombuffer(data, np.uint8).astype(np.uint16)
        pairs = octets[:-1] << 8 | octets[1:]
        at = np.flatnonzero(self._pairs[pairs[:-2]])
        at = at[np.isin(pairs[at].astype(np.uint32) << 16 | pairs[at + 2], self._starts)]
        return {
            self._names[word]
            for place in at.tolist()
            for word in self._by_start[data[place : place + 4]]
            if data.startswith(word, place)
        }


# ---- where to look


def readings(path: Path) -> Iterator[bytes]:
    """What stands in a file: its bytes, and what is packed in them."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            return
        data = path.read_bytes()
    except OSError:
        return  # it went while it was looked for
    yield data
    if data[:2] == b"\x1f\x8b":
        try:
            plain = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            return
        yield plain
        try:
            with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
                yield from (file.read() for member in tar if (file := tar.extractfile(member)))
        except tarfile.TarError:
            return


def keys_in(folder: Path) -> dict[Path, bytes]:
    """The secret halves that stand in files of keys, wherever these are below a folder."""
    found = {}
    for path in folder.rglob("*key*"):
        try:
            if path.is_file() and path.stat().st_size <= KEY_FILE_BYTES_MAX:
                secret = tomllib.loads(path.read_text())["secret_key"]
                found[path] = z85.decode(secret)
        except (OSError, ValueError, KeyError):
            continue
    return found


def keys_written(text: str) -> list[bytes]:
    """The secret halves that an answer shows to whoever asked for a new key on standard output."""
    return [z85.decode(found) for found in _SECRET_KEY.findall(text)]


class Sampler:
    """Keeps the command line of every process that was seen on this machine while it ran. A process is read twice: the
    first time it may still be a copy of who has started it."""

    def __init__(self, each_s: float = 0.2) -> None:
        self.seen: set[bytes] = set()
        self._each_s = each_s
        self._reads: dict[str, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(10)

    def _sample(self) -> None:
        while not self._over.is_set():
            there = [path.name for path in Path("/proc").iterdir() if path.name.isdecimal()]
            reads = {name: self._reads.get(name, 0) for name in there}
            for name in [name for name in there if reads[name] < 2]:
                with contextlib.suppress(OSError):  # it has ended meanwhile
                    self.seen.add(Path(f"/proc/{name}/cmdline").read_bytes())
                reads[name] += 1
            self._reads = reads
            self._over.wait(self._each_s)


# ---- keys of this process


class Recent:
    """The secret halves of the newest keys that this process has made."""

    def __init__(self) -> None:
        self._made: deque[bytes] = deque(maxlen=RECENT)
        self._searcher: Searcher | None = None

    def listen(self) -> None:
        """From now on each pair that is made is known. Before anything is imported that makes one."""
        make = zmq.curve_keypair

        def made() -> tuple[bytes, bytes]:
            public, secret = make()
            self.know(z85.decode(secret))
            return public, secret

        zmq.curve_keypair = made

    def know(self, secret: bytes) -> None:
        self._made.append(secret)
        self._searcher = None

    def found(self, texts: Iterable[str]) -> set[str]:
        """Which of them stand in what was printed or logged."""
        data = "\0".join(texts).encode(errors="replace")
        if not data.strip(b"\0"):
            return set()
        if self._searcher is None:
            self._searcher = Searcher()
            for number, secret in enumerate(self._made):
                self._searcher.add(f"key {number} of the newest {len(self._made)}", secret)
        return self._searcher.found(data)


RECENTLY_MADE: Final = Recent()


def fail_if_told(report: pytest.TestReport, recent: Recent = RECENTLY_MADE) -> None:
    """Makes a report one of failure when a recent key stands in what was printed, logged or said of the failure, and
    takes that out of it."""
    texts = [text for _, text in report.sections] + ([report.longreprtext] if report.failed else [])
    found = recent.found(texts)
    if found:
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: {', '.join(sorted(found))} was printed or logged"
        report.sections.clear()
