"""A cluster whose nodes reach each other, and a database on TCP, through the relay of `byte_proxy` only."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import tomli_w
from byte_proxy import DATABASE, LANES, Relay
from cluster_world import Cluster
from postgres_clock import new_schema

from promovolvectl.local import files, ports
from promovolvectl.local import layout as lay
from promovolvectl.local.roles import spread
from scripts.postgres_server import PostgresServer


def prepare(
    folder: Path, nodes: int, store: dict[str, Any] | None = None, *, api: int = 1, entity: int = 0
) -> lay.Layout:
    """The folder of a cluster that `up` then starts. `store`: another store section than the embedded one's. At least
    so many carry the roles `api`, from the first on, and `entity`, from the last on."""
    lay.claim(folder)
    layout = ports.plan(folder, "local", spread(nodes + api - 1))
    free = iter(layout.nodes[nodes:])
    places = []
    for number, node in enumerate(layout.nodes[:nodes]):
        more = ["api"] * (number < api) + ["entity"] * (number >= nodes - entity)
        roles = tuple(sorted({*node.roles, *more}))
        http = node.http or (next(free).control if "api" in roles else "")
        places.append(msgspec.structs.replace(node, roles=roles, http=http))
    layout = msgspec.structs.replace(layout, nodes=tuple(places))
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
def relayed(
    cluster: Cluster, nodes: int, server: PostgresServer, *words: str, api: int = 1, **sections: dict[str, Any]
) -> Iterator[Relay]:
    """The relay before a new cluster in the folder of `cluster`, which is up (`words`: how; `sections`: what else its
    nodes' settings say) and keeps its durable state in a schema of `server`. That is relayed, too, when it listens on
    TCP."""
    layout = prepare(cluster.data, nodes, api=api)
    with Relay(layout, lambda: _pids(cluster.data), server.address) as relay:
        seeds = [f"{n.name}@{relay.addresses[n.name, 'control']}" for n in layout.nodes if "singleton" in n.roles]
        store = database(cluster.data.parent, server, relay.addresses.get((DATABASE, "data"), ""))
        for node in layout.nodes:
            advertised = {f"advertise_{lane}": relay.addresses[node.name, lane] for lane in LANES}
            edit(cluster.data, node.name, "wire", {**advertised, "seeds": seeds})
            edit(cluster.data, node.name, "store", store, whole=True)
            for section, values in sections.items():
                edit(cluster.data, node.name, section, values)
        try:
            cluster.up(*words)
            yield relay
            relay.heal()
            cluster.down()
        finally:
            cluster.last_resort()


def database(folder: Path, server: PostgresServer, address: str = "") -> dict[str, Any]:
    """The store section of nodes that use a new schema of `server`, reached at another `address` when one is given."""
    file = folder / "dsn"
    file.write_text(server.dsn_at(address) if address else server.dsn)
    file.chmod(0o600)
    return {"kind": "postgres", "dsn_file": str(file), "schema_name": new_schema()}


def schema_of(folder: Path) -> str:
    """The schema that the nodes of a cluster's folder use."""
    node = tomllib.loads(next(folder.glob("nodes/*/node.toml")).read_text())
    schema: str = node["store"]["schema_name"]
    return schema


def _pids(folder: Path) -> dict[str, int]:
    return {file.stem: int(file.read_text().split()[0]) for file in (folder / "run").glob("*.pid")}
