"""V1, V3 and V4 of `docs/checks.md`: a drain that is held up by one entity says so, waits for it, and is accounted for
when its node is killed meanwhile.

PROMOVOLVE_TEST_SCALE=10 makes V4 the row's: an entity that needs 20 s, ten times.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cluster_world import Cluster, eventually
from relayed import edit, prepare

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
NEEDS_S, RUNS = (20, 10) if SCALE >= 10 else (8, 1)
NEVER_S = 600
SAID_WITHIN_S = 10
NODE = "entity-3"
SCRIPT = str(Path(__file__).with_name("slow_writer_node.py"))


@dataclass(frozen=True)
class Slow:
    """A node that takes so long to write one campaign, which lives on it; the write of its pause is under way."""

    child: subprocess.Popen[str]
    campaign: str
    shard: int
    began: float

    @property
    def blocker(self) -> str:
        return f"entity/campaign/{self.campaign}: a write is under way, its shard {self.shard} stops"


@contextlib.contextmanager
def slow(cluster: Cluster, seconds: int) -> Iterator[Slow]:
    """In place of `NODE`, which is back afterwards, and the campaign active."""
    campaign = next(row["campaign"] for row in cluster.ask("campaign", "list")["items"] if row["status"] == "active")
    cluster.ask("node", "stop", NODE, "--yes")
    config = cluster.data / "nodes" / NODE / "node.toml"
    command = [sys.executable, "-P", SCRIPT, f"campaign/{campaign}", str(seconds), "--config", str(config)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True) as child:
        try:
            cluster.run("node", "wait", NODE, "--for", "ready", "-t", "60s")
            assert cluster.pids()[NODE] == child.pid
            cluster.whole()
            shard = cluster.ask("shard", "where", "campaign", campaign)["shard"]
            cluster.ask("shard", "move", str(shard), "--to", NODE, "--yes", "-t", "60s")
            cluster.even()
            began = time.monotonic()
            taken = cluster.refused("campaign", "pause", campaign, "-t", "1s", status=9)
            assert "may have been done" in taken["message"]
            yield Slow(child, campaign, shard, began)
        finally:
            child.kill()
    cluster.up()
    cluster.whole()
    cluster.ask("campaign", "resume", campaign, "-t", "30s")


def held(operation: Any) -> list[str]:
    """What the drain says it waits for while its shards move."""
    return [text for phase in operation["phases"] if phase["name"] == "shards" for text in phase["blockers"]]


def running_drain(cluster: Cluster) -> str:
    found = eventually(lambda: cluster.ask("op", "list", "--state", "running")["items"], bool, 20, "a running drain")
    return str(found[0]["id"])


@pytest.mark.parametrize("_run", range(RUNS))
def test_a_drain_names_the_entity_that_it_waits_for_and_is_over_when_that_is(
    cluster: Cluster, _run: int
) -> None:
    with slow(cluster, NEEDS_S) as node:
        drain, began = cluster.begun("node", "drain", NODE, "--yes", "-t", "120s"), time.monotonic()
        operation = running_drain(cluster)
        held_by = eventually(
            lambda: held(cluster.ask("op", "show", operation)), lambda found: node.blocker in found, 10, "its blocker"
        )
        assert held_by == [node.blocker, "1 shards are still here"]
        said = []
        assert drain.stderr is not None
        for line in drain.stderr:
            said.append((time.monotonic() - began, line))
        ended = cluster.ended(drain)
        node.child.kill()  # in the same second
        assert time.monotonic() - node.began >= NEEDS_S, "it was over before the entity was"
        assert (ended["state"], ended["result"]["messages_lost"]) == ("done", 0)
        telling = [at for at, line in said if node.blocker in line and f"drain {NODE}" in line]
        assert telling, said
        assert telling[0] < SAID_WITHIN_S
        assert len(telling) <= 1 + NEEDS_S // 30, "each 30 s at the most"
        assert cluster.ask("campaign", "show", node.campaign)["status"] == "paused"
        assert cluster.ask("shard", "check")["ok"]


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of its own whose nodes take their time to give one up: a silent one is a member long enough to be asked
    about, however busy the cores are."""
    found = Cluster(tmp_path)
    try:
        for node in prepare(found.data, 4).nodes:
            edit(found.data, node.name, "cluster", {"profile": "default"})
        found.up("--demo")
        found.whole()
        yield found
        found.down()
    finally:
        found.last_resort()


def test_a_drain_whose_node_was_killed_is_told_by_the_placement_table(patient: Cluster, tmp_path: Path) -> None:
    cluster = patient
    key = tmp_path / "reader.key"
    cluster.ask("auth", "key", "create", "reader", "--role", "viewer", "--out", str(key), "--yes")
    with slow(cluster, NEVER_S) as node:
        operation = cluster.ask("node", "drain", NODE, "--yes", "--detach")["id"]
        one_left = [node.blocker, "1 shards are still here"]
        eventually(lambda: held(cluster.ask("op", "show", operation)), lambda found: found == one_left, 30, "one left")
        node.child.kill()
        node.child.wait(10)
        reader = dict(cluster.env)
        cluster.env["PROMOVOLVECTL_KEY_FILE"] = str(key)
        try:
            shown = eventually(
                lambda: cluster.ask("node", "show", NODE, status=12),
                lambda found: not found["node"]["reachable"],
                20,
                "that its silence is noticed",
            )
            assert (shown["node"]["shards"], shown["placed"], shown["drain"]) == (1, [node.shard], operation)
            found = cluster.ask("op", "show", operation)
        finally:
            cluster.env = reader
        assert (found["state"], found["result"]["shards_left"]) == ("running", 1)
        assert held(found) == [f"shard/{node.shard}: is placed on {NODE}, which does not answer"]
        again = cluster.ask("node", "drain", NODE, "--yes", "--detach")
        assert again["id"] == operation, "the same one, not another"
        ended = cluster.ask("op", "wait", operation, "-t", "60s", status=15)
        assert (ended["state"], ended["result"]["interrupted_at"]) == ("failed", "shards")
        cluster.run("cluster", "wait", "--for", "shards=allocated", "-t", "60s")
        assert cluster.shards()[node.shard]["node"] not in (NODE, None)
    cluster.ask("auth", "key", "revoke", "reader", "--yes")
