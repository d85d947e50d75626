"""What an operator is told of a key while the cluster is split: both sides' views, and which of them will hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from byte_proxy import Relay
from cluster_world import Cluster, eventually
from index_load import key_of, row_of, write_rows
from relayed import relayed

from promovolvectl.local import layout as lay
from scripts.postgres_server import PostgresServer

NODES = ("api-1", "entity-1", "entity-2", "entity-3", "entity-4")
ALONE, BEFORE = "entity-4", "entity-3"
# So long do both sides of a split go on here: the commands of this test are sent meanwhile.
SPLIT_MS = 30_000


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[tuple[Cluster, Relay]]:
    cluster = Cluster(tmp_path_factory.mktemp("split"))
    with relayed(cluster, len(NODES), postgres, membership={"stable_after_ms": SPLIT_MS}) as relay:
        conditions = ("converged", f"nodes={len(NODES)}", "shards=allocated", "replicas=agree")
        cluster.run("cluster", "wait", "-t", "60s", *(word for c in conditions for word in ("--for", c)))
        cluster.even()
        yield cluster, relay


def test_both_views_of_a_key_are_shown_with_their_writers_their_epochs_and_the_winner(
    split: tuple[Cluster, Relay], tmp_path: Path
) -> None:
    cluster, relay = split
    key = key_of(1)
    site = key.partition("|")[0]
    shard = str(cluster.ask("shard", "where", "site", site)["shard"])
    if cluster.owner_of(site) != BEFORE:
        cluster.ask("shard", "move", shard, "--to", BEFORE, "--yes")
    cluster.ask("serveindex", "load", str(write_rows(tmp_path / "one", [key])), "--yes")
    eventually(lambda: cluster.ask("serveindex", "get", key), lambda found: len(views_of(found)) == 5, 20, "5 views")
    cluster.ask("shard", "move", shard, "--to", ALONE, "--yes")
    relay.isolate(ALONE)
    other = row_of(key)
    later = msgspec.structs.replace(other.version, epoch=1 << 30)
    file = tmp_path / "other"
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(other, version=later)) + b"\n")
    layout = lay.read(cluster.data)
    place = layout.node(ALONE) if layout is not None else None
    assert place is not None
    cluster.ask("serveindex", "load", str(file), "--yes", "--endpoint", place.admin)
    found = cluster.ask("serveindex", "get", key)
    views = views_of(found)
    assert views.keys() == set(NODES)
    new, old = views.pop(ALONE), views["api-1"]
    assert (new["version"]["origin"], old["version"]["origin"]) == (ALONE, BEFORE)
    assert new["version"]["epoch"] > old["version"]["epoch"]
    assert new["wins"] is True
    assert found["winner"] == new["version"]
    assert not any(view["wins"] for view in views.values())
    assert all(view["version"] == old["version"] for view in views.values())
    assert found["agree"] is False
    cluster.run("serveindex", "get", key, "--exit-code", status=13)
    relay.heal()
    eventually(lambda: cluster.ask("serveindex", "get", key), lambda f: f["agree"], 40, "one view")
    assert cluster.ask("serveindex", "get", key)["winner"] == new["version"]


def views_of(found: Any) -> dict[str, Any]:
    return {view["node"]: view for view in found["replicas"] if view["present"]}
