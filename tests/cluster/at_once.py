"""Command lines that run at the same time, each in a process of its own that has its imports behind it.

Run as a script it is the nursery: it imports, says so, and forks a child for each line that it is told; a fork of the
tests' own process would take its threads' locks with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Took:
    """How one of them ended, and how long it took from its fork on."""

    words: tuple[str, ...]
    status: int
    out: str
    err: str
    seconds: float


class Nursery:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, lines: Sequence[Sequence[str]]) -> list[Took]:
        """All of them at once, in their order."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([list(line) for line in lines]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the nursery has ended"
        found: list[dict[str, Any]] = json.loads(answer)
        return [Took(tuple(line), **ended) for line, ended in zip(lines, found, strict=True)]


@contextmanager
def nursery(env: Mapping[str, str]) -> Iterator[Nursery]:
    """Ready when it is entered."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, env=dict(env), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield Nursery(process)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(10) == 0
        finally:
            process.kill()


def _serve() -> None:
    from promovolvectl.cli.walk import leaves
    from promovolvectl.client.calls import AdminClient
    from promovolvectl.client.link import open_link

    assert list(leaves())
    assert AdminClient is not None
    assert open_link is not None  # their modules are what counts
    print("ready", flush=True)
    for order in sys.stdin:
        lines = json.loads(order)
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            pids = [_forked(line, Path(folder, str(number))) for number, line in enumerate(lines)]
            ended = {}
            while len(ended) < len(pids):
                pid, status = os.wait()
                ended[pid] = (os.waitstatus_to_exitcode(status), time.monotonic() - began)
            found = [
                {
                    "status": ended[pid][0],
                    "out": Path(folder, f"{number}.out").read_text(),
                    "err": Path(folder, f"{number}.err").read_text(),
                    "seconds": ended[pid][1],
                }
                for number, pid in enumerate(pids)
            ]
        print(json.dumps(found), flush=True)


def _forked(line: list[str], where: Path) -> int:
    """The child's pid."""
    pid = os.fork()
    if pid:
        return pid
    from promovolvectl.cli.main import main

    status = 1
    try:
        with where.with_suffix(".out").open("w") as out, where.with_suffix(".err").open("w") as err, Path(
            os.devnull
        ).open() as nobody:
            sys.stdin, sys.stdout, sys.stderr = nobody, out, err
            status = main(line)
    finally:
        os._exit(status)


if __name__ == "__main__":
    _serve()
