"""A cluster's folder on this machine: permissions, keys, settings, processes and ports. Only reads."""

from __future__ import annotations

import os
import shlex
import socket
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from node.core.errors import OperatingError
from node.core.supervisor import patience
from promovolvectl.client.doctor_kinds import Finding
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.paths import keys_anew
from promovolvectl.local import layout as lay
from promovolvectl.local import processes
from promovolvectl.local.doctor import machine
from promovolvectl.local.doctor.checks import finding
from promovolvectl.local.layout import Layout, NodePlace

if TYPE_CHECKING:
    from node.core.settings import NodeSettings

_OTHERS = 0o077
_STEPS = ("install", "use", "retire")


def private(check: str, path: Path, *, folder: bool = False) -> Finding | None:
    """What is wrong with a file or folder that is for its owner alone; None where nothing is."""
    try:
        found = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return finding(check, str(path), "fail", "is not there", f"ls -la {shlex.quote(str(path.parent))}")
    except OSError as error:
        return finding(check, str(path), "unknown", f"can't be looked at: {error.strerror}")
    quoted = shlex.quote(str(path))
    if found.st_uid != os.geteuid():
        text = f"belongs to user {found.st_uid}, not to {os.geteuid()}"
        return finding(check, str(path), "fail", text, f"chown {os.geteuid()} {quoted}")
    if found.st_mode & _OTHERS:
        mode = 700 if folder else 600
        text = f"others can use it (mode {stat.S_IMODE(found.st_mode):04o})"
        return finding(check, str(path), "fail", text, f"chmod {mode} {quoted}")
    return None


def key(path: Path, lost: str = "") -> Finding:
    """One key file, judged as a node judges it; `lost` is what helps where it is gone."""
    from node.wire.keys import read_key_pair

    try:
        read_key_pair(path)
    except OperatingError as error:
        gone = lost if not path.exists() else ""
        fix = gone or error.hint or f"ls -l {shlex.quote(str(path))}"
        return finding("files.keys", str(path), "fail", error.message, fix)
    return finding("files.keys", str(path), "ok", "a key pair, its owner's alone")


def of_folder(folder: Path) -> list[Finding]:
    """Everything about the cluster in a folder; what is not there is said to be unknown."""
    try:
        layout = lay.read(folder)
    except CommandFailed as failed:
        return [finding("files.data", str(folder), "fail", failed.message, failed.hint), machine.room_of(folder)]
    if layout is None:
        text = "no cluster of this machine is there"
        return [finding("files.data", str(folder), "unknown", text, "promovolvectl up"), machine.room_of(folder)]
    found = [*_permissions(folder, layout), *_keys(folder, layout)]
    settings = {node.name: _settings(folder, node) for node in layout.nodes}
    found += [row for row, _ in settings.values()]
    found += [row for node in layout.nodes for row in _process(folder, node)]
    read = {name: each for name, (_, each) in settings.items() if each is not None}
    return [*found, *_needs(folder, read), *map(machine.room_of, _disks(folder, read))]


def helps(folder: Path) -> dict[str, str]:
    """What brings back each node whose process here serves nobody, by the node's admin address: a profile may lead to
    another cluster whose nodes have the same names."""
    try:
        layout = lay.read(folder)
    except CommandFailed:
        return {}
    rows = [(node, _running(folder, node)) for node in (layout.nodes if layout is not None else ())]
    return {node.admin: row.fix for node, row in rows if row.state == "fail"}


def alive(folder: Path) -> dict[str, int]:
    """The process of each node of this folder that runs and is not stopped, by the node's admin address."""
    try:
        layout = lay.read(folder)
    except CommandFailed:
        return {}
    found = {node.admin: processes.running(folder, node.name) for node in (layout.nodes if layout is not None else ())}
    return {admin: process.pid for admin, process in found.items() if process is not None and not process.stopped()}


def _keys(folder: Path, layout: Layout) -> Iterable[Finding]:
    """A node that runs has its key in memory and makes another one; for others the roster is made anew."""
    for name in (lay.OPERATOR, *(node.name for node in layout.nodes)):
        process = processes.running(folder, name) if name != lay.OPERATOR else None
        steps = " && ".join(f"promovolvectl auth rotate {name} --step {step} --yes" for step in _STEPS)
        lost = keys_anew(folder, layout.cluster) if process is None or process.stopped() else steps
        yield key(lay.key_file(folder, name), lost)


def _permissions(folder: Path, layout: Layout) -> list[Finding]:
    folders = [folder, folder / "keys", folder / "logs", folder / "run", lay.store_dir(folder)]
    folders += [lay.node_dir(folder, node.name) for node in layout.nodes]
    files = [folder / "cluster.toml", lay.roster_file(folder)]
    files += [lay.node_file(folder, node.name) for node in layout.nodes]
    wrong = [private("files.data", path, folder=True) for path in folders]
    wrong += [private("files.data", path) for path in files]
    named = [row for row in wrong if row is not None]
    text = f"{len(folders)} folders and {len(files)} files are their owner's alone"
    return named or [finding("files.data", str(folder), "ok", text)]


