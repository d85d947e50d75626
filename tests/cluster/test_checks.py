"""Checks of the command line by their names (`docs/checks.md`), on a real cluster."""

from __future__ import annotations

import json
import os
import signal
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_world import Cluster

BUNDLE_S = 30


@pytest.fixture
def four(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of one test's own: it is left in no state that another could use."""
    cluster = Cluster(tmp_path)
    try:
        cluster.up("--demo")
        cluster.whole()
        yield cluster
    finally:
        cluster.last_resort()


def test_check_e3_a_bundle_ends_by_its_deadline_with_one_node_stopped_and_one_removed(
    four: Cluster, tmp_path: Path
) -> None:
    four.kill("entity-3")
    four.run("cluster", "wait", "--for", "nodes=3", "-t", "60s")
    four.ask("node", "remove", "entity-3", "--yes", "--force", "live-node")
    os.kill(four.pids()["entity-2"], signal.SIGSTOP)
    file, began = tmp_path / "b.tar.gz", time.monotonic()
    found = four.ask("debug", "bundle", "-f", str(file), "--node-timeout", "3s", status=12)
    assert time.monotonic() - began < BUNDLE_S
    with tarfile.open(file) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
        manifest = json.load(tar.extractfile("b/manifest.json"))  # type: ignore[arg-type]
        doctor = json.load(tar.extractfile("b/here/doctor.json"))  # type: ignore[arg-type]
    states = {node["node"]: node["state"] for node in manifest["nodes"]}
    assert states["entity-2"] == states["entity-3"] == "missing"
    assert states["api-1"] == states["entity-1"] == "answered"
    assert {"entity-2", "entity-3"} <= {each["node"] for each in found["missing"]}
    assert {"nodes/api-1/status.json", "cluster/decisions.json", "nodes/entity-2/log.txt"} <= names
    wrong = {(row["check"], row["object"]): row["fix"] for row in doctor["items"] if row["state"] == "fail"}
    assert wrong["processes.running", "entity-2"].startswith("kill -CONT ")
    assert ("nodes.reach", "entity-3") in wrong


@pytest.mark.parametrize("dies", ["source", "target"])
def test_check_e10_a_move_ends_and_says_how_when_its_source_or_target_dies(four: Cluster, dies: str) -> None:
    """Never silence, and the shard has one live owner afterwards."""
    shard = next(n for n, row in four.shards().items() if row["node"] == "entity-1")
    victim = {"source": "entity-1", "target": "entity-2"}[dies]
    epoch = four.shards()[shard]["epoch"]
    move = four.begun("shard", "move", str(shard), "--to", "entity-2", "--yes", "-t", "60s")
    os.kill(four.pids()[victim], signal.SIGKILL)
    out, err = move.communicate(timeout=120)
    assert move.returncode in (0, 4, 8, 9, 15), (out, err)
    assert out or err, "silence"
    if move.returncode == 0:
        assert json.loads(out)["state"] == "done"
    four.run("cluster", "wait", "--for", "nodes=3", "--for", "converged", "--for", "shards=allocated", "-t", "60s")
    row = four.shards()[shard]
    assert row["node"] != victim
    assert row["epoch"] >= epoch
    assert four.ask("shard", "check", status=0)["ok"]
