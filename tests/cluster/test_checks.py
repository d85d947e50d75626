"""Checks of the command line by their names (`docs/checks.md`), on a cluster whose nodes give nobody up by themselves:
a silent one is a member for as long as it is asked about, however busy the cores are, and removed when an operator says
so.

PROMOVOLVE_TEST_SCALE=10 makes V5 the row's 5,000 entries.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_world import Cluster, ended, eventually
from index_load import IndexWriter, key_of
from relayed import edit, prepare
from stand_in import NODE, held, played, slow

from node.core.hashing import shard_of
from node.wire.keys import write_key_pair
from node.wire.zmq_sockets import new_key_pair

ENTRIES = 500 * int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
NODE_TIMEOUT_S = 10  # for those that answer, on a busy machine
NEVER_MS = 3_600_000
HEALTH = (("-o", "json"), ("-q",))


@pytest.fixture(scope="module")
def _patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("patient"))
    try:
        for node in prepare(found.data, 4).nodes:
            edit(found.data, node.name, "membership", {"stable_after_ms": NEVER_MS})
        yield found
        found.down()
    finally:
        found.last_resort()


@pytest.fixture
def patient(_patient: Cluster) -> Cluster:
    """All nodes up, replicas equal, all slots filled."""
    _patient.restore("--demo")
    return _patient


@contextlib.contextmanager
def by_key(cluster: Cluster, file: Path) -> Iterator[None]:
    """Commands are given with another key meanwhile."""
    own = cluster.env
    cluster.env = {**own, "PROMOVOLVECTL_KEY_FILE": str(file)}
    try:
        yield
    finally:
        cluster.env = own


def health(cluster: Cluster) -> list[int]:
    """The status that `cluster health` ends with, as JSON and quiet."""
    asked = [cluster.begun("cluster", "health", *more) for more in HEALTH]
    return [command.returncode for command in asked if command.communicate(timeout=60)]


def test_a_drain_whose_node_was_killed_is_told_by_the_placement_table(patient: Cluster, tmp_path: Path) -> None:
    key = tmp_path / "reader.key"
    patient.ask("auth", "key", "create", "reader", "--role", "viewer", "--out", str(key), "--yes")
    with slow(patient, tmp_path) as node:
        operation = patient.ask("node", "drain", NODE, "--yes", "--detach")["id"]
        one_left = [node.blocker, "1 shards are still here"]
        eventually(lambda: held(patient.ask("op", "show", operation)), lambda found: found == one_left, 60, "one left")
        node.child.kill()
        node.child.wait(10)
        with by_key(patient, key):
            shown = eventually(
                lambda: patient.ask("node", "show", NODE, status=12),
                lambda found: not found["node"]["reachable"],
                20,
                "that its silence is noticed",
            )
            # Only a shard that the table gives to somebody else by now may be missing: a hand-off is forced after 15 s.
            owners = {row["shard"]: row["node"] for row in patient.ask("shard", "list", status=12)["items"]}
            moved = owners[node.shard] not in (NODE, None)
            assert shown["placed"] == [node.shard] or (shown["placed"], moved) == ([], True)
            assert (shown["node"]["shards"], shown["drain"]) == (len(shown["placed"]), operation)
            found = patient.ask("op", "show", operation)
        left = found["result"]["shards_left"]
        assert (found["state"], left <= len(shown["placed"])) == ("running", True)
        placed = f"shard/{node.shard}: is placed on {NODE}, which does not answer"
        assert held(found) == [placed if left else f"node/{NODE}: does not answer; no shard is placed on it"]
        again = patient.ask("node", "drain", NODE, "--yes", "--detach")
        assert again["id"] == operation, "the same one, not another"
        patient.ask("node", "remove", NODE, "--yes")
        over = patient.ask("op", "wait", operation, "-t", "60s", status=15)
        assert (over["state"], over["result"]["interrupted_at"]) == ("failed", "shards")
        assert patient.refused("node", "drain", NODE, "--yes", status=3)["code"] == "E-NODE-GONE"  # E9
        patient.run("cluster", "wait", "--for", "shards=allocated", "-t", "60s")
        assert patient.shards()[node.shard]["node"] not in (NODE, None)
    patient.ask("auth", "key", "revoke", "reader", "--yes")


def test_check_v5_a_node_cannot_stop_while_a_peer_lacks_what_it_holds(patient: Cluster, tmp_path: Path) -> None:
    """The peer is a member and beats; its replica is so many entries behind those that one node wrote."""
    deaf = tmp_path / "deaf"
    with played(patient, tmp_path, "deaf_replica_node.py", str(deaf)), IndexWriter(patient) as writer:
        owns = {number for number, row in patient.shards().items() if row["node"] == "entity-1"}
        keys = (key for key in map(key_of, range(100 * ENTRIES)) if shard_of(key.partition("|")[0]) in owns)
        deaf.touch()
        written = writer.begin(writer.put([key for key, _ in zip(keys, range(ENTRIES), strict=False)])).result(60)
        assert written == ENTRIES

        def reasons() -> dict[str, str]:
            done = patient.ended(patient.begun("node", "can-stop", "entity-1"), status=None)
            return {reason["code"]: reason["text"] for reason in done["reasons"]}

        said = eventually(lambda: reasons().get("replica-behind", ""), bool, 60, "that a peer is behind")
        found = re.match(rf"{NODE} has not acknowledged (\d+) entries, the oldest for \d+ ms", said)
        assert found, said
        assert int(found[1]) >= ENTRIES
        assert "replica-behind" in {r["code"] for r in patient.ask("node", "can-stop", "entity-1", status=5)["reasons"]}
        deaf.unlink()
        eventually(reasons, lambda left: not left, 60, "that it can stop")
        patient.ask("node", "can-stop", "entity-1")


def test_check_e9_e2_a_drain_of_a_node_that_stops_or_has_gone(patient: Cluster) -> None:
    """Three at one moment are one operation, or come too late and say so; then it is waited for before it is there."""
    words = (("node", "stop"), ("node", "drain"), ("node", "drain"))
    asked = [patient.begun(*verb, NODE, "--yes", "-t", "120s") for verb in words]
    found = [patient.ended(command, status=None) for command in asked]
    ends = [command.returncode for command in asked]
    assert 0 in ends
    assert set(ends) <= {0, 3, 4}, found
    drains = {each["id"] for each in found if each["kind"] == "Operation" and each["state"] == "done"}
    assert len(drains) <= 1, "two drains of one node"
    patient.run("node", "wait", NODE, "--for", "removed", "-t", "60s")
    assert patient.refused("node", "drain", NODE, "--yes", status=3)["code"] == "E-NODE-GONE"

    early = patient.refused("node", "wait", NODE, "--for", "up", "-t", "1s", status=9)
    assert f"{NODE} up: " in early["message"]
    waiting = patient.begun("node", "wait", NODE, "--for", "up", "-t", "120s")
    patient.start(NODE)
    assert [each["holds"] for each in patient.ended(waiting)["conditions"]] == [True]


def test_check_e3_a_bundle_ends_by_its_deadline_with_one_node_stopped_and_one_removed(
    patient: Cluster, tmp_path: Path
) -> None:
    """By itself: what it waited for each node is what its manifest says."""
    patient.kill("entity-3")
    patient.ask("node", "remove", "entity-3", "--yes", "--force", "live-node")
    stopped = patient.pids()["entity-2"]
    os.kill(stopped, signal.SIGSTOP)
    try:
        file = tmp_path / "b.tar.gz"
        found = patient.ask("debug", "bundle", "-f", str(file), "--node-timeout", f"{NODE_TIMEOUT_S}s", status=12)
        with tarfile.open(file) as tar:
            names = {name.partition("/")[2] for name in tar.getnames()}
            manifest = json.load(tar.extractfile("b/manifest.json"))  # type: ignore[arg-type]
            doctor = json.load(tar.extractfile("b/here/doctor.json"))  # type: ignore[arg-type]
    finally:
        os.kill(stopped, signal.SIGKILL)
    states = {node["node"]: node["state"] for node in manifest["nodes"]}
    assert states["entity-2"] == states["entity-3"] == "missing"
    assert states["api-1"] == states["entity-1"] == "answered"
    assert {"entity-2", "entity-3"} <= {each["node"] for each in found["missing"]}
    assert {"nodes/api-1/status.json", "cluster/decisions.json", "nodes/entity-2/log.txt"} <= names
    wrong = {(row["check"], row["object"]): row["fix"] for row in doctor["items"] if row["state"] == "fail"}
    assert wrong["processes.running", "entity-2"].startswith("kill -CONT ")
    assert ("nodes.reach", "entity-3") in wrong


def test_check_v6_health_ends_with_one_status_for_each_answer(patient: Cluster, tmp_path: Path) -> None:
    """As JSON and quiet alike: whole, by a key that nobody knows, with one node killed, with none left."""
    eventually(lambda: health(patient), lambda ends: ends == [0, 0], 60, "health")
    stranger = tmp_path / "stranger.key"
    write_key_pair(stranger, new_key_pair())
    with by_key(patient, stranger):
        assert health(patient) == [7, 7]
    pids = [pid for name, pid in patient.pids().items() if name != NODE]
    patient.kill(NODE)
    patient.run("node", "wait", NODE, "--for", "down", "-t", "60s")
    assert health(patient) == [10, 10]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    ended(*pids)
    assert health(patient) == [8, 8]
    assert patient.refused("node", "list", status=8)["exit"] == 8
