"""Reaching the cluster of a folder: its profile, and what its status still lacks."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec

from node.admin.protocol import ClusterStatus, Meta, NodeRow
from promovolvectl.client import paths
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.link import open_link
from promovolvectl.client.profiles import Endpoint, Profile, another_name, check_writable, load_file, write_profile
from promovolvectl.local.layout import OPERATOR, Layout, key_file, read


def profile_of(folder: Path, layout: Layout, keys: dict[str, str]) -> Profile:
    """How a person reaches every node of the cluster in a folder; `keys` are the nodes' public ones."""
    return Profile(
        name=layout.cluster,
        cluster=layout.cluster,
        cluster_id=layout.cluster_id,
        endpoints=tuple(Endpoint(node=n.name, admin=n.admin, key=keys[n.name]) for n in layout.nodes),
        key_file=str(key_file(folder, OPERATOR)),
        data=str(folder),
    )


def client_of(profile: Profile) -> AdminClient:
    """A client that writes no profile: whoever starts a cluster writes it when everything holds."""
    return AdminClient(profile, open_link)


def shown_by(cluster: Profile, person: Profile) -> Profile:
    """The folder's cluster, asked with the key of a person's profile where that is of this cluster."""
    same = person.data == cluster.data or (person.cluster_id and person.cluster_id == cluster.cluster_id)
    return msgspec.structs.replace(cluster, key_file=person.key_file) if same and person.key_file else cluster


def check_place(config: Path, folder: Path) -> None:
    """Refuses a file of profiles that couldn't be written once the cluster serves: its keys would be known to nobody.
    Raises CommandFailed: 2 the cluster's folder would stand where the file is to, 16 it can't be read, 17 it can't be
    written."""
    if folder == config.absolute() or config.absolute() in folder.parents:
        text = f"{config} is the file of profiles, and can't be a folder of data; nothing was started"
        raise CommandFailed(
            ExitStatus.USAGE,
            "E-USAGE",
            f"--data: {text}",
            hint=f"--data {shlex.quote(str(paths.data_dir('local')))}",
            about=str(folder),
        )
    load_file(config)
    check_writable(config)


def check_profile(config: Path, folder: Path, name: str) -> None:
    """Refuses (2) a profile that stands for another cluster: whoever used it would reach this one from now on. One
    whose folder holds no cluster any more stands for none. Raises CommandFailed (16) for profiles that can't be
    read."""
    before = load_file(config).profiles.get(name)
    if before is None or before.data == str(folder) or not (before.endpoints or before.cluster_id or before.data):
        return
    if before.data and read(Path(before.data)) is None:
        return
    here = read(folder)
    if here is not None and here.cluster_id and here.cluster_id == before.cluster_id:
        return
    nodes = ", ".join(endpoint.admin for endpoint in before.endpoints)
    where = f"in {before.data}" if before.data else f"at {nodes or 'elsewhere'}"
    raise CommandFailed(
        ExitStatus.USAGE,
        "E-USAGE",
        f"the profile {name!r} stands for another cluster, {where}; nothing was started",
        hint=f"-p {another_name(load_file(config), name)} --data {shlex.quote(str(folder))}",
        about=f"profile/{name}",
    )


def save_profile(config: Path, profile: Profile) -> None:
    """Writes the profile and makes it current, keeping a person's own defaults. Raises CommandFailed: 16 unreadable
    file, 17 unwritable."""
    before = load_file(config).profiles.get(profile.name)
    if before is not None:
        profile = msgspec.structs.replace(profile, output=before.output, timeout=before.timeout)
    write_profile(config, profile, make_current=True)


def lacking(status: ClusterStatus, meta: Meta, names: Sequence[str]) -> list[str]:
    """What keeps the cluster from serving, in words and in the order in which it comes to be; empty when it serves."""
    rows = {row.name: row for row in status.nodes}
    found = [f"{name}: {why}" for name in names if (why := not_up(rows.get(name)))]
    found += [f"{missing.node}: {missing.reason}" for missing in meta.missing]
    shards = status.shards
    if not shards.total or shards.allocated < shards.total:
        found.append(f"shards: {shards.allocated} of {shards.total} allocated, {shards.moving} moving")
    if status.serveindex.agree is None:
        found.append("ServeIndex: not every replica has told what it holds")
    elif not status.serveindex.agree:
        found.append(f"ServeIndex: replicas differ, {status.serveindex.max_lag_ms} ms behind")
    if not found and not status.converged:
        found.append("the nodes do not agree on who is a member yet")
    return found


def not_up(row: NodeRow | None) -> str:
    """Why a node can't work yet; empty when it can."""
    if row is None:
        return "not joined"
    if row.status != "up":
        return row.status
    if not row.reachable:
        return "unreachable"
    return "" if row.ready else ", ".join(row.why_not_ready) or "not ready"
