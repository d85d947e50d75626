"""Reads every record of an embedded store, in a process of its own: a damaged file can kill whoever reads it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.store_kinds import DamagedRecord, StoreVerify

_MODULE = "node.store.verify"


class _Progress(msgspec.Struct, frozen=True):
    """One line of the other process."""

    checked: int = 0
    damaged: tuple[str, ...] = ()
    done: bool = False
    error: str = ""


def verify(path: Path, *, say: Callable[[str], None]) -> StoreVerify:
    """What was found. Raises CommandFailed 15 when the scan could not go to the end, with what was found before."""
    command = [sys.executable, "-m", _MODULE, str(path)]
    last = _Progress()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            last = msgspec.json.decode(line, type=_Progress)
            if not last.done:
                say(f"{last.checked} records checked, {len(last.damaged)} damaged")
    if not last.done:
        raise CommandFailed(
            ExitStatus.FAILED,
            "E-STORE-DAMAGED",
            f"{path}: {last.error or death(process.returncode)} after {last.checked} records",
            hint="keep the folder as it is and restore a backup",
            about=str(path),
        )
    damaged = tuple(DamagedRecord(record=name) for name in last.damaged)
    return StoreVerify(path=str(path), checked=last.checked, damaged=damaged)


def death(status: int) -> str:
    """How a scan ended that said nothing last."""
    if status < 0:
        return f"the scan was ended by {signal.Signals(-status).name}, as reading behind a file's end is,"
    return f"the scan ended with status {status}"
