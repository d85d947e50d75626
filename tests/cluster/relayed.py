"""A cluster whose nodes reach each other through the relay of `byte_proxy` only."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomli_w
from byte_proxy import Relay
from cluster_world import Cluster

from promovolvectl.local import files, ports
from promovolvectl.local import layout as lay


def prepare(folder: Path, nodes: int, store: dict[str, Any] | None = None) -> lay.Layout:
    """The folder of a cluster that `up` then starts. `store`: another store section than the embedded one's."""
    lay.claim(folder)
    layout = ports.plan(folder, "local", nodes)
    lay.write(folder, layout)
    files.prepare(folder, layout)
    if store is not None:
        for node in layout.nodes:
            edit(folder, node.name, "store", store, whole=True)
    return layout


def edit(folder: Path, name: str, section: str, values: dict[str, Any], *, whole: bool = False) -> None:
    """Changes one section of a node's settings file."""
    path = lay.node_file(folder, name)
    document = tomllib.loads(path.read_text())
    document[section] = values if whole else {**document.get(section, {}), **values}
    path.write_text(tomli_w.dumps(document))


@contextlib.contextmanager
def relayed(cluster: Cluster, nodes: int, store: dict[str, Any] | None = None) -> Iterator[Relay]:
    """The relay before a new cluster in the folder of `cluster`, which is up."""
    layout = prepare(cluster.data, nodes, store)
    with Relay(layout, lambda: _pids(cluster.data)) as relay:
        seeds = [f"{n.name}@{relay.addresses[n.name, 'control']}" for n in layout.nodes if "singleton" in n.roles]
        for node in layout.nodes:
            advertised = {f"advertise_{lane}": relay.addresses[node.name, lane] for lane in ("control", "data")}
            edit(cluster.data, node.name, "wire", {**advertised, "seeds": seeds})
        try:
            cluster.up()
            yield relay
            relay.heal()
            cluster.down()
        finally:
            cluster.last_resort()


def _pids(folder: Path) -> dict[str, int]:
    return {file.stem: int(file.read_text().split()[0]) for file in (folder / "run").glob("*.pid")}
