"""Reads a whole replica file of this machine, in a process of its own: for a node that does not run."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from node.admin.protocol import FileProblem, ServeIndexVerify, VerifyItem
from promovolvectl.local.store_check import death

_MODULE = "node.store.replica_verify"


class _Problem(msgspec.Struct, frozen=True):
    kind: str
    text: str
    map: int = -1
    key: str = ""


class _Progress(msgspec.Struct, frozen=True, tag="progress"):
    """Lines of the other process before the last."""

    checked: int
    total: int
    problems: int


class _Report(msgspec.Struct, frozen=True, tag="report"):
    """The last line."""

    complete: bool
    problems: tuple[_Problem, ...] = ()
    problems_found: int = 0
    node: str = ""
    file_bytes: int = 0
    live_bytes: int = 0
    checked: int = 0


_LINE: msgspec.json.Decoder[_Progress | _Report] = msgspec.json.Decoder(_Progress | _Report)


def verify(path: Path, *, say: Callable[[str], None]) -> ServeIndexVerify:
    """What was found; a death of the other process is a finding, too."""
    began_s = time.monotonic()
    last: _Progress | _Report = _Progress(0, 0, 0)
    with subprocess.Popen([sys.executable, "-m", _MODULE, str(path)], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            last = _LINE.decode(line)
            if isinstance(last, _Progress):
                say(f"  {last.checked} of {last.total} entries, {last.problems} problems")
    report = last
    if isinstance(report, _Progress):
        problem = _Problem("structure", death(process.returncode))
        report = _Report(False, (problem,), report.problems + 1, checked=report.checked)
    elapsed_s = time.monotonic() - began_s
    item = VerifyItem(
        node=report.node or str(path),
        state="done",
        sound=report.complete and not report.problems_found,
        checked=report.checked,
        total=report.checked,
        entries_per_s=round(report.checked / elapsed_s, 1),
        problems_found=report.problems_found,
        problems=tuple(
            FileProblem(kind=one.kind, text=one.text, map=f"serve-{one.map:02d}" if one.map >= 0 else "", key=one.key)
            for one in report.problems
        ),
        complete=report.complete,
        file_bytes=report.file_bytes,
        live_bytes=report.live_bytes,
        elapsed_s=round(elapsed_s, 3),
    )
    return ServeIndexVerify(sound=item.sound, items=(item,))
