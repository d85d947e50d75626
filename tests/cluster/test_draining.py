"""Nodes that leave in order, while pages are being viewed: nothing is lost and nobody notices."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cluster_load import Load, Probes
from cluster_world import Cluster, eventually, runs, stands_still
from relayed import prepare


def test_draining_under_load_loses_nothing(cluster: Cluster) -> None:
    cluster.even()
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


def own_child(cluster: Cluster, name: str, **environment: str) -> subprocess.Popen[str]:
    """The node as a child of this test, so that its exit status can be asked for."""
    config = cluster.data / "nodes" / name / "node.toml"
    command = [sys.executable, "-P", "-m", "node", "--config", str(config)]
    env = {**os.environ, **environment}
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=env)


def test_p13_a_signal_while_it_starts_or_joins_ends_it_and_nobody_waits_for_it(cluster: Cluster) -> None:
    cluster.ask("node", "stop", "entity-2", "--yes")
    for after_s in (0.2, 0.8):
        with own_child(cluster, "entity-2") as child:
            with suppress(subprocess.TimeoutExpired):
                child.wait(after_s)
            child.send_signal(signal.SIGTERM)
            _, said = child.communicate(timeout=30)
        # By the signal itself before Python could take it, told before it had started, or drained.
        assert child.returncode in (-signal.SIGTERM, 143, 0), said[-2000:]
        assert (child.returncode == 143) == ("E-STOPPED" in said)
    eventually(lambda: cluster.status(), lambda s: len(s["nodes"]) == 3 and s["converged"], 15, "that it is forgotten")


def held_at_its_shards(cluster: Cluster, name: str) -> subprocess.Popen[str]:
    """A node with shards as a child of this test that stops itself where they would move, so that whatever comes next
    surely comes before they have."""
    child = own_child(cluster, name, PROMOVOLVE_FAULT_AT="drain.shards:stop")
    eventually(lambda: cluster.pids(), lambda pids: pids.get(name) == child.pid, 30, "the node's return")
    cluster.whole()
    return child


def test_p13_a_second_signal_ends_a_node_and_its_status_says_that_something_was_left(cluster: Cluster) -> None:
    cluster.ask("node", "stop", "entity-2", "--yes")
    with held_at_its_shards(cluster, "entity-2") as child:
        child.send_signal(signal.SIGTERM)
        eventually(lambda: stands_still(child.pid), bool, 10, "phase 4")
        child.send_signal(signal.SIGTERM)
        child.send_signal(signal.SIGCONT)
        _, said = child.communicate(timeout=30)
    assert (child.returncode, "E-OVERRAN" in said) == (15, True), said[-2000:]
    drains = cluster.ask("op", "list")["items"]
    assert any(row["verb"] == "drain" and row["reason"] == "a signal" for row in drains)


@pytest.fixture
def five(tmp_path: Path) -> Iterator[Cluster]:
    """Five nodes with shards, of which two answer pages."""
    made = Cluster(tmp_path)
    prepare(made.data, 5, api=2, entity=5)
    try:
        made.up("--demo")
        made.whole(nodes=5)
        yield made
        made.down()
    finally:
        made.last_resort()


def test_p66_a_rolling_restart_under_page_views_shows_clients_nothing_but_ask_another(five: Cluster) -> None:
    five.even()
    kept, before, shards = five.settled_state(), five.pids(), five.shards()
    apis = [urlsplit(row["http"]).netloc for row in five.up()["nodes"] if row["http"]]
    with Load(five, apis) as load, Probes(apis) as probes:
        operation = five.ask("cluster", "restart", "--rolling", "--yes", "-t", "140s")
        moved = five.shards()  # before the load is evened out again
        load.answered(50)
    assert (operation["state"], operation["result"]["nodes_restarted"]) == ("done", 5), operation
    assert operation["result"]["messages_lost"] == 0
    after = five.pids()
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values())
    moves = sum(row["epoch"] - shards[number]["epoch"] for number, row in moved.items())
    assert 0 < moves == operation["result"]["shards_moved"] <= 360

    assert (load.failed(), load.wrong(), load.beacons.refused, load.beacons.unknown) == ([], [], [], 0)
    assert [probes.outages(address) for address in apis] == [1, 1]
    assert {attempt.address for attempt in load.attempts if attempt.status == 503} == set(apis)
    assert [a for a in load.attempts if a.status == 503 and not a.retry_after.isdecimal()] == []
    assert [a for a in load.attempts if probes.ready(a.address, a.sent)] == []
    five.whole(nodes=5)
    found = five.settled_state()
    assert [found[part] for part in ("approved", "pages")] == [kept[part] for part in ("approved", "pages")]
    assert views(found) - views(kept) == load.beacons.counted > 0


def views(state: dict[str, Any]) -> int:
    return sum(row["impressions_count"] for row in state["campaigns"])
