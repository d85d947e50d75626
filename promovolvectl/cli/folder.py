"""The folder of this machine's cluster, as every command that works on it finds it."""

from __future__ import annotations

from pathlib import Path

from promovolvectl.cli.options import first_of
from promovolvectl.cli.run import Run
from promovolvectl.client import paths
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.profiles import load_file


def data_folder(run: Run, data: str = "", *, name: str = "") -> Path:
    """`data` when it says something, then PROMOVOLVECTL_DATA, then what the profile `name` (the current one when empty)
    was made with, then the XDG data folder. Raises CommandFailed (16) for a configuration that can't be read."""
    file = load_file(run.config)
    name = first_of(name, run.profile_name, file.current, default="local")
    saved = file.profiles[name].data if name in file.profiles else ""
    return Path(first_of(data, run.env.get("PROMOVOLVECTL_DATA", ""), saved, default=str(paths.data_dir(name))))


def likely_folder(run: Run, data: str = "") -> Path:
    """The same for who only looks: a configuration that can't be read names no folder, and is no failure here."""
    try:
        return data_folder(run, data)
    except CommandFailed:
        named = first_of(data, run.env.get("PROMOVOLVECTL_DATA", ""))
        return Path(named) if named else paths.data_dir(run.profile_name or "local")
