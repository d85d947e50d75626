"""A node's key is rotated in a living cluster, step by step, while pages are being viewed (C6)."""

from __future__ import annotations

import json

from cluster_load import Load
from cluster_world import Cluster, eventually

STEPS = ("install", "use", "retire")


def test_c6_a_key_is_rotated_while_the_cluster_serves(cluster: Cluster) -> None:
    node = "entity-2"
    error = cluster.refused("auth", "rotate", node, "--step", "use", "--yes", status=4)
    assert error["code"] == "E-ROTATION-ORDER"
    with Load(cluster) as load:
        load.answered(20)
        accepted = []
        for step in STEPS:
            done = cluster.ask("auth", "rotate", node, "--step", step, "--yes", "--reason", "test")
            assert done["changed"] is True
            assert node in done["confirmed"]
            assert done["unconfirmed"] == []
            assert cluster.ask("auth", "rotate", node, "--step", step, "--yes")["changed"] is False
            accepted.append(done["accepted"])
            load.answered(20)
    (old, new), used, retired = accepted
    assert used == [new, old]
    assert retired == [new]
    assert load.wrong() == []
    cluster.whole()
    peers = eventually(
        lambda: cluster.ask("node", "show", node)["peers"],
        lambda peers: {peer["link"] for peer in peers} == {"up"},
        20,
        "the node is connected with all others",
    )
    assert all(peer["incarnation"] > 0 and not peer["skew"] for peer in peers), json.dumps(peers)
