"""A cluster's folder as `up` makes it, and a process that stands in it as a node's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from promovolvectl.local import cluster, files, layout, ports, roles
from promovolvectl.local.roles import spread


def up(folder: Path, *, profile: str = "local", nodes: roles.Carried | None = None) -> None:
    cluster.up(
        folder,
        nodes=nodes,
        demo=False,
        profile=profile,
        config=folder.parent / "config.toml",
        timeout_ms=1_000,
        say=lambda line: None,
    )


def made(folder: Path, *, nodes: int = 4) -> layout.Layout:
    """A folder as `up` leaves it before it starts processes."""
    layout.claim(folder)
    found = ports.plan(folder, "local", spread(nodes))
    layout.write(folder, found)
    files.prepare(folder, found)
    return found


def recorded(folder: Path, name: str, pid: int) -> None:
    """The process stands in the folder as that node's, as if `up` had started it."""
    started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    layout.pid_file(folder, name).write_text(f"{pid} {started} {boot}\n")


@contextmanager
def of_nobody() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is none of ours and does nothing until its input ends."""
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()
