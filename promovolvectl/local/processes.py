"""Node processes of one folder: started in sessions of their own, recognised by pid *and* start time.

A process writes its pid file itself, before it becomes the node: whoever starts it may be killed at any moment, and
what it has started is known all the same. A pid alone is handed out again by the kernel, after a crash or a reboot;
with the time at which the process started it names one process for ever, so that nothing is ever signalled that was
not started here.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from promovolvectl.local import layout as lay

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_LOG_TAIL_BYTES: Final = 16_384
_CODED: Final = re.compile(r"E-[A-Z-]+: ")
# Run by sh with the pid file, the boot id and the node's command: proc(5), field 22 of stat, is when it started. The
# name in brackets is its own, `sh`: nothing in it can be taken for a field.
_BECOME: Final = (
    'read -r stat < /proc/$$/stat && file=$1 boot=$2 && shift 2 && started=$(set -- $stat; echo "${22}") '
    '&& printf "%s %s %s\\n" $$ "$started" "$boot" > "$file.new" && mv "$file.new" "$file" && exec "$@"'
)
_PID_FILE_S: Final = 5.0
_LOOK_S: Final = 0.005
_OVERRIDES: Final = "PROMOVOLVE_NODE_"  # one set for a single node would change all of them


@dataclass(frozen=True, slots=True)
class Process:
    """One process for ever: `started` in clock ticks since boot, `boot` the id of that boot."""

    pid: int
    started: int
    boot: str

    def alive(self) -> bool:
        """False also for one that has ended and waits for its parent."""
        return self.boot == _boot() and _started(self.pid) == self.started

    def stopped(self) -> bool:
        """Whether it stands still, by SIGSTOP or under a debugger: it lives, and neither serves nor ends."""
        return self.alive() and _stat(self.pid)[:1] in (["T"], ["t"])

    @property
    def resuming(self) -> str:
        """The command that lets it go on."""
        return f"kill -CONT {self.pid}"

    def signal(self, number: signal.Signals) -> None:
        """Nothing happens when it has ended meanwhile."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


@dataclass(slots=True)
class Child:
    """A process that this command started: its exit status can be asked for, and its log since then."""

    process: Process
    popen: subprocess.Popen[bytes]
    log: Path
    log_offset: int = field(default=0)

    def ended(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        return self.popen.poll()

    def last_line(self) -> str:
        """The error with a code that it ended with, or else the last thing that it said but for a hint: a server may
        say that it stops after the node has said why. Empty when it said nothing."""
        try:
            with self.log.open("rb") as stream:
                end = stream.seek(0, os.SEEK_END)
                stream.seek(max(self.log_offset, end - _LOG_TAIL_BYTES))
                lines = stream.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        said = [line.strip() for line in reversed(lines) if line.strip() and not line.startswith("hint:")]
        return next((line for line in said if _CODED.match(line)), said[0] if said else "")


def running(folder: Path, name: str) -> Process | None:
    """The node's process when it runs."""
    try:
        pid, started, boot = lay.pid_file(folder, name).read_text(encoding="ascii").split()
        process = Process(int(pid), int(started), boot)
    except (OSError, ValueError):
        return None
    return process if process.alive() else None


def start(folder: Path, name: str) -> Child:
    """Starts a node's process; raises CommandFailed (17) when its log can't be written."""
    log = lay.log_file(folder, name)
    try:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise lay.local_trouble(log, error) from error
    try:
        offset = os.fstat(handle).st_size
        popen = subprocess.Popen(
            ["/bin/sh", "-c", _BECOME, "sh", str(lay.pid_file(folder, name)), _boot(), *_command(folder, name)],
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=handle,
            cwd=lay.node_dir(folder, name),
            env={key: value for key, value in os.environ.items() if not key.startswith(_OVERRIDES)},
            start_new_session=True,
            umask=0o077,
        )
    except OSError as error:
        raise lay.local_trouble(Path(sys.executable), error) from error
    finally:
        os.close(handle)
    child = Child(Process(popen.pid, _started(popen.pid) or 0, _boot()), popen, log, offset)
    until = time.monotonic() + _PID_FILE_S
    while child.ended() is None and running(folder, name) != child.process and time.monotonic() < until:
        time.sleep(_LOOK_S)
    return child


def _command(folder: Path, name: str) -> list[str]:
    # -P: the folder that it is started from must not hide the installed package
    return [sys.executable, "-P", "-m", "node", "--config", str(lay.node_file(folder, name))]


def forget(folder: Path, name: str) -> None:
    """Removes the pid file of a process that has ended."""
    with contextlib.suppress(OSError):
        lay.pid_file(folder, name).unlink(missing_ok=True)


def _boot() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip() or "-"
    except OSError:
        return "-"


def _started(pid: int) -> int | None:
    """When a live process began (proc(5), field 22 of stat); None when there is none, or only a zombie."""
    fields = _stat(pid)
    return None if not fields or fields[0] in "ZX" else int(fields[19])


def _stat(pid: int) -> list[str]:
    """The fields of proc(5) from the state on, empty when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()  # the name before it may hold spaces and brackets
