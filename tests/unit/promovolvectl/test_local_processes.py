"""Starting processes and saying who is in the way: what is known of them when whoever started them is gone."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.local import files, layout, ports, processes
from promovolvectl.local.roles import spread

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]
# Starts a node's process and is gone at once, as if killed there.
GONE = """
import os, sys
from pathlib import Path
from promovolvectl.local import processes
processes._PID_FILE_S = 0.0
processes._command = lambda folder, name: [sys.executable, "-c", "import time; time.sleep(60)"]
processes.start(Path(sys.argv[1]), "n1")
os._exit(9)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("run", "logs", "nodes/n1"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def test_a_process_is_known_by_its_file_as_soon_as_it_is_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_command", lambda folder, name: SLEEPER)
    child = processes.start(folder, "n1")
    try:
        assert processes.running(folder, "n1") == child.process
        assert child.process.pid == child.popen.pid
        assert stat_mode(layout.pid_file(folder, "n1")) == 0o600
    finally:
        child.popen.kill()
        child.popen.wait()
    assert processes.running(folder, "n1") is None


def stat_mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_process_whose_starter_was_killed_is_found_again(folder: Path) -> None:
    gone = subprocess.run([sys.executable, "-c", GONE, str(folder)], check=False, timeout=60)
    assert gone.returncode == 9
    until = time.monotonic() + 20
    while (found := processes.running(folder, "n1")) is None:
        assert time.monotonic() < until, "nobody knows the process that was started"
        time.sleep(0.01)
    assert found.alive()
    found.signal(signal.SIGKILL)
    while found.alive():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_pid_file_that_can_not_be_written_ends_the_process_with_its_reason(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_command", lambda folder, name: SLEEPER)
    (folder / "run").rmdir()
    child = processes.start(folder, "n1")
    assert child.popen.wait(timeout=20) != 0
    assert "n1.pid" in child.last_line()


def test_the_error_it_ended_with_is_told_before_what_a_server_says_as_it_stops(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "echo 'E-REMOVED: the cluster removed this node'; echo 'hint: start it again'; echo INFO Shutting down"
    monkeypatch.setattr(processes, "_command", lambda folder, name: ["/bin/sh", "-c", said])
    child = processes.start(folder, "n1")
    assert child.popen.wait(timeout=20) == 0
    assert child.last_line() == "E-REMOVED: the cluster removed this node"


def test_who_listens_on_a_port_is_named() -> None:
    with socket.socket() as listener:
        listener.bind((ports.HOST, 0))
        port = listener.getsockname()[1]
        assert ports.holder(port) == "another program", "it has the port and does not listen yet"
        listener.listen()
        assert f"(process {os.getpid()})" in ports.holder(port)


@pytest.mark.parametrize(
    ("number", "hint"),
    [(errno.ENOSPC, "df -h {0}"), (errno.EACCES, "ls -ld {0}"), (errno.ENOENT, "ls -la {0}")],
)
def test_what_the_system_refuses_comes_with_a_way_out(tmp_path: Path, number: int, hint: str) -> None:
    failed = layout.local_trouble(tmp_path / "is" / "not", OSError(number, os.strerror(number)))
    assert os.strerror(number) in failed.message
    assert failed.hint.startswith(hint.format(tmp_path))


def test_a_key_that_finds_no_room_is_the_disk_s_trouble_and_made_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ports.plan(tmp_path, "local", spread(1))

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("node.wire.keys.os.fsync", full)
        with pytest.raises(CommandFailed, match="No space left on device") as caught:
            files.prepare(tmp_path, found)
    assert (caught.value.status, caught.value.code) == (ExitStatus.LOCAL_FILE, "E-FILE")
    assert caught.value.hint.startswith("df -h ")
    assert files.prepare(tmp_path, found).keys() == {"api-1"}
