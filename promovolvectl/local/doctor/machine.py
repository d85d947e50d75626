"""This machine: descriptors, memory, room, and programs that a role needs. Facts are arguments of pure judgements."""

from __future__ import annotations

import resource
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from node.core import limits
from node.core.grace import Grace, why_short
from promovolvectl.client.doctor_kinds import Finding
from promovolvectl.local.doctor.checks import finding

FILES_WANTED: Final = 4_096  # connections of pages and peers, files of the store and the replica
FILES_LEAST: Final = 512
USED_MUCH: Final = 0.8
ROOM_SHARE_LOW: Final = 0.10
ROOM_LOW_BYTES: Final = 2 << 30
ROOM_OUT_BYTES: Final = 256 << 20
PROGRAM_S: Final = 5
CHROMIUM: Final = ("chromium", "chromium-browser", "google-chrome")
POSTGRES: Final = ("pg_dump", "pg_restore", "psql")


@dataclass(frozen=True, slots=True)
class Program:
    """A program on PATH; `version` is the first line of what it says of itself."""

    name: str
    path: str
    version: str


def open_files(about: str, limit: int, used: int | None) -> Finding:
    """A process's limit of descriptors; `used` None where it can't be seen. -1 is no limit."""
    count = "" if used is None else f"{used} of "
    shown = "no limit" if limit < 0 else f"{count}{limit} descriptors"
    fix = f"ulimit -n {FILES_WANTED}"
    if limit >= 0 and used is not None and used >= limit * USED_MUCH:
        return finding("limits.files", about, "fail", f"{shown} in use", fix)
    if 0 <= limit < FILES_LEAST:
        return finding("limits.files", about, "fail", f"{shown}; {FILES_WANTED} are wanted", fix)
    if 0 <= limit < FILES_WANTED:
        return finding("limits.files", about, "warn", f"{shown}; {FILES_WANTED} are wanted", fix)
    return finding("limits.files", about, "ok", shown)


def address_space(limit: int) -> Finding:
    """Of this shell, which a node that is started from it inherits; -1 is no limit."""
    wanted = limits.store_map_bytes + limits.replica_map_bytes_max
    if 0 <= limit < wanted:
        text = f"{limit >> 20} MiB of address space; store and replica map {wanted >> 20} MiB"
        return finding("limits.memory", "shell", "warn", text, "ulimit -v unlimited")
    return finding("limits.memory", "shell", "ok", "not limited" if limit < 0 else f"{limit >> 20} MiB")


def room(path: Path, free: int, total: int) -> Finding:
    """Room on the disk of a folder, in bytes."""
    text = f"{free >> 20} MiB free of {total >> 20} MiB"
    fix = f"du -xh -d 2 {shlex.quote(str(path))} | sort -h | tail -n 20"
    if free < ROOM_OUT_BYTES:
        return finding("disk.room", str(path), "fail", text, fix)
    if free < ROOM_LOW_BYTES or free < total * ROOM_SHARE_LOW:
        return finding("disk.room", str(path), "warn", text, fix)
    return finding("disk.room", str(path), "ok", text)


def room_of(path: Path) -> Finding:
    """The same, asked of the system; of the nearest folder that exists."""
    there = next((folder for folder in (path, *path.parents) if folder.is_dir()), Path("/"))
    try:
        usage = shutil.disk_usage(there)
    except OSError as error:
        return finding("disk.room", str(path), "unknown", f"can't be told: {error.strerror}")
    return room(there, usage.free, usage.total)


def grace(node: str, drain_deadline_s: float, patience: Grace | None) -> Finding:
    """P67: a drain against what the supervisor allows, both numbers named."""
    problem = why_short(drain_deadline_s, patience)
    if problem:
        return finding("limits.grace", node, "fail", problem, "systemctl show -p TimeoutStopUSec UNIT")
    seen = f"the supervisor waits {patience.seconds:g} s ({patience.origin})" if patience else "no supervisor is seen"
    return finding("limits.grace", node, "ok", f"a drain may take {drain_deadline_s:g} s; {seen}")


def postgres(wanted_by: Sequence[str], found: Sequence[Program]) -> Finding:
    """Needed where a node's store is PostgreSQL."""
    about = "PostgreSQL's programs"
    lacking = [name for name in POSTGRES if name not in {program.name for program in found}]
    if not lacking:
        return finding("programs.postgres", about, "ok", _shown(found))
    if not wanted_by:
        return finding("programs.postgres", about, "ok", "not on PATH, and no node of this machine needs them")
    text = f"not on PATH: {', '.join(lacking)}; needed by {', '.join(wanted_by)}"
    return finding("programs.postgres", about, "fail", text, "apt-get install postgresql-client")


def chromium(found: Sequence[Program]) -> Finding:
    """No role of this release opens a browser: recorded, since whoever helps asks for it, and needed by nobody."""
    text = _shown(found) or "not on PATH; no role of this release opens one"
    return finding("programs.chromium", "a browser", "ok", text)


def _shown(found: Sequence[Program]) -> str:
    return ", ".join(f"{program.path} ({program.version})" for program in found)


def programs(names: Sequence[str]) -> list[Program]:
    """Those of the names that are on PATH, with what they say their version is."""
    found = []
    for name in names:
        path = shutil.which(name)
        if path is not None:
            found.append(Program(name, path, _version(path)))
    return found


def _version(path: str) -> str:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=PROGRAM_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "says no version"
    return next(iter(done.stdout.splitlines()), "says no version").strip()


def of_shell() -> list[Finding]:
    """What a node that is started from here inherits."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    space = resource.getrlimit(resource.RLIMIT_AS)[0]
    no = resource.RLIM_INFINITY
    return [
        open_files("shell", -1 if files == no else files, None),
        address_space(-1 if space == no else space),
    ]
