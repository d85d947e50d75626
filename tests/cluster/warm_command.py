"""The installed command in a process that has its imports behind it, and forks for each line that it is told.

A test gives dozens of command lines, and half a second of each was imports. Words, environment, folder and output are
the caller's, and each line is a process of its own that ends as the program does. `cluster/test_matrix.py` and the
examples of `docs/ci.md` start the program itself.

Run as a script it is the server. A fork of the tests' own process would take its threads' locks with it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

import msgspec

_LENGTH_BYTES = 8
_END_BYTES = 4


class _Line(msgspec.Struct, frozen=True):
    """What the server is asked; stdout and stderr come with it as open files."""

    words: tuple[str, ...]
    env: dict[str, str]
    folder: str


@dataclass(frozen=True)
class Took:
    """How one line ended (as `Popen.returncode`), and how long it took."""

    words: tuple[str, ...]
    status: int
    out: str
    err: str
    seconds: float = 0.0


class WarmCommand:
    """The server, and what asks it. Several threads may."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._address = str(Path(self._folder.name, "line"))
        command = [sys.executable, "-P", __file__, self._address]
        # The server ends when its stdin does: with these tests, however they end.
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == "ready\n"

    def close(self) -> None:
        self._server.communicate()
        self._folder.cleanup()

    def run(self, words: Sequence[str], env: Mapping[str, str], timeout_s: float) -> Took:
        """One line, to its end; raises TimeoutError, and kills it, when that does not come in time."""
        line = msgspec.json.encode(_Line(tuple(words), dict(env), str(Path.cwd())))
        began = time.monotonic()
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            socket.socket(socket.AF_UNIX) as server,
        ):
            server.connect(self._address)
            socket.send_fds(server, [len(line).to_bytes(_LENGTH_BYTES, "big")], [out.fileno(), err.fileno()])
            server.sendall(line)
            pid = int.from_bytes(_read(server, _END_BYTES), "big")
            server.settimeout(timeout_s)
            try:
                status = int.from_bytes(_read(server, _END_BYTES), "big", signed=True)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise TimeoutError(f"{' '.join(words)}: no end in {timeout_s:g} s; {_text(out)} {_text(err)}") from None
            return Took(tuple(words), status, _text(out), _text(err), time.monotonic() - began)

    def run_all(self, lines: Sequence[Sequence[str]], env: Mapping[str, str], timeout_s: float) -> list[Took]:
        """All of them at the same time, in their order."""
        with ThreadPoolExecutor(len(lines)) as pool:
            return list(pool.map(lambda words: self.run(words, env, timeout_s), lines))


@cache
def warm() -> WarmCommand:
    """The one of this process of tests."""
    found = WarmCommand()
    atexit.register(found.close)
    return found


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _read(stream: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = stream.recv(count - len(found))
        assert more, "the server of warm commands has ended"
        found += more
    return found


# ---- the server


def _serve(address: str) -> None:
    from promovolvectl.cli.walk import leaves
    from promovolvectl.client.calls import AdminClient
    from promovolvectl.client.link import open_link

    assert list(leaves())
    assert AdminClient is not None
    assert open_link is not None  # their modules are what counts
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries who has answered a line
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as either:
        listener.bind(address)
        listener.listen(64)
        either.register(listener, selectors.EVENT_READ)
        either.register(sys.stdin, selectors.EVENT_READ)
        print("ready", flush=True)
        while sys.stdin not in [key.fileobj for key, _ in either.select()]:
            stream, _ = listener.accept()
            with stream:
                if not os.fork():
                    _answer(stream)


def _answer(stream: socket.socket) -> None:
    """Runs the line in a child of this process and says how it ended; returns in neither of the two."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, files, _, _ = socket.recv_fds(stream, _LENGTH_BYTES, 2)
    line = msgspec.json.decode(_read(stream, int.from_bytes(length, "big")), type=_Line)
    pid = os.fork()
    if pid:
        stream.sendall(pid.to_bytes(_END_BYTES, "big"))
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(OSError):  # it was not waited for any longer
            stream.sendall(os.waitstatus_to_exitcode(status).to_bytes(_END_BYTES, "big", signed=True))
        os._exit(0)
    stream.close()
    for place, file in enumerate((os.open(os.devnull, os.O_RDONLY), *files)):
        os.dup2(file, place)
        os.close(file)
    os.chdir(line.folder)
    os.environ.clear()
    os.environ.update(line.env)
    sys.argv = ["promovolvectl", *line.words]

    from promovolvectl.cli.main import run

    run()  # SystemExit, through everything above, ends this interpreter as the program's own would


if __name__ == "__main__":
    _serve(sys.argv[1])
