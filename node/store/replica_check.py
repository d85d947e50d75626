"""Checks a whole replica file in a process of its own, which a damaged file may kill.

The file may be open in the node that asks: the other process reads beside it.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from node.core import limits
from node.store.replica_report import Line, Problem, ReplicaReport, VerifyProgress

_LINE: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


async def check(path: Path, progress: Callable[[VerifyProgress], None] = lambda _: None) -> ReplicaReport:
    """The report on the replica in the directory `path`, after `progress` so far. That the other process ended early
    is a problem in the report; raises OSError only when none could be started. Cancelled, it ends the other process."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "node.store.replica_verify",
        str(path),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        limit=limits.verify_line_bytes_max,
    )
    try:
        last: Line | None = None
        assert child.stdout is not None
        async for line in child.stdout:
            last = _LINE.decode(line)
            if isinstance(last, VerifyProgress):
                progress(last)
        status = await child.wait()
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if isinstance(last, ReplicaReport):
        return last
    checked = last.checked if last is not None else 0
    problem = Problem("structure", f"{_death(status)} after {checked} entries")
    found = (last.problems if last is not None else 0) + 1
    return ReplicaReport(str(path), complete=False, problems=(problem,), problems_found=found, checked=checked)


def _death(status: int) -> str:
    if status < 0:
        return f"the process that read it was ended by {signal.Signals(-status).name}"
    return f"the process that read it ended with status {status}"