def _settings(folder: Path, node: NodePlace) -> tuple[Finding, NodeSettings | None]:
    from node.core.settings import load_settings  # only here: what reads settings takes long to load

    path = lay.node_file(folder, node.name)
    try:
        settings = load_settings(path)
    except OperatingError as error:
        fix = error.hint or f"${{EDITOR:-vi}} {shlex.quote(str(path))}"
        return finding("files.settings", node.name, "fail", error.message, fix), None
    wrong = [
        f"{what} is {theirs!r} there and {ours!r} in cluster.toml"
        for what, theirs, ours in (
            ("node.name", settings.node.name, node.name),
            ("wire.control", settings.wire.control, node.control),
            ("wire.data", settings.wire.data, node.data),
            ("wire.admin", settings.wire.admin, node.admin),
            ("wire.http", settings.wire.http, node.http),
            ("node.roles", sorted(settings.node.roles), sorted(node.roles)),
        )
        if theirs != ours
    ]
    if wrong:
        fix = f"${{EDITOR:-vi}} {shlex.quote(str(path))}"
        return finding("files.settings", node.name, "fail", "; ".join(wrong), fix), settings
    return finding("files.settings", node.name, "ok", "every setting is known and fits cluster.toml"), settings


def _process(folder: Path, node: NodePlace) -> list[Finding]:
    row, process = _running(folder, node), processes.running(folder, node.name)
    if process is None:
        taken = [f"{what} {address}" for what, address in node.addresses().items() if not _free(address)]
        rows = [row]
        if taken:
            port = taken[0].rpartition(":")[2]
            text = f"taken by another program: {', '.join(taken)}"
            return [*rows, finding("ports.free", node.name, "fail", text, f"ss -ltnp 'sport = :{port}'")]
        return [*rows, finding("ports.free", node.name, "ok", "its ports are free")]
    if row.state != "ok":
        return [row]
    rows = [row, finding("ports.free", node.name, "ok", "it holds its ports itself")]
    seen = _descriptors(process.pid)
    return [*rows, machine.open_files(node.name, *seen)] if seen else rows


def _running(folder: Path, node: NodePlace) -> Finding:
    process = processes.running(folder, node.name)
    if process is None:
        start = f"promovolvectl node start {node.name} --data {shlex.quote(str(folder))}"
        return finding("processes.running", node.name, "fail", "its process does not run", start)
    if process.stopped():
        text = f"process {process.pid} is stopped"
        return finding("processes.running", node.name, "fail", text, process.resuming)
    return finding("processes.running", node.name, "ok", f"process {process.pid}")


def _needs(folder: Path, settings: dict[str, NodeSettings]) -> list[Finding]:
    """What the nodes' roles and settings ask of this machine."""
    stored = sorted(name for name, each in settings.items() if each.store.kind == "postgres")
    found = [machine.grace(name, each.node.drain_deadline_s, patience()) for name, each in sorted(settings.items())]
    found.append(machine.chromium(machine.programs(machine.CHROMIUM)))
    found.append(machine.postgres(stored, machine.programs(machine.POSTGRES)))
    for name, each in sorted(settings.items()):
        if each.store.dsn_file is not None and (wrong := private("files.keys", each.store.dsn_file)):
            found.append(wrong)
        if each.classifier.api_key_file is not None and (wrong := private("files.keys", each.classifier.api_key_file)):
            found.append(wrong)
        if not each.wire.key_file.is_file() and each.wire.key_file != lay.key_file(folder, name):
            text = f"{name}'s key file {each.wire.key_file} is not there"
            found.append(finding("files.keys", name, "fail", text, f"ls -l {shlex.quote(str(each.wire.key_file))}"))
    return found


def _disks(folder: Path, settings: dict[str, NodeSettings]) -> list[Path]:
    """Folders that may lie on disks of their own, one of each disk."""
    paths = [folder, *(each.node.data for each in settings.values())]
    paths += [each.store.path for each in settings.values() if each.store.path is not None]
    by_disk: dict[int, Path] = {}
    for path in paths:
        if path.is_dir():
            by_disk.setdefault(path.stat().st_dev, path)
    return list(by_disk.values())


def _free(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), int(port)))
        except OSError:
            return False
    return True


def _descriptors(pid: int) -> tuple[int, int] | None:
    """A process's limit and how many are open; None where it can't be seen."""
    try:
        lines = Path(f"/proc/{pid}/limits").read_text(encoding="ascii").splitlines()
        limit = next(line.split()[3] for line in lines if line.startswith("Max open files"))
        return -1 if limit == "unlimited" else int(limit), len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
    except (OSError, StopIteration, ValueError):
        return None
