"""`up` over what another one left: nodes that have died, and a command that was killed."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_world import Cluster, ended, eventually


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of its own, of two nodes, not started yet."""
    found = Cluster(tmp_path)
    try:
        yield found
        found.down()
    finally:
        found.last_resort()


def pid_of(cluster: Cluster, name: str) -> int:
    file = cluster.data / "run" / f"{name}.pid"
    return int(file.read_text().split()[0]) if file.exists() else 0


def test_up_completes_what_a_killed_one_began_and_what_has_died_since(pair: Cluster) -> None:
    """The first node that was started goes on; of two nodes the one that is left alone ends, too, and is started."""
    first = pair.begun("up", "--nodes", "2", "--data", str(pair.data))
    pid = eventually(lambda: pid_of(pair, "api-1"), bool, 30, "the first node's process")
    first.send_signal(signal.SIGKILL)
    first.communicate()
    found = pair.up("--nodes", "2")
    assert [row["name"] for row in found["nodes"]] == ["api-1", "entity-1"]
    assert found["nodes"][0]["pid"] == pid
    assert pair.up("--nodes", "2")["changed"] is False
    refused = pair.refused("up", "--nodes", "3", "--data", str(pair.data), status=4)
    assert refused["code"] == "E-CONFLICT", "what it was made with stays"
    pair.kill("entity-1")
    again = pair.up("--nodes", "2")
    assert again["changed"] is True
    pids = {row["name"]: row["pid"] for row in again["nodes"]}
    assert pids["entity-1"] != found["nodes"][1]["pid"]
    if pids["api-1"] != pid:  # it waited too long alone: then it has ended, and was not killed
        ended(pid)
    assert pair.pids() == pids


def test_up_by_its_profile_starts_the_cluster_that_the_profile_was_made_with(pair: Cluster) -> None:
    """Roles as they were assigned; not a second cluster elsewhere."""
    nodes = ("--node", "front=api,singleton", "--node", "back=entity,crawler")
    made = pair.ask("up", "-p", "mine", "--data", str(pair.data), *nodes)
    assert {node["name"]: set(node["roles"]) for node in made["nodes"]} == {
        "front": {"api", "singleton"},
        "back": {"entity", "crawler"},
    }
    pair.ask("down", "-p", "mine")
    again = pair.ask("up", "-p", "mine")
    assert (again["data"], again["nodes"][0]["admin"]) == (str(pair.data), made["nodes"][0]["admin"])
    told = [warned["code"] for warned in again["warnings"]]
    assert told == ["W-ONE-CRASH"], "of its only entity node, not of other nodes than it was made with"
    pair.ask("down", "-p", "mine")


def test_d17_a_state_store_copied_back_starts_nothing_until_it_is_told_to_go_on_as_new(pair: Cluster) -> None:
    pair.up("--nodes", "2")
    pair.ask("advertiser", "create", "early", "--daily-budget", "1", "--yes")
    pair.down()
    store, kept = pair.data / "store", pair.data / "kept"
    shutil.copytree(store, kept)
    pair.up()
    pair.ask("advertiser", "create", "late", "--daily-budget", "1", "--yes")
    before = pair.shards()
    pair.down()
    shutil.copyfile(kept / "data.mdb", store / "data.mdb")
    refused = pair.refused("up", "--data", str(pair.data), status=15)
    assert "E-STORE-COPIED" in str(refused) + "".join(pair.logs())
    assert "promovolvectl up --as-new" in str(refused) + "".join(pair.logs())
    pair.ask("up", "--as-new", "--data", str(pair.data))
    assert [row["advertiser"] for row in pair.ask("advertiser", "list")["items"]] == ["early"]
    after = pair.shards()
    assert all(after[number]["epoch"] > row["epoch"] for number, row in before.items()), "nobody from before can write"
    assert pair.up()["changed"] is False
    pair.down()
    pair.up()
