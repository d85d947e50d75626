"""Real processes that die at a named step of a drain (node.core.faultpoints).

PROMOVOLVE_TEST_SCALE=10 makes it every phase; 1 two of them, before and after the shards have moved.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import pytest
from cluster_world import Cluster, ended, eventually

from node.core.faultpoints import POINTS

EVERY = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1")) >= 10
PHASES = [point for point in POINTS if point.startswith("drain.")]
THREE_ARE_WHOLE = ("--for", "nodes=3", "--for", "converged", "--for", "shards=allocated")


@contextlib.contextmanager
def keeping_everything(cluster: Cluster) -> Iterator[None]:
    """Durable state is behind it as it was before; each shard has one owner, under no lower epoch."""
    cluster.even()
    eventually(cluster.advertisers_have_all, bool, 240, "totals of what was charged")
    kept, shards = cluster.settled_state(), cluster.shards()
    yield
    cluster.restore()
    cluster.even()
    after = cluster.shards()
    assert all(after[n]["epoch"] + (after[n]["node"] == row["node"]) > row["epoch"] for n, row in shards.items())
    assert cluster.ask("shard", "check")["ok"]
    assert cluster.state() == kept


@pytest.mark.parametrize("point", PHASES if EVERY else ["drain.shards", "drain.outboxes"])
def test_p3_a_node_killed_at_a_phase_of_its_drain(cluster: Cluster, point: str) -> None:
    """P3: the operation says at which phase it was interrupted; the shards are elsewhere."""
    with keeping_everything(cluster):
        cluster.ask("node", "stop", "entity-3", "--yes")
        pid = cluster.start("entity-3", f"{point}:kill")
        cluster.even()
        operation = cluster.ask("node", "drain", "entity-3", "--yes", status=15)
        ended(pid)
        assert operation["state"] == "failed"
        assert "interrupted" in str(operation), operation
        interrupted = [phase["name"] for phase in operation["phases"] if phase["state"] == "interrupted"]
        assert interrupted == [point.removeprefix("drain.")], operation
        cluster.run("cluster", "wait", "-t", "60s", *THREE_ARE_WHOLE)
        assert {row["node"] for row in cluster.shards().values()} == {"entity-1", "entity-2"}
