"""Disks under a replica that are slow or refuse to write, in a real cluster: nobody else notices."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_load import Load
from cluster_world import Cluster, eventually
from faulty_disk import FaultyDisk
from test_disks import NODE, faults, new_pages, one_stopped


@pytest.fixture
def disk(cluster: Cluster, tmp_path: Path) -> Iterator[FaultyDisk]:
    """Under the replica of NODE, which runs; sound again behind the test."""
    disk = FaultyDisk(tmp_path / "faults", f"{NODE}/replica/data.mdb")
    plain = cluster.env
    with contextlib.ExitStack() as around:
        with one_stopped(cluster):
            cluster.env = {**plain, **disk.env}
        cluster.env = plain
        cluster.whole()
        around.callback(cluster.whole)
        around.enter_context(started_plainly(cluster))
        around.callback(disk.heal)
        yield disk


@contextlib.contextmanager
def started_plainly(cluster: Cluster) -> Iterator[None]:
    yield
    with one_stopped(cluster):
        pass


def reachable(cluster: Cluster) -> set[str]:
    return {row["name"] for row in cluster.status()["nodes"] if row["reachable"]}


def test_d9_a_node_whose_disk_takes_seconds_stays_a_member_and_is_named(cluster: Cluster, disk: FaultyDisk) -> None:
    """Its commits wait for the sync, its heartbeats, its serving and its gossip do not."""
    pids, members = cluster.pids(), reachable(cluster)
    posted = new_pages(cluster)
    disk.hold()
    with Load(cluster) as load:

        def slow() -> str:
            next(posted)
            return faults(cluster).get("E-DISK-SLOW", "")

        said = eventually(slow, bool, 60, "a slow disk")
        load.answered(200)
        assert reachable(cluster) == members, "no heartbeat waits for the disk"
        cluster.run("cluster", "wait", "-t", "30s", "--for", "replicas=agree")
        assert "E-DISK-SLOW" in faults(cluster)
    assert "disk slow" in said
    assert f"{NODE}/replica" in said
    assert load.wrong() == []
    disk.heal()
    eventually(lambda: faults(cluster), lambda f: "E-DISK-SLOW" not in f, 60, "a disk that is fast again")
    cluster.whole()
    assert cluster.pids() == pids


def test_p89_a_replica_on_a_disk_that_became_read_only_degrades_serves_and_recovers(
    cluster: Cluster, disk: FaultyDisk
) -> None:
    pids = cluster.pids()
    posted = new_pages(cluster)
    disk.fail("write", errno.EROFS, -1)
    with Load(cluster) as load:

        def degraded() -> str:
            next(posted)
            return faults(cluster).get("E-REPLICA-DEGRADED", "")

        said = eventually(degraded, bool, 60, "a degraded replica")
        load.answered(200)
        cluster.run("cluster", "wait", "-t", "30s", "--for", "replicas=agree")
    assert f"{NODE}/replica" in said
    assert "Read-only file system" in said
    assert load.wrong() == []
    disk.heal()
    eventually(lambda: faults(cluster), lambda f: "E-REPLICA-DEGRADED" not in f, 60, "a replica on disk")
    cluster.whole()
    assert cluster.pids() == pids
