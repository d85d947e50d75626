"""V9 and E10 of `docs/checks.md`: who coordinates is killed amid a move, and the command that watches tells and ends.

Two nodes here coordinate and own no shards, so that one of them can be armed to die at a named step of the next move.
PROMOVOLVE_TEST_SCALE=10 makes it every step.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from cluster_world import Cluster, eventually, runs

from node.core.faultpoints import POINTS
from promovolvectl.local import files, ports
from promovolvectl.local import layout as lay

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
STEPS = [point for point in POINTS if point.startswith("handoff.")]
FRONT, VICTIM, OWNERS = "api-1", "entity-1", ("entity-2", "entity-3")
ROLES = {FRONT: ("api", "crawler", "singleton"), VICTIM: ("singleton",), **dict.fromkeys(OWNERS, ("entity",))}


@pytest.fixture(scope="module")
def led(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("led"))
    try:
        lay.claim(cluster.data)
        layout = ports.plan(cluster.data, "local", tuple(ROLES.items()))
        lay.write(cluster.data, layout)
        files.prepare(cluster.data, layout)
        cluster.up()
        yield cluster
        cluster.down()
    finally:
        cluster.last_resort()


def armed(cluster: Cluster, fault: str) -> int:
    """The process of `VICTIM`, which coordinates and dies at the fault."""
    pids = cluster.pids()
    if VICTIM in pids:
        os.kill(pids[VICTIM], signal.SIGKILL)
        eventually(lambda: runs(pids[VICTIM]), lambda alive: not alive, 10, "its end")
    cluster.run("cluster", "wait", "-t", "60s", "--for", "nodes=3", "--for", "shards=allocated")
    pid = cluster.start(VICTIM, fault)
    cluster.ask("node", "stop", FRONT, "--yes", "--force", "last-of-role")  # the older of the two coordinates
    cluster.start(FRONT)
    conditions = ("converged", f"nodes={len(ROLES)}", "shards=allocated")
    cluster.run("cluster", "wait", "-t", "60s", *(word for c in conditions for word in ("--for", c)))
    eventually(lambda: cluster.status()["coordinator"], lambda name: name == VICTIM, 20, "that it coordinates")
    return pid


def other(node: str) -> str:
    return next(name for name in OWNERS if name != node)


def test_check_v9_a_plan_whose_coordinator_is_killed_goes_on_under_the_next(led: Cluster) -> None:
    pid = armed(led, "handoff.acknowledged:kill:3")
    shards = [number for number, row in led.shards().items() if row["node"] == OWNERS[0]][:8]
    plan = led.ask("shard", "pin", *map(str, shards), "--to", OWNERS[1], "--dry-run")
    commit = led.begun("plan", "commit", plan["id"], "--yes", "-t", "120s")
    out, said = commit.communicate(timeout=130)
    assert not runs(pid), "the coordinator was not killed"
    assert commit.returncode == 0, (out, said)
    found: Any = json.loads(out)
    assert (found["state"], found["result"]["shards_moved"]) == ("done", len(shards))
    assert [phase["detail"] for phase in found["phases"]] == [f"{len(shards)}/{len(shards)} moved"]
    after = led.shards()
    assert {after[number]["node"] for number in shards} == {OWNERS[1]}
    assert led.status()["coordinator"] == FRONT
    led.ask("shard", "unpin", *map(str, shards), "--yes")
    assert led.ask("shard", "check")["ok"]


@pytest.mark.parametrize("step", STEPS if SCALE >= 10 else ["handoff.epoch_issued"])
def test_check_e10_a_move_ends_and_says_how_when_its_coordinator_dies(led: Cluster, step: str) -> None:
    pid = armed(led, f"{step}:kill")
    number, row = next(iter(led.shards().items()))
    to, began = other(row["node"]), time.monotonic()
    move = led.begun("shard", "move", str(number), "--to", to, "--yes", "-t", "60s")
    out, said = move.communicate(timeout=70)
    assert time.monotonic() - began < 60
    assert not runs(pid), "the coordinator was not killed"
    assert move.returncode == 0, (out, said)
    assert json.loads(out)["state"] == "done"
    led.run("cluster", "wait", "--for", "shards=allocated", "-t", "60s")
    after = led.shards()[number]
    assert (after["node"], after["epoch"] > row["epoch"]) == (to, True)
    assert led.ask("shard", "check")["ok"]
