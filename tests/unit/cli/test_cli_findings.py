"""Commands that look for faults: the status that they end with, and what they say first."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
from conftest import Invoke
from fake_server import FakeNode
from samples import SAMPLES, status

from node.admin import protocol as p
from node.admin.protocol.facts import GetLedgerVerify


def test_health_ends_with_ten_unless_it_is_healthy(tmp_path: Path, invoke: Invoke) -> None:
    for state, expected in (("healthy", 0), ("degraded", 10), ("unhealthy", 10), ("unknown", 10)):
        reply = p.Health(state=state, reasons=())
        with FakeNode({p.GetClusterHealth: lambda _, reply=reply: reply}) as node:
            node.write(tmp_path)
            code, out, _ = invoke("cluster", "health", "-o", "json")
        assert (code, json.loads(out)["state"]) == (expected, state)


def test_ledger_verify_ends_with_ten_when_something_differs(tmp_path: Path, invoke: Invoke) -> None:
    whole = msgspec.structs.replace(SAMPLES["LedgerVerify"], ok=True, unreadable=0, differing=0, items=(), busy=())
    for found, expected, text in ((SAMPLES["LedgerVerify"], 10, "1 differ"), (whole, 0, "all agree")):
        with FakeNode({GetLedgerVerify: lambda _, found=found: found}) as node:
            node.write(tmp_path)
            code, out, _ = invoke("ledger", "verify")
        assert (code, text in out) == (expected, True)
        assert ("campaign/bus" in out) is bool(found.busy)


def test_ledger_verify_waits_for_a_verification_that_runs_and_asks_for_the_same(tmp_path: Path, invoke: Invoke) -> None:
    whole = msgspec.structs.replace(SAMPLES["LedgerVerify"], ok=True, unreadable=0, differing=0, items=(), busy=())
    runs = msgspec.structs.replace(whole, ok=False, state="running", number=7, facts=10, last=40)
    with FakeNode({GetLedgerVerify: lambda asked: whole if asked.number == 7 else runs}) as node:
        node.write(tmp_path)
        assert invoke("ledger", "verify")[0] == 0
        assert node.seen == [GetLedgerVerify(), GetLedgerVerify(number=7)]
    with FakeNode({GetLedgerVerify: lambda asked: runs}) as node:
        node.write(tmp_path)
        code, _, err = invoke("ledger", "verify", "-t", "1s")
    assert (code, "10 of 40 facts" in err) == (9, True)


def test_shard_check_ends_with_ten_when_it_finds_a_fault(tmp_path: Path, invoke: Invoke) -> None:
    silent = "not checked: node-3@1 did not answer"
    partly = p.ShardCheck(ok=True, faults=(), unchecked=SAMPLES["ShardCheck"].unchecked)
    for found, expected, said in (
        (SAMPLES["ShardCheck"], 10, [silent, "1 faults"]),
        (partly, 0, [silent, "what was checked agrees"]),
        (p.ShardCheck(ok=True, faults=()), 0, ["all four views agree"]),
    ):
        with FakeNode({p.GetShardCheck: lambda _, found=found: found}) as node:
            node.write(tmp_path)
            code, out, _ = invoke("shard", "check")
            assert (code, out.splitlines()[: len(said)]) == (expected, said)


def test_cluster_check_ends_with_ten_when_an_invariant_is_broken(tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({p.CheckCluster: lambda _: SAMPLES["ClusterCheck"]}) as node:
        node.write(tmp_path)
        assert invoke("cluster", "check", "--messages", "-o", "json")[0] == 10
    assert node.seen == [p.CheckCluster(messages=True)]


def test_coverage_that_is_not_known_is_shown_as_such_wherever_it_is_shown(tmp_path: Path, invoke: Invoke) -> None:
    unknown = {"expected": None, "present": 3, "ratio": None, "unknown_sites": 2}
    silent = p.SiteCoverage(site="silent.example", expected=None, present=None, ratio=None, missing=())
    covered = msgspec.structs.replace(SAMPLES["Coverage"], sites=(silent,), nodes=(), **unknown)
    totals = status(coverage=p.CoverageTotals(**unknown))
    index = msgspec.structs.replace(SAMPLES["ServeIndexStatus"], coverage_ratio=None)
    with FakeNode(
        {p.GetCoverage: lambda _: covered, p.GetClusterStatus: lambda _: totals, p.GetIndexStatus: lambda _: index}
    ) as node:
        node.write(tmp_path)
        for command in ("replay coverage", "serveindex coverage", "cluster status"):
            code, out, _ = invoke(*command.split())
            told = next(line for line in out.splitlines() if line.startswith("COVERAGE"))
            assert (code, told.split(maxsplit=1)[1]) == (0, "3/? (?): 2 sites do not tell of their slots")
        rows = [line.split() for line in invoke("replay", "coverage")[1].splitlines()]
        assert ["silent.example", "-", "-", "-", "-"] in rows
        assert "COVERAGE ?  LAG" in invoke("serveindex", "status")[1]
        _, _, err = invoke("cluster", "wait", "--for", "coverage=0", "-t", "300ms")
        assert "coverage=0: 3/? (?): 2 sites do not tell of their slots" in err


def test_replicas_of_which_one_is_silent_are_not_said_to_differ(tmp_path: Path, invoke: Invoke) -> None:
    for agree, said in ((True, "agree"), (False, "DIFFER"), (None, "agree where they answer")):
        index = msgspec.structs.replace(status().serveindex, agree=agree)
        with FakeNode({p.GetClusterStatus: lambda _, index=index: status(serveindex=index)}) as node:
            node.write(tmp_path)
            assert f"replicas {said}, lag" in invoke("cluster", "status")[1]
            code, _, _ = invoke("cluster", "wait", "--for", "replicas=agree", "-t", "300ms")
            assert code == (0 if agree else 9)
