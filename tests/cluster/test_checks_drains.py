"""V1 and V4 of `docs/checks.md`: a drain that is held up by one entity says so, and waits for it.

PROMOVOLVE_TEST_SCALE=10 makes V4 the row's ten runs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cluster_world import Cluster, eventually
from stand_in import NODE, held, running_drain, slow

RUNS = 10 if int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1")) >= 10 else 1


@pytest.mark.parametrize("_run", range(RUNS))
def test_a_drain_names_the_entity_that_it_waits_for_and_is_over_when_that_is(
    cluster: Cluster, tmp_path: Path, _run: int
) -> None:
    """The entity finishes only when it is told, which is after the command has said that it waits for it."""
    with slow(cluster, tmp_path) as node:
        drain = cluster.begun("node", "drain", NODE, "--yes", "-t", "120s")
        operation = running_drain(cluster)
        eventually(
            lambda: held(cluster.ask("op", "show", operation)),
            lambda found: found == [node.blocker, "1 shards are still here"],
            30,
            "that it waits for this entity alone",
        )
        assert drain.stderr is not None
        said = next((line for line in drain.stderr if node.blocker in line), "")
        assert f"drain {NODE}" in said
        assert cluster.ask("op", "show", operation)["state"] == "running"
        assert drain.poll() is None, "it was over before the entity was"
        node.go_on()
        ended = cluster.ended(drain)
        node.child.kill()  # in the same second
        assert (ended["state"], ended["result"]["messages_lost"]) == ("done", 0)
        assert cluster.ask("campaign", "show", node.campaign)["status"] == "paused"
        assert cluster.ask("shard", "check")["ok"]
