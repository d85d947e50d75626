"""Reaching the cluster of a folder: its profile, and what its status still lacks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from node.admin.protocol import ClusterStatus, Meta, NodeRow
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.link import open_link
from promovolvectl.client.profiles import Endpoint, Profile, load_file, write_profile
from promovolvectl.local.layout import OPERATOR, Layout, key_file


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


def save_profile(config: Path, profile: Profile) -> str:
    """Writes the profile and makes it current, keeping a person's own defaults; returns the data folder that the
    profile stood for before, when it was another one. Raises CommandFailed: 16 unreadable file, 17 unwritable."""
    before = load_file(config).profiles.get(profile.name)
    if before is not None:
        profile = msgspec.structs.replace(profile, output=before.output, timeout=before.timeout)
    write_profile(config, profile, make_current=True)
    other = before.data if before is not None else ""
    return other if other != profile.data else ""


def lacking(status: ClusterStatus, meta: Meta, names: Sequence[str]) -> list[str]:
    """What keeps the cluster from serving, in words and in the order in which it comes to be; empty when it serves."""
    rows = {row.name: row for row in status.nodes}
    found = [f"{name}: {why}" for name in names if (why := not_up(rows.get(name)))]
    found += [f"{missing.node}: {missing.reason}" for missing in meta.missing]
    shards = status.shards
    if not shards.total or shards.allocated < shards.total:
        found.append(f"shards: {shards.allocated} of {shards.total} allocated, {shards.moving} moving")
    if not status.serveindex.agree:
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
