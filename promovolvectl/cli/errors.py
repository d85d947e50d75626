"""Errors as people and scripts get them: what, found, why, and a hint. A traceback only with `--debug`."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

from promovolvectl.cli.render import MACHINE
from promovolvectl.cli.unheard import NO_ROOM
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.visible import visible

_HINTS: Final = {errno.EBADF: "an output that is not wanted is sent to /dev/null"}


class Stopped(SystemExit):
    """A signal asked us to end. A SystemExit, so that event loops let it through."""

    def __init__(self, status: ExitStatus) -> None:
        super().__init__(int(status))
        self.status = status


def document(failed: CommandFailed) -> dict[str, Any]:
    """The one document that machine formats put on stderr."""
    return {
        "kind": "Error",
        "code": failed.code,
        "exit": int(failed.status),
        "message": failed.message,
        "hint": failed.hint,
        "object": failed.about,
        "operation": failed.operation,
    }


def report(failed: CommandFailed, output: str, err: TextIO) -> None:
    """Writes the error to stderr in the format that was asked for."""
    if output in MACHINE:
        err.write(json.dumps(document(failed)) + "\n")
        return
    first, *rest = failed.message.split("\n")
    lines = [f"error: {visible(first)} ({failed.code})", *(visible(line) for line in rest)]
    if failed.operation:
        lines.append(f"operation: {visible(failed.operation)}")
    if failed.hint:
        lines.append(f"hint: {visible(failed.hint)}")
    err.write("".join(f"{line}\n" for line in lines))


def no_room(error: BaseException) -> CommandFailed | None:
    """The failure when a disk, as under standard output, takes nothing more, or the output was closed before we began;
    None for any other error."""
    if not isinstance(error, OSError) or error.errno not in NO_ROOM:
        return None
    where = str(error.filename or "standard output")
    message = f"{where} can't be written: {error.strerror}"
    return CommandFailed(ExitStatus.LOCAL_FILE, "E-FILE", message, hint=_HINTS.get(error.errno, "df -h"), about=where)


def save_report(error: BaseException, arguments: list[str], folder: Path) -> CommandFailed:
    """Keeps what we need to find our own mistake: the stack and the versions, without anybody's data or secrets."""
    from promovolvectl.client.scrub import Scrubber, of_environment  # only who has made a mistake pays for it

    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    path = folder / f"report-{stamp}-{os.getpid()}.txt"
    words = [word for word in arguments if word.startswith("-")]
    text = "\n".join(
        (
            f"promovolvectl on Python {platform.python_version()}, {platform.system()}",
            f"flags: {' '.join(word.partition('=')[0] for word in words)}",
            "".join(traceback.format_exception(error)),
        )
    )
    where = f"a report was saved: {path}"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.ExitStack() as stack:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            stream = stack.enter_context(os.fdopen(handle, "w", encoding="utf-8"))
            stream.write(Scrubber(of_environment(os.environ.items()))(text))
    except OSError as problem:
        where = f"a report could not be saved in {folder}: {problem.strerror}"
    return CommandFailed(
        ExitStatus.BUG,
        "E-BUG",
        f"this is a mistake of ours, not of yours; {where}",
        hint="the same command with --debug",
    )
