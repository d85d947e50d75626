"""Nodes that leave in order, while pages are being viewed: nothing is lost and nobody notices."""

from __future__ import annotations

from cluster_load import Load
from cluster_world import Cluster, runs


def test_draining_under_load_loses_nothing(cluster: Cluster) -> None:
    leaver = cluster.owner_of(cluster.sites()[0]["site"])
    others = {f"entity-{n}" for n in (1, 2, 3)} - {leaver}
    pid = cluster.pids()[leaver]
    held = sum(row["node"] == leaver for row in cluster.shards().values())
    with Load(cluster) as load:
        operation = cluster.ask("node", "drain", leaver, "--yes", "--reason", "test")
        load.answered(200)
    assert operation["state"] == "done"
    assert operation["result"]["messages_lost"] == 0
    assert operation["result"]["shards_moved"] == held > 0
    assert {row["node"] for row in cluster.shards().values()} == others
    assert load.failed() == []
    assert load.wrong() == []
    assert (load.beacons.unknown, load.beacons.refused) == (0, [])
    assert load.beacons.counted > 0
    assert not runs(pid)


def test_the_last_entity_node_refuses_to_drain(cluster: Cluster) -> None:
    cluster.ask("node", "drain", "entity-1", "--yes")
    cluster.ask("node", "drain", "entity-2", "--yes")
    error = cluster.refused("node", "drain", "entity-3", "--yes", status=5)
    assert "entity" in error["message"]
    assert {row["node"] for row in cluster.shards().values()} == {"entity-3"}
