"""Where a process can see what its supervisor will do: its environment, its control group, systemd's unit files."""

from __future__ import annotations

import os
from pathlib import Path

from node.core.grace import Grace, seen


def patience() -> Grace | None:
    """How long this process may take to stop, None when nothing says so."""
    return seen(os.environ, _text(Path("/proc/self/cgroup")) or "", _unit_file)


def _unit_file(unit: str) -> str | None:
    """A systemd unit's text, its drop-ins after it; of an instance its template's."""
    name, at, rest = unit.partition("@")
    names = [unit, f"{name}@.service"] if at and rest else [unit]
    for folder in ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system"):
        for each in names:
            text = _text(Path(folder, each))
            if text is not None:
                drop_ins = sorted(Path("/etc/systemd/system", f"{each}.d").glob("*.conf"))
                return "\n".join([text, *(_text(file) or "" for file in drop_ins)])
    return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
