"""Waiting for what is to hold, and watching what comes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import msgspec
import pytest
from conftest import Invoke
from fake_server import META, FakeNode
from samples import SAMPLES, status

from node.admin import protocol as p
from node.admin.protocol.cluster import AbsentNode


def test_shard_wait_returns_when_the_shard_is_where_it_should_be(tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({p.GetShards: lambda _: SAMPLES["ShardList"]}) as node:
        node.write(tmp_path)
        assert invoke("shard", "wait", "10", "--on", "node-1")[0] == 0
        code, _, err = invoke("shard", "wait", "10", "--on", "node-2", "-t", "300ms")
        assert (code, "running on node-1" in err) == (9, True)
        assert invoke("shard", "wait", "9", "-t", "300ms")[0] == 9, "it has no owner"
        assert invoke("shard", "wait", "99")[0] == 2


def test_wait_returns_when_all_hold_and_names_what_does_not(tmp_path: Path, invoke: Invoke) -> None:
    answers = iter([status(converged=False), status()])
    with FakeNode({p.GetClusterStatus: lambda _: next(answers, status())}) as node:
        node.write(tmp_path)
        wanted = ("--for", "converged", "--for", "nodes=2", "--for", "coverage=1.0", "--for", "replicas=agree")
        code, out, _ = invoke("cluster", "wait", *wanted, "--for", "shards=allocated", "-o", "json")
        assert code == 0
        assert all(item["holds"] for item in json.loads(out)["conditions"])
        assert len(node.seen) == 2
        code, _, err = invoke("cluster", "wait", *wanted, "--for", "nodes=9", "-t", "300ms")
        assert code == 9
        assert "nodes=9: 2 up and reachable of 3" in err
        assert "converged" not in err


def test_all_nodes_are_those_of_the_roster(tmp_path: Path, invoke: Invoke) -> None:
    """One that was told to go and did not come back is no member, and no reason against health."""
    up = tuple(row for row in status().nodes if row.status == "up" and row.reachable)
    whole = msgspec.structs.replace(status(), nodes=up, absent=())
    with FakeNode({p.GetClusterStatus: lambda _: whole}) as node:
        node.write(tmp_path)
        assert invoke("cluster", "wait", "--for", "nodes=all")[0] == 0
    drained = AbsentNode(name="node-9", went="drained")
    for lacking in (msgspec.structs.replace(whole, absent=(drained,)), status()):
        with FakeNode({p.GetClusterStatus: lambda _, found=lacking: found}) as node:
            node.write(tmp_path)
            code, _, err = invoke("cluster", "wait", "--for", "nodes=all", "-t", "300ms")
        assert code == 9
        assert "nodes=all: away: " in err


def test_waiting_for_a_cluster_that_is_not_there_times_out(tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({}) as node:
        node.write(tmp_path)
    code, _, err = invoke("cluster", "wait", "--for", "converged", "-t", "300ms")
    assert code == 9
    assert "no node could be reached" in err


@pytest.mark.parametrize("condition", ["conveged", "nodes=x", "coverage=2", "shards=moving", "converged=1", "nan"])
def test_a_condition_that_does_not_exist_is_a_usage_error(condition: str, invoke: Invoke) -> None:
    code, _, err = invoke("cluster", "wait", "--for", condition)
    assert code == 2
    assert condition in err


def test_watch_writes_a_line_a_push_and_ends_at_its_limit(tmp_path: Path, invoke: Invoke) -> None:
    event = p.AdminEvent(at="x", topic="shard.moved", object="shard/3", text="to node-1")
    pushes = [p.Subscribed(), p.StatusPush(status=status(), meta=META), event]
    with FakeNode({p.Subscribe: lambda _: pushes}) as node:
        node.write(tmp_path)
        code, out, _ = invoke("cluster", "watch", "-o", "jsonl", "--limit", "2")
        first, second = map(json.loads, out.splitlines())
        assert (code, first["type"], second["type"]) == (0, "snapshot", "event")
        assert first["object"]["status"]["converged"] is True
        assert invoke("cluster", "watch", "--limit", "2")[1].splitlines()[1] == "x  shard.moved  shard/3  to node-1"
        rows = list(csv.reader(io.StringIO(invoke("cluster", "watch", "--limit", "2", "-o", "csv")[1])))
        assert [rows[0], rows[2]] == [["at", "topic", "object", "text"], ["x", "shard.moved", "shard/3", "to node-1"]]
        assert invoke("cluster", "watch", "--limit", "2", "-o", "name")[1] == "cluster/local\nshard/3\n"
