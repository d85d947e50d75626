"""Checks of the command line by their names (`docs/checks.md`) that need no cluster."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from conftest import Invoke

from node.wire.keys import write_key_pair
from node.wire.zmq_sockets import new_key_pair
from promovolvectl.client.profiles import Endpoint, Profile, write_profile

START = "from promovolvectl.cli.main import run; run()"
CRASH = (
    "import promovolvectl.tui.app as app\n"
    "def broken(self): raise ZeroDivisionError('inside')\n"
    "app.Dashboard.action_refresh = broken\n"
)
MODES = {"?1049": "l", "?1000": "l", "?1003": "l", "?25": "h"}  # as a terminal must be left
WITHIN_S = 60


def test_check_e6_no_pager_is_started_whatever_is_asked_for(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is none: not in a pipe, not on a terminal with less room than the text takes."""
    mark = tmp_path / "started"
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    pager.chmod(0o700)
    for name in ("PAGER", "PROMOVOLVECTL_PAGER", "MANPAGER", "GIT_PAGER"):
        monkeypatch.setenv(name, str(pager))
    assert invoke("help", "output")[0] == 0
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 5, 80, 0, 0))
    words = [sys.executable, "-c", START, "help", "output"]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        read_all(ours, process)
    assert process.returncode == 0
    assert not mark.exists()


@pytest.mark.parametrize("ends", ["quit", "TERM", "HUP", "crash"])
def test_check_e4_the_terminal_is_left_as_it_was(ends: str, tmp_path: Path) -> None:
    """No alternate screen, no reports of the mouse, a cursor, and the line discipline as before."""
    key = tmp_path / "operator.key"
    write_key_pair(key, new_key_pair())
    nobody = Endpoint(node="n", admin="127.0.0.1:9", key=new_key_pair().public)
    write_profile(
        tmp_path / "config.toml", Profile(name="x", endpoints=(nobody,), key_file=str(key)), make_current=True
    )
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(theirs)
    code = (CRASH if ends == "crash" else "") + START
    env = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [sys.executable, "-c", code, "dashboard"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=env,
        start_new_session=True,
    )
    try:
        seen = read_until(ours, b"OFFLINE", process)
        assert b"\x1b[?1049h" in seen
        if ends in ("TERM", "HUP"):
            process.send_signal(signal.Signals[f"SIG{ends}"])
        else:
            os.write(ours, b"q" if ends == "quit" else b"r")
        seen += read_all(ours, process)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == {"quit": 0, "TERM": 143, "HUP": 129}.get(ends, process.returncode)
    assert ends != "crash" or process.returncode not in (0, -signal.SIGKILL)
    for mode, left in MODES.items():
        told = re.findall(rb"\x1b\[" + re.escape(mode.encode()) + rb"(?:;\d+)*([hl])", seen)
        assert not told or told[-1] == left.encode(), mode
    assert termios.tcgetattr(theirs) == before
    os.close(theirs)
    os.close(ours)


def read_until(handle: int, wanted: bytes, process: subprocess.Popen[bytes]) -> bytes:
    """What was drawn until this stood in it."""
    seen, until = b"", time.monotonic() + WITHIN_S
    while wanted not in seen:
        assert time.monotonic() < until, seen[-2_000:]
        assert process.poll() is None, seen[-2_000:]
        if select.select([handle], [], [], 0.2)[0]:
            seen += os.read(handle, 65_536)
    return seen


def read_all(handle: int, process: subprocess.Popen[bytes]) -> bytes:
    """Everything until the process has ended and nothing more comes."""
    seen, until = b"", time.monotonic() + WITHIN_S
    while True:
        over = process.poll() is not None
        assert time.monotonic() < until, seen[-2_000:]
        with contextlib.suppress(OSError):  # the other side has closed
            if select.select([handle], [], [], 0.2)[0]:
                data = os.read(handle, 65_536)
                seen += data
                over = over and not data
        if over:
            return seen
