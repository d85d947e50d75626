"""What this machine adds to a bundle: nodes' logs, settings without secrets, reports, releases."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

from promovolvectl.client.errors import CommandFailed
from promovolvectl.local import layout as lay
from promovolvectl.local.bundle.collecting import HERE, Part, now

LOG_BYTES: Final = 4 << 20  # the end of each node's log
FILE_BYTES: Final = 256 << 10
REPORTS: Final = 20


def parts(folder: Path, reports: Path, config: Path, env: Mapping[str, str]) -> list[Part]:
    """What is there; a cluster of other machines has no logs here, and that is no fault."""
    found = [
        Part("here/versions.txt", HERE, now(), _versions()),
        Part("here/environment.txt", HERE, now(), _names(env)),
    ]
    if config.is_file():
        found.append(_file("here/profiles.toml", config))
    if reports.is_dir():
        newest = sorted(reports.glob("report-*.txt"))[-REPORTS:]
        found += [_file(f"here/reports/{path.name}", path) for path in newest]
    try:
        layout = lay.read(folder)
    except CommandFailed as failed:
        return [*found, Part("here/cluster.toml", HERE, now(), None, failed.message)]
    if layout is None:
        return found
    found.append(_file("here/cluster.toml", folder / "cluster.toml"))
    for node in layout.nodes:
        found.append(_file(f"nodes/{node.name}/node.toml", lay.node_file(folder, node.name)))
        found.append(_file(f"nodes/{node.name}/log.txt", lay.log_file(folder, node.name), LOG_BYTES, tail=True))
    return found


def secrets(folder: Path, key_file: str) -> list[str]:
    """Secret halves of every key that is read here, so that they are known wherever they turn up."""
    from node.core.errors import OperatingError
    from node.wire.keys import read_key_pair

    paths = [Path(key_file).expanduser()] if key_file else []
    paths += sorted((folder / "keys").glob("*.key")) if (folder / "keys").is_dir() else []
    found = []
    for path in paths:
        try:
            found.append(read_key_pair(path).secret)
        except OperatingError:
            continue  # nobody can use it, and doctor names it
    return found


def _file(name: str, path: Path, most: int = FILE_BYTES, *, tail: bool = False) -> Part:
    """The end of a file; the beginning of one that is too long is said to be left away."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - most))
            data = stream.read(most)
    except OSError as error:
        return Part(name, HERE, now(), None, f"{path}: {error.strerror}")
    text = data.decode(errors="replace")
    if size > most:
        text = text.partition("\n")[2]
        return Part(name, HERE, now(), text, f"the last {len(data)} of {size} bytes", tail=True)
    return Part(name, HERE, now(), text, tail=tail)


def _versions() -> str:
    wanted = metadata.requires("promovolvectl") or []
    names = sorted({text.split(";")[0].split(">")[0].split("<")[0].strip() for text in wanted if "extra" not in text})
    lines = [f"python {platform.python_version()}", f"system {platform.system()} {platform.release()}"]
    for name in ("promovolvectl", *names):
        try:
            lines.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            lines.append(f"{name} not installed")
    return "\n".join(lines) + "\n"


def _names(env: Mapping[str, str]) -> str:
    """Which variables of ours are set: their names tell, their values need not."""
    ours = sorted(name for name in env if name.startswith(("PROMOVOLVE", "PG")))
    return "".join(f"{name}\n" for name in ours)
