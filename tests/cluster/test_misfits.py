"""Nodes that are set up for another cluster: each process ends with status 14, says why last, and touches nothing."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cluster_world import Cluster
from msgspec.structs import replace

from node.core.clock import SystemClock
from node.core.hashing import HASH_VERSION, MAP_COUNT, SHARD_COUNT
from node.store.lmdb import LmdbStore
from node.store.port import Identity, Initialise, NextIncarnation

NODE = "entity-2"
MISMATCH = 14
WAIT_S = 60
STARTS = 100


def ended(cluster: Cluster, **settings: str) -> tuple[int, str]:
    """How the node ends that is started with other settings, and what it says."""
    command = [sys.executable, "-P", "-m", "node", "--config", str(cluster.data / "nodes" / NODE / "node.toml")]
    env = {**os.environ, **{f"PROMOVOLVE_NODE_{key}": value for key, value in settings.items()}}
    found = subprocess.run(
        command, capture_output=True, stdin=subprocess.DEVNULL, text=True, env=env, timeout=WAIT_S, check=False
    )
    return found.returncode, found.stderr.rstrip()


def files(folder: Path) -> dict[str, str]:
    """What is in it, but for who reads and writes it, which is no data."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("lock.mdb", "pid")
    }


def old_store(folder: Path, **made_for: Any) -> Path:
    """A store that another cluster, or another release, has made. It has counted more starts of the node than ours:
    under a number that ours has met, it would be taken for that life, and its messages for repeats."""
    folder.mkdir()
    ours = Identity("c-old", "local", SHARD_COUNT, MAP_COUNT, HASH_VERSION)
    store = LmdbStore(folder, SystemClock())
    try:
        (found,) = store.apply([Initialise(replace(ours, **made_for))])
        assert isinstance(found, Identity)
        store.apply([NextIncarnation(NODE)] * STARTS)
    finally:
        store.close()
    return folder


def refused_untouched(cluster: Cluster, store: Path, words: str) -> None:
    """A node that finds this store names both values, ends, and leaves every byte as it is."""
    before = files(store)
    status, said = ended(cluster, STORE__PATH=str(store))
    assert status == MISMATCH, said
    assert words in said
    assert files(store) == before


@pytest.fixture
def missing(cluster: Cluster) -> Cluster:
    """A cluster of which one node does not run."""
    cluster.ask("node", "stop", NODE, "--yes")
    return cluster


def test_s06_v3_a_node_that_is_set_up_for_another_cluster_says_so_and_ends(missing: Cluster, tmp_path: Path) -> None:
    members = [(row["name"], row["incarnation"]) for row in missing.ask("node", "list")["items"]]
    for settings, words in (
        ({"MEMBERSHIP__HEARTBEAT_MS": "300"}, "heartbeat_ms is '300' here and '200' there"),
        (
            {"SPLIT_BRAIN__STRATEGY": "keep-oldest"},
            "split_brain.strategy is 'keep-oldest' here and 'keep-majority' there",
        ),
    ):
        status, said = ended(missing, **settings)
        assert status == MISMATCH, said
        last = said.rpartition("\n")[2]
        assert last.startswith("E-MISFIT: ")
        assert last.endswith(f"refuses this node: {words}")
    olds: dict[Path, str] = {}
    for made_for, words in (
        ({"shard_count": 128}, "shard count is 128 there and 256 here"),
        ({"hash_version": "md5"}, f"hash version is 'md5' there and {HASH_VERSION!r} here"),
    ):
        old = old_store(tmp_path / f"old-{next(iter(made_for))}", **made_for)
        olds[old] = words
        refused_untouched(missing, old, words)
    own = missing.data / "nodes" / NODE
    before = files(own)
    other = str(old_store(tmp_path / "other"))
    known = missing.ask("node", "list")["cluster"]["id"]
    status, said = ended(missing, STORE__PATH=other)  # with the replica of the cluster that it was in
    assert (status, "c-old" in said, known in said) == (MISMATCH, True, True), said
    assert files(own) == before
    status, said = ended(missing, STORE__PATH=other, NODE__DATA=str(tmp_path / "fresh"))
    assert status == MISMATCH, said
    assert said.endswith(f"refuses this node: cluster.id is 'c-old' here and {known!r} there")
    assert [(row["name"], row["incarnation"]) for row in missing.ask("node", "list")["items"]] == members
    missing.down()
    for old, words in olds.items():  # nobody runs who could tell it
        refused_untouched(missing, old, words)
