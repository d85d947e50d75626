"""A replica whose disk fails under it, in a process of its own: what is said, what is served, and how it ends."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
from faulty_disk import FaultyDisk
from replica_process import ReplicaProcess, replica_process

from node.store.replica_check import check


@pytest.fixture
def disk(tmp_path: Path) -> FaultyDisk:
    return FaultyDisk(tmp_path / "faults", "replica/data.mdb")


@pytest.fixture
def node(tmp_path: Path, disk: FaultyDisk) -> Iterator[ReplicaProcess]:
    with replica_process(tmp_path / "replica", disk.env) as process:
        for number in range(50):
            process.put(f"s{number}|a", f"first {number}")
        process.until("committed")
        yield process


def kept(tmp_path: Path, node: ReplicaProcess) -> ReplicaProcess:
    """The same replica after kill -9, in a process with a sound disk."""
    node.kill()
    assert asyncio.run(check(tmp_path / "replica")).sound
    return ReplicaProcess(tmp_path / "replica", {})


def test_p87_what_was_committed_is_served_from_disk_after_kill_9_and_a_start_alone(tmp_path: Path) -> None:
    with replica_process(tmp_path / "replica") as first:
        first.put("s1|a", "put")
        first.put("s2|a", "put")
        first.ask("remove", "s2|a")
        first.until("committed")
        first.kill()
    with replica_process(tmp_path / "replica") as alone:
        assert alone.opened["how"] == "reused"
        assert (alone.get("s1|a"), alone.get("s2|a")) == ("put", None)


def test_p88_puts_that_arrive_while_a_replica_opens_are_none_of_them_lost(tmp_path: Path) -> None:
    """They wait in the pipe until it is open; that this takes less than a second is the benchmark's to show."""
    with replica_process(tmp_path / "replica") as first:
        for number in range(5_000):
            first.put(f"old{number}|a", "x" * 500)
        first.until("committed")
        first.kill()
    opening = ReplicaProcess(tmp_path / "replica", {}, asked=[["put", f"new{n}|a", "early"] for n in range(500)])
    assert opening.opened["how"] == "reused"
    assert [opening.answered() for _ in range(500)] == [True] * 500
    assert {opening.get(f"new{n}|a") for n in range(500)} == {"early"}
    assert opening.get("old4999|a") == "x" * 500
    opening.until("committed")
    again = kept(tmp_path, opening)
    assert {again.get(f"new{n}|a") for n in range(500)} == {"early"}
    again.kill()


def test_p89_a_disk_that_became_read_only_is_named_and_the_replica_serves_and_recovers(
    tmp_path: Path, disk: FaultyDisk, node: ReplicaProcess
) -> None:
    disk.fail("write", errno.EROFS, -1)
    node.put("s1|a", "second")
    said = node.until("fault", "E-REPLICA-DEGRADED")
    assert "replica degraded" in said
    assert str(tmp_path / "replica") in said
    assert "Read-only file system" in said
    assert (node.get("s1|a"), node.get("s2|a")) == ("second", "first 2")
    node.put("s3|a", "meanwhile")
    disk.heal()
    node.until("committed")
    node.until("no-fault", "E-REPLICA-DEGRADED")
    again = kept(tmp_path, node)
    assert [again.get(f"s{n}|a") for n in (1, 2, 3)] == ["second", "first 2", "meanwhile"]
    again.kill()


def test_d9_a_commit_that_waits_for_its_disk_holds_up_nothing_and_is_named(
    tmp_path: Path, disk: FaultyDisk, node: ReplicaProcess
) -> None:
    """Reads, writes and everything else of the process go on while the sync waits."""
    disk.hold()
    node.put("s1|a", "second")
    said = node.until("fault", "E-DISK-SLOW")
    assert "disk slow" in said
    assert str(tmp_path / "replica") in said
    for number in range(100):
        node.put(f"t{number}|a", "more")
        assert node.get(f"t{number}|a") == "more"
    assert not node.ask("committed")
    assert node.ask("counter", "commits_failed") == 0
    disk.heal()
    node.until("committed")
    node.until("no-fault", "E-DISK-SLOW")
    again = kept(tmp_path, node)
    assert (again.get("s1|a"), again.get("t99|a")) == ("second", "more")
    again.kill()


def test_d10_after_a_failed_sync_the_file_is_checked_and_opened_anew_before_anything_is_written(
    tmp_path: Path, disk: FaultyDisk, node: ReplicaProcess
) -> None:
    disk.fail("sync", errno.EIO, 1)
    node.put("s1|a", "second")
    assert node.until("mended") == 1
    assert node.get("s1|a") == "second"
    node.until("committed")
    node.until("no-fault", "E-REPLICA-DEGRADED")
    assert (node.ask("counter", "commits_failed"), node.ask("lost"), node.ask("health")["poisoned"]) == (1, [], "")
    again = kept(tmp_path, node)
    assert (again.get("s1|a"), again.get("s2|a")) == ("second", "first 2")
    again.kill()


def test_d10_a_header_that_could_not_be_written_is_opened_anew_and_nothing_returns(
    tmp_path: Path, disk: FaultyDisk, node: ReplicaProcess
) -> None:
    """LMDB condemns the environment then: even reads need it opened again."""
    disk.fail("write", errno.EIO, 2, after=1)  # the header's own write, and the one that would take it back
    node.ask("remove", "s1|a")
    node.until("mended")
    assert (node.get("s1|a"), node.get("s2|a")) == (None, "first 2")
    node.until("committed")
    again = kept(tmp_path, node)
    assert (again.get("s1|a"), again.get("s2|a")) == (None, "first 2")
    again.kill()


@pytest.mark.parametrize("fault", ["every other write finds no room", "every write is short"])
def test_d11_writes_that_fail_at_random_degrade_the_replica_until_they_end(
    tmp_path: Path, disk: FaultyDisk, node: ReplicaProcess, fault: str
) -> None:
    if fault == "every write is short":
        disk.cut_short()
    else:
        disk.fail("write", errno.ENOSPC, 0)
    for number in range(20):
        node.put(f"s{number}|a", "second")
    node.until("counter", "commits_failed")
    assert "replica degraded" in node.until("fault", "E-REPLICA-DEGRADED")
    assert (node.get("s1|a"), node.get("s40|a")) == ("second", "first 40")
    disk.heal()
    node.until("committed")
    node.until("no-fault", "E-REPLICA-DEGRADED")
    again = kept(tmp_path, node)
    assert (again.get("s1|a"), again.get("s40|a")) == ("second", "first 40")
    again.kill()
