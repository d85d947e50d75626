"""Commands as a person or a script gives them, against a node of real sockets."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from conftest import Invoke
from fake_server import META, FakeNode
from samples import SAMPLES, operation, plan, status
from samples import node as sample_node

from node.admin import protocol as p
from node.admin.protocol import diagnosis as d
from node.admin.protocol import explaining
from node.admin.protocol.facts import GetFacts, GetFactStatus, GetLedger, GetLedgerVerify
from promovolvectl.cli import follow, terminal
from promovolvectl.cli.follow import Words
from promovolvectl.cli.nouns import NOUNS, app_of
from promovolvectl.cli.outlook import refuse_unfit
from promovolvectl.cli.render import FORMATS, plain
from promovolvectl.cli.select import Selection
from promovolvectl.cli.shapes import SHAPES
from promovolvectl.client.profiles import load_file
from promovolvectl.local import layout, processes, rolling

Handlers = dict[type, Callable[[Any], Any]]

DOMAIN = ("SiteShow", "AdvertiserShow", "CampaignShow", "CreativeShow")
READS: list[tuple[str, type, str]] = [
    ("cluster status", p.GetClusterStatus, "ClusterStatus"),
    ("cluster decisions", p.GetDecisions, "DecisionList"),
    ("cluster decisions --rehearse --cut node-1,node-2/node-3", p.Rehearse, "Rehearsal"),
    ("cluster decisions --rehearse --lose 1", p.Rehearse, "Rehearsal"),
    ("cluster members --seen-by node-1", d.GetMembers, "MemberList"),
    ("cluster drill list", d.GetDrills, "DrillList"),
    ("cluster drill show fence", d.GetDrills, "DrillList"),
    ("cluster drill run fence --site example.com --dry-run", d.StageDrill, "Plan"),
    ("cluster repair --dry-run", d.StageClusterRepair, "Plan"),
    ("cluster views", d.GetViews, "ClusterViews"),
    ("cluster top --interval 1s", d.GetRates, "RateList"),
    ("node top node-1", d.GetRates, "RateList"),
    ("node status node-1", d.GetNodeStatus, "NodeStatus"),
    ("node logs node-1 --since 10m --grep shard --level warning", d.GetLogs, "LogList"),
    ("node log-level node-1", d.GetLogLevels, "LogLevels"),
    ("node log-level node-1 node.sharding debug --for 5m --dry-run", d.StageLogLevel, "Plan"),
    ("node restart node-1 --dry-run", p.StageRestart, "Plan"),
    ("events --since 1h --type shard.*", d.GetEventList, "EventList"),
    ("facts tail --type click --object campaign/rail", GetFacts, "FactList"),
    ("ledger show --by campaign --account publisher --limit 2", GetLedger, "LedgerShow"),
    ("facts list --with site=example.com --limit 2", GetFacts, "FactList"),
    ("entity where site/example.com", d.GetEntityPlace, "EntityPlace"),
    ("entity history site example.com", d.GetEntityHistory, "EntityHistory"),
    ("node list", p.GetNodes, "NodeList"),
    ("node show node-1", p.GetNode, "NodeShow"),
    ("shard list --node node-1", p.GetShards, "ShardList"),
    ("shard where site example.com", p.GetShardOf, "ShardPlace"),
    ("node mailboxes node-1", p.GetMailboxes, "NodeMailboxes"),
    ("entity list --node node-1", p.GetEntities, "EntityList"),
    ("entity show site example.com", p.GetEntity, "EntityShow"),
    ("entity quarantine list", p.GetQuarantine, "QuarantineList"),
    ("deadletter list", p.GetDeadLetters, "DeadLetterList"),
    ("deadletter show node-1.7.17 --payload", p.GetDeadLetter, "DeadLetterShow"),
    ("shard show 17", p.GetShard, "ShardShow"),
    ("shard map", p.GetShardMap, "ShardMap"),
    ("shard history 17", p.GetShardHistory, "ShardHistory"),
    ("plan list", p.GetPlans, "PlanList"),
    ("plan show p-1", p.GetPlan, "Plan"),
    ("plan cancel p-1 --reason why", p.CancelPlan, "Plan"),
    ("plan discard p-1", p.DiscardPlan, "Plan"),
    ("shard pin 3 17 --to node-9 --dry-run", p.StagePin, "Plan"),
    ("shard unpin 3 --dry-run", p.StagePin, "Plan"),
    ("shard rebalance --dry-run", p.StageRebalance, "Plan"),
    ("shard repair --dry-run --kind orphan", p.StageRepair, "Plan"),
    ("node cordon node-1 --dry-run", p.StageCordon, "Plan"),
    ("node uncordon node-1 --dry-run", p.StageCordon, "Plan"),
    ("serveindex maps", p.GetMaps, "ServeIndexMaps"),
    ("serveindex get example.com|top", p.GetEntry, "ServeIndexEntry"),
    ("serveindex status", p.GetIndexStatus, "ServeIndexStatus"),
    ("serveindex keys example.com", p.GetKeys, "ServeIndexKeys"),
    ("serveindex largest", p.GetLargest, "ServeIndexLargest"),
    ("serveindex where example.com|top", p.GetKeyPlace, "ServeIndexPlace"),
    ("serveindex lag", p.GetLag, "ServeIndexLag"),
    ("serveindex coverage --site example.com", p.GetCoverage, "Coverage"),
    ("serveindex repair --node node-1 --dry-run", p.StageIndexRepair, "Plan"),
    ("serveindex history example.com|top", p.GetKeyHistory, "ServeIndexHistory"),
    ("serveindex pending", p.GetPendingRemovals, "ServeIndexPending"),
    ("serveindex tombstones", p.GetTombstones, "ServeIndexTombstones"),
    ("serveindex roster list", p.GetRoster, "ServeIndexRoster"),
    ("serveindex roster remove node-9 --dry-run", p.StageRosterRemove, "Plan"),
    ("serveindex remove example.com|top --dry-run", p.StageKeyRemoval, "Plan"),
    ("replay show r-1", p.GetReplay, "Replay"),
    ("replay list --state done", p.ListReplays, "ReplayList"),
    ("replay watch r-1", p.GetReplay, "Replay"),
    ("replay wait r-1", p.GetReplay, "Replay"),
    ("replay cancel r-1 --reason why", p.CancelReplay, "Replay"),
    ("replay coverage --site example.com", p.GetCoverage, "Coverage"),
    ("coverage explain example.com", p.ExplainCoverage, "CoverageExplanation"),
    ("site explain example.com", explaining.ExplainSite, "SiteExplanation"),
    ("campaign explain rail", explaining.ExplainCampaign, "CampaignExplanation"),
    ("facts status", GetFactStatus, "FactStatus"),
    ("placement explain 17", p.ExplainPlacement, "PlacementExplanation"),
    ("campaign pause rail", p.SetCampaignStatus, "CampaignShow"),
    ("campaign resume rail", p.SetCampaignStatus, "CampaignShow"),
    ("campaign delete rail --dry-run", p.StageOrder, "Plan"),
    ("advertiser suspend acme --dry-run", p.StageOrder, "Plan"),
    ("advertiser resume acme", p.SetAdvertiserStatus, "AdvertiserShow"),
    ("advertiser delete acme --dry-run", p.StageOrder, "Plan"),
    ("site suspend example.com --dry-run", p.StageOrder, "Plan"),
    ("site resume example.com", p.UpdateSite, "SiteShow"),
    ("site update example.com --floor-cpm 0.8 --block-domain a.example", p.UpdateSite, "SiteShow"),
    ("site update example.com --timezone Asia/Tokyo --margin 0.2", p.UpdateSite, "SiteShow"),
    ("site update example.com --pace --no-auto-approve", p.UpdateSite, "SiteShow"),
    ("site update example.com --slot-floor top:1.20 --clear-slot-floor side", p.UpdateSite, "SiteShow"),
    ("creative revoke cr-1 --dry-run", p.StageOrder, "Plan"),
    ("creative reject cr-1 --site example.com --dry-run", p.StageOrder, "Plan"),
    ("campaign update rail --max-cpm 3.5 --daily-budget 80", p.UpdateCampaign, "CampaignShow"),
    ("campaign update rail --place JP --end 2026-12-24T00:00:00Z --lift sites", p.UpdateCampaign, "CampaignShow"),
    ("advertiser update acme --name Acme", p.UpdateAdvertiser, "AdvertiserShow"),
    ("creative pause cr-1", p.SetCreativeStatus, "CreativeShow"),
    ("creative resume cr-1", p.SetCreativeStatus, "CreativeShow"),
    ("creative delete cr-1 --dry-run", p.StageOrder, "Plan"),
    ("campaign pause rail --plan", p.StageOrder, "Plan"),
    ("auth rotate node-1 --step use --dry-run", p.StageOrder, "Plan"),
    ("auth key revoke ann --dry-run", p.StageOrder, "Plan"),
    ("auth key create ci --dry-run", p.StageOrder, "Plan"),
    ("node undrain node-1 --dry-run", p.StageOrder, "Plan"),
    ("op cancel op-1 --dry-run", p.StageOrder, "Plan"),
    ("replay start --all --dry-run", p.StageOrder, "Plan"),
    ("plan commit p-1 --dry-run", p.GetPlan, "Plan"),
    ("op show op-1", p.GetOperation, "Operation"),
    ("op list --state done", p.ListOperations, "OperationList"),
    ("op watch op-1", p.GetOperation, "Operation"),
    ("op wait op-1", p.GetOperation, "Operation"),
    ("op cancel op-1 --reason why", p.CancelOperation, "Operation"),
    ("site list", p.GetSites, "SiteList"),
    ("site show example.com", p.GetSite, "SiteShow"),
    ("advertiser list", p.GetAdvertisers, "AdvertiserList"),
    ("advertiser show acme", p.GetAdvertiser, "AdvertiserShow"),
    ("campaign list --advertiser acme", p.GetCampaigns, "CampaignList"),
    ("campaign show rail", p.GetCampaign, "CampaignShow"),
    ("creative list", p.GetCreatives, "CreativeList"),
    ("creative show cr-1", p.GetCreative, "CreativeShow"),
    ("page list example.com", p.GetPages, "PageList"),
    ("serve probe example.com|top --page https://example.com/", p.GetProbe, "ServeExplanation"),
    ("serve explain example.com|top", p.GetExplanation, "ServeExplanation"),
    ("replay start --all --wait", p.StartReplay, "Replay"),
    ("creative approve cr-1 --site example.com", p.ApproveCreative, "Approved"),
    ("site create example.com --publisher ann --slot top:728x90 --yes", p.CreateSite, "SiteShow"),
    ("advertiser create acme --daily-budget 100", p.CreateAdvertiser, "AdvertiserShow"),
    (
        "campaign create rail --advertiser acme --max-cpm 4.00 --daily-budget 50 --category 653 --category 653",
        p.CreateCampaign,
        "CampaignShow",
    ),
    (
        "creative create cr-1 --campaign rail --asset-url https://c.example/a.png --landing-url https://r.example "
        "--size 728x90",
        p.CreateCreative,
        "CreativeShow",
    ),
]


@pytest.mark.parametrize("flags", ["--cut a/b", "--rehearse", "--rehearse --cut a/b --lose 1", "--lose 2"])
def test_a_rehearsal_needs_one_kind_of_fault(flags: str, tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({}) as node:
        node.write(tmp_path)
        code, out, err = invoke("cluster", "decisions", *flags.split())
    assert (code, out) == (2, "")
    assert "--rehearse" in err


@pytest.mark.parametrize(("line", "request_type", "kind"), READS)
def test_a_command_asks_its_question_and_prints_the_answer_in_every_format(
    line: str, request_type: type, kind: str, tmp_path: Path, invoke: Invoke
) -> None:
    with FakeNode({request_type: lambda _: SAMPLES[kind]}) as node:
        node.write(tmp_path)
        for form in FORMATS:
            code, out, err = invoke(*line.split(), "-o", form)
            assert (code, err) == (0, ""), err
            assert out
            if form == "json":
                document = json.loads(out)
                assert document["kind"] == kind
                assert document["cluster"] == {"name": "local", "id": "c-0001"}
                assert document["observed_by"] == "node-1"
                assert document["complete"] is True
    assert {type(message) for message in node.seen} == {request_type}


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        (
            "site create x --publisher ann --slot a:1x2 --slot b:3x4 --floor-cpm 0",
            p.CreateSite(
                site="x",
                host="x",
                publisher="ann",
                slots=(p.Slot(slot="a", width=1, height=2), p.Slot(slot="b", width=3, height=4)),
                floor_cpm="0",
            ),
        ),
        ("shard list --node node-2", p.GetShards(node="node-2")),
        (
            "shard pin 3 17 --to node-9 --reason why --dry-run",
            p.StagePin(shards=(3, 17), to="node-9", reason="why"),
        ),
        ("shard unpin 3 --dry-run", p.StagePin(shards=(3,))),
        ("shard move 3 --to b --force capacity --dry-run", p.StageMove(shard=3, to="b", force=True)),
        ("shard rebalance --force preconditions --dry-run", p.StageRebalance(force=True)),
        ("shard repair --kind orphan --kind duplicate --dry-run", p.StageRepair(kinds=("orphan", "duplicate"))),
        ("node cordon b --force minimum-owners --dry-run", p.StageCordon(node="b", force=True)),
        ("node uncordon b --dry-run", p.StageCordon(node="b", on=False)),
        ("serve explain x|top --page http://x/u", p.GetExplanation(site="x", slot="top", page="http://x/u")),
        ("replay coverage --site a --site b", p.GetCoverage(sites=("a", "b"))),
        (
            "replay start --site a --reason why --request-id r",
            p.StartReplay(sites=("a",), reason="why", request_id="r"),
        ),
        (
            "replay start --node a --node b --missing --rate 50 --until-coverage 0.95 --detach",
            p.StartReplay(nodes=("a", "b"), missing=True, rate=50, until_coverage=0.95),
        ),
        ("replay start --all", p.StartReplay()),
        ("replay cancel replay/r-1 --reason why", p.CancelReplay(id="r-1", reason="why")),
    ],
)
def test_what_is_typed_is_what_is_sent(line: str, sent: msgspec.Struct, tmp_path: Path, invoke: Invoke) -> None:
    replies = {
        p.CreateSite: "SiteShow",
        p.GetShards: "ShardList",
        p.StagePin: "Plan",
        p.StageMove: "Plan",
        p.StageRebalance: "Plan",
        p.StageRepair: "Plan",
        p.StageCordon: "Plan",
        p.GetExplanation: "ServeExplanation",
        p.GetCoverage: "Coverage",
        p.StartReplay: "Replay",
        p.CancelReplay: "Replay",
    }
    with FakeNode({type(sent): lambda _: SAMPLES[replies[type(sent)]]}) as node:
        node.write(tmp_path)
        assert invoke(*line.split())[0] == 0
    assert node.seen == [sent]


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


def test_a_staged_plan_is_committed_by_its_id_and_a_stale_one_is_refused(tmp_path: Path, invoke: Invoke) -> None:
    stale = p.AdminRefusal(4, "E-STALE-PLAN", "made against placement 1, now 2", hint="make the plan again")
    handlers: Handlers = {p.GetPlan: lambda _: SAMPLES["Plan"], p.CommitPlan: lambda _: SAMPLES["Operation"]}
    with FakeNode(handlers) as node:
        node.write(tmp_path)
        assert invoke("plan", "commit", "p-1")[0] == 6, "nobody is here to be asked"
        code, out, _ = invoke("plan", "commit", "p-1", "--yes", "--reason", "why", "-o", "json")
        assert (code, json.loads(out)["kind"]) == (0, "Operation")
        assert p.CommitPlan(id="p-1", reason="why", request_id="p-1") in node.seen

        def refused(_: Any) -> Any:
            raise stale

        node.handlers[p.CommitPlan] = refused
        code, _, err = invoke("plan", "commit", "p-1", "--yes")
        assert (code, "make the plan again" in err) == (4, True)
        assert invoke("plan", "show", "p-1", "--exit-code")[0] == 13


def test_shard_wait_returns_when_the_shard_is_where_it_should_be(tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({p.GetShards: lambda _: SAMPLES["ShardList"]}) as node:
        node.write(tmp_path)
        assert invoke("shard", "wait", "10", "--on", "node-1")[0] == 0
        code, _, err = invoke("shard", "wait", "10", "--on", "node-2", "-t", "300ms")
        assert (code, "running on node-1" in err) == (9, True)
        assert invoke("shard", "wait", "9", "-t", "300ms")[0] == 9, "it has no owner"
        assert invoke("shard", "wait", "99")[0] == 2


@pytest.mark.parametrize(
    "line", ["shard rebalance --force capacity", "shard repair --kind odd", "node cordon a --force last-entity-node"]
)
def test_rules_and_kinds_that_do_not_exist_are_usage_errors(line: str, tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({}) as node:
        node.write(tmp_path)
        code, _, err = invoke(*line.split())
        assert (code, node.seen) == (2, [])
        assert "there is no" in err


def test_a_partial_answer_ends_with_twelve_and_names_who_is_missing(tmp_path: Path, invoke: Invoke) -> None:
    missing = (p.Missing(node="node-3", reason="no answer in 2 s", since="2026-11-29T13:58:40.001Z"),)
    meta = msgspec.structs.replace(META, missing=missing)
    with FakeNode({p.GetNodes: lambda _: SAMPLES["NodeList"]}, meta) as node:
        node.write(tmp_path)
        code, out, err = invoke("node", "list")
        assert code == 12
        assert "node-3" not in out
        assert "missing: node-3" in err
        code, out, err = invoke("node", "list", "-o", "json")
        assert (code, err) == (12, "")
        assert json.loads(out)["missing"][0]["node"] == "node-3"
        assert "missing: node-3" in invoke("node", "list", "-o", "jsonl")[2]  # lines of items have no envelope
        assert invoke("node", "list", "--allow-partial")[0] == 0
        assert json.loads(invoke("node", "list", "--allow-partial", "-o", "json")[1])["complete"] is False


# --- plan, then commit


def drain_node(final: str = "done", violations: tuple[str, ...] = (), changed: bool = True) -> Handlers:
    looks = iter([operation("running"), operation("running"), operation(final)])
    last = operation(final)
    return {
        p.StageDrain: lambda _: plan(violations=violations, changed=changed),
        p.CommitPlan: lambda _: operation("running"),
        p.GetOperation: lambda _: next(looks, last),
    }


def drain(invoke: Invoke, tmp_path: Path, handlers: Handlers, *flags: str) -> tuple[int, str, str, list[str]]:
    with FakeNode(handlers) as node:
        node.write(tmp_path)
        code, out, err = invoke("node", "drain", "node-2", *flags)
    return code, out, err, [type(message).__name__ for message in node.seen]


def test_yes_commits_what_was_shown_and_follows_to_the_end(tmp_path: Path, invoke: Invoke) -> None:
    code, out, err, seen = drain(invoke, tmp_path, drain_node(), "--yes", "-o", "json")
    assert code == 0
    assert seen[:2] == ["StageDrain", "CommitPlan"]
    assert json.loads(out)["result"] == {"shards_moved": 1, "messages_lost": 0}
    assert "shards: running" in err
    _, _, err, _ = drain(invoke, tmp_path, drain_node(), "--yes")
    assert "PLAN p-1  drain node-2 (placement 8812)" in err


@pytest.mark.parametrize(
    "flags",
    [
        ("-o", "csv", "--columns", "id,state"),
        ("--columns", "shard"),
        ("--dry-run", "--columns", "elapsed_s"),
        ("--sort", "shard"),
        ("--sort", "name:up"),
        ("--filter", "state=="),
        ("--filter", "elapsed_s>long"),
        ("--filter", "statsu=up"),
        ("--query", "phases["),
        ("--query", "lenght(phases)"),
        ("--limit", "-1"),
    ],
)
def test_flags_of_output_that_do_not_fit_are_refused_before_anything_is_sent(
    flags: tuple[str, ...], tmp_path: Path, invoke: Invoke
) -> None:
    code, out, _, seen = drain(invoke, tmp_path, drain_node(), "--yes", *flags)
    assert (code, out, seen) == (2, "", [])


def test_every_field_of_an_answer_can_be_named_before_it_is_there() -> None:
    for kind, reply in SAMPLES.items():
        for row in SHAPES[kind].rows(plain(reply)) if kind in SHAPES and kind != "Schema" else ():
            if kind in ("Health", "ServeIndexEntry"):
                continue
            refuse_unfit(Selection(columns=",".join(row), sort=next(iter(row))), kind)


def test_dry_run_prints_the_plan_and_changes_nothing(tmp_path: Path, invoke: Invoke) -> None:
    code, out, _, seen = drain(invoke, tmp_path, drain_node(), "--dry-run", "--yes", "-o", "json")
    assert (code, seen) == (0, ["StageDrain"])
    move = {"shard": 3, "from": "node-2", "to": "node-1", "entities": 4, "why": "drain", "state": "waiting"}
    assert json.loads(out)["moves"] == [move]


@pytest.mark.parametrize(
    ("over", "error", "hint"),
    [
        (
            {"result": {"interrupted_at": "shards", "phase": 4, "messages_lost": None}},
            "drain node-2 failed: its node went in phase shards; whether it took messages with it is not known here",
            "cluster check --messages",
        ),
        (
            {"result": {"interrupted_at": "leave", "phase": 9, "messages_lost": 0, "cause": "keep-majority"}},
            "drain node-2 failed: its node went in phase leave: keep-majority",
            "cluster check --messages",
        ),
        ({"verb": "restart", "result": {"reason": "n2 did not come back"}}, "n2 did not come back", "cluster health"),
        ({}, "drain node-2 failed: shards failed", "op show op-1"),
    ],
)
def test_what_failed_says_why_and_what_helps_wherever_it_is_met(
    over: dict[str, Any], error: str, hint: str, tmp_path: Path, invoke: Invoke
) -> None:
    found = operation("failed", **over)
    with FakeNode({p.GetOperation: lambda _: found, p.GetNodes: lambda _: SAMPLES["NodeList"]}) as node:
        node.write(tmp_path)
        for verb in ("watch", "wait"):
            code, out, err = invoke("op", verb, "op-1")
            assert (code, f"{error}\n" in err, f"hint: promovolvectl {hint}\n" in err) == (15, True, True), err
            assert ("unknown" in out) == ("messages_lost" in out and found.result["messages_lost"] is None)
        code, out, err = invoke("op", "wait", "op-1", "-o", "json")
        assert (code, err, json.loads(out)["result"]) == (15, "", found.result), "the document has it all"


def test_without_a_terminal_and_without_yes_nothing_happens(tmp_path: Path, invoke: Invoke) -> None:
    code, out, err, seen = drain(invoke, tmp_path, drain_node())
    assert (code, out, seen) == (6, "", ["StageDrain"])
    assert "PLAN p-1" in err
    assert "hint: promovolvectl node drain node-2 --yes" in err


class Typing(io.StringIO):
    """A terminal at which Ctrl-C is pressed before the line ends."""

    def isatty(self) -> bool:
        return True

    def readline(self, *_: Any) -> str:
        signal.raise_signal(signal.SIGINT)
        return "y\n"


def test_an_interrupt_at_the_question_ends_at_once_and_changes_nothing(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Typing())
    monkeypatch.setattr(terminal, "may_prompt", lambda *_: True)
    handler = signal.getsignal(signal.SIGINT)
    code, out, _, seen = drain(invoke, tmp_path, drain_node())
    assert (code, out, seen) == (130, "", ["StageDrain"])
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_plan_that_breaks_a_rule_is_refused_with_yes_too(tmp_path: Path, invoke: Invoke) -> None:
    code, _, err, seen = drain(invoke, tmp_path, drain_node(violations=("last entity node",)), "--yes")
    assert (code, seen) == (5, ["StageDrain"])
    assert "last entity node" in err


def test_what_already_holds_is_success_and_says_so(tmp_path: Path, invoke: Invoke) -> None:
    code, out, _, seen = drain(invoke, tmp_path, drain_node(changed=False), "-o", "json")
    assert (code, seen) == (0, ["StageDrain"])
    assert json.loads(out)["changed"] is False


def test_detach_returns_the_operation_at_once(tmp_path: Path, invoke: Invoke) -> None:
    code, out, _, seen = drain(invoke, tmp_path, drain_node(), "--yes", "--detach", "-o", "name")
    assert (code, out, seen) == (0, "op/op-1\n", ["StageDrain", "CommitPlan"])


def test_an_operation_that_failed_ends_with_fifteen(tmp_path: Path, invoke: Invoke) -> None:
    code, out, _, _ = drain(invoke, tmp_path, drain_node("failed"), "--yes", "-o", "json")
    assert (code, json.loads(out)["state"]) == (15, "failed")


def test_a_drain_that_is_under_way_is_followed_without_a_question(tmp_path: Path, invoke: Invoke) -> None:
    handlers = {**drain_node(), p.StageDrain: lambda _: plan(changed=False, operation="op-1", moves=())}
    code, out, err, seen = drain(invoke, tmp_path, handlers, "-o", "json")
    assert (code, json.loads(out)["id"], json.loads(out)["state"]) == (0, "op-1", "done")
    assert (seen[:2], "CommitPlan" in seen) == (["StageDrain", "GetOperation"], False)
    assert "under way as op-1" in err


def test_p63_who_follows_work_of_a_cluster_that_has_gone_is_told_and_does_not_wait_for_ever(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "SILENT_S", 0.5)
    node = FakeNode(drain_node())
    node.handlers[p.GetOperation] = lambda _: node.stop()
    with node:
        node.write(tmp_path)
        code, _, err = invoke("node", "drain", "node-1", "--yes", "-t", "1h")
    assert (code, "E-UNREACHABLE" in err) == (8, True), err


@pytest.mark.parametrize(("flags", "status", "commits"), [(("--yes",), 0, 2), ((), 6, 0)])
def test_yes_agrees_to_the_plan_that_replaces_a_stale_one(
    flags: tuple[str, ...], status: int, commits: int, tmp_path: Path, invoke: Invoke
) -> None:
    stale = p.AdminError(code="E-STALE-PLAN", exit=4, message="placement moved on")
    answers = iter([stale, operation()])
    code, _, err, seen = drain(invoke, tmp_path, {**drain_node(), p.CommitPlan: lambda _: next(answers)}, *flags)
    assert (code, seen.count("CommitPlan")) == (status, commits)
    assert err.count("PLAN p-1") == max(1, commits)


def test_yes_does_not_chase_a_placement_that_never_rests(tmp_path: Path, invoke: Invoke) -> None:
    stale = p.AdminError(code="E-STALE-PLAN", exit=4, message="placement moved on")
    code, _, _, seen = drain(invoke, tmp_path, {**drain_node(), p.CommitPlan: lambda _: stale}, "--yes")
    assert (code, seen.count("CommitPlan")) == (4, 5)


def test_force_names_the_rule_that_it_overrides(tmp_path: Path, invoke: Invoke) -> None:
    staged: list[Any] = []
    forced = plan(overridden=("node-2 is the last entity node",), moves=())
    handlers = {**drain_node(), p.StageDrain: lambda request: (staged.append(request), forced)[1]}
    code, _, err, _ = drain(invoke, tmp_path, handlers, "--force", "last-entity-node", "--yes")
    assert (code, staged[0].force, staged[0].overrides) == (0, True, ())
    assert "overrides: node-2 is the last entity node" in err
    assert drain(invoke, tmp_path, handlers, "--force", "last-of-role", "--yes")[0] == 0
    assert (staged[-1].force, staged[-1].overrides) == (False, ("last-of-role",))
    code, _, err, seen = drain(invoke, tmp_path, handlers, "--force", "everything", "--yes")
    assert (code, seen) == (2, [])
    assert "last-entity-node" in err


def test_undrain_says_whether_there_was_a_drain(tmp_path: Path, invoke: Invoke) -> None:
    told = p.Done(changed=True, message="op-1 is cancelled")
    with FakeNode({p.Undrain: lambda _: told}) as node:
        node.write(tmp_path)
        code, out, _ = invoke("node", "undrain", "node-2", "--reason", "later", "-o", "json")
        assert (code, json.loads(out)["changed"]) == (0, True)
        assert node.seen == [p.Undrain(node="node-2", reason="later")]


def test_what_holds_a_phase_up_is_said_soon_and_then_rarely() -> None:
    words = Words("op show op-1", 0.0)
    phase = p.OperationPhase(name="shards", state="running", elapsed_s=1, blockers=tuple("abcde"))
    held = operation("running", phases=(phase,))
    lines = ["  1 shards: running"]
    assert words.fresh(held, lines, 0.1, over=False) == lines
    spoken = [now for now in range(1, 300) if words.fresh(held, lines, now, over=False)]
    assert spoken[0] <= 10, "V1: silence while blocked"
    assert len(spoken) <= 12, "V14: a drain of five minutes is no flood"
    (line,) = words.fresh(held, lines, 400, over=False)
    assert "waits for a; b; c; and 2 more" in line


def test_a_timeout_bounds_the_waiting_and_names_the_operation(tmp_path: Path, invoke: Invoke) -> None:
    code, _, err, _ = drain(invoke, tmp_path, drain_node("running"), "--yes", "-t", "300ms", "-o", "json")
    document = json.loads(err.splitlines()[-1])
    assert (code, document["exit"], document["operation"]) == (9, 9, "op-1")
    assert document["hint"] == "promovolvectl op show op-1"


def stopping_node(told: Callable[[], list[Any]], **plan_flags: Any) -> Handlers:
    """A cluster whose members `told` lists."""
    return {
        **drain_node(**plan_flags),
        p.StopNode: lambda _: p.Done(changed=True, message="stopped"),
        p.GetCanStop: lambda _: p.CanStop(
            node="node-2", can_stop=True, reasons=(), shards=3, entities=9, counted=2, required=2, available=2
        ),
        p.GetNodes: lambda _: p.NodeList(items=tuple(sample_node(name) for name in told())),
    }


def test_stop_shows_the_drain_and_refuses_what_the_drain_would(tmp_path: Path, invoke: Invoke) -> None:
    def stops(node: FakeNode) -> list[msgspec.Struct]:
        return [message for message in node.seen if isinstance(message, p.StopNode)]

    with FakeNode(stopping_node(lambda: ["node-1"])) as node:
        node.write(tmp_path)
        code, out, _ = invoke("node", "stop", "node-2", "--yes", "-o", "json")
        assert (code, json.loads(out)["changed"]) == (0, True)
        assert stops(node)[-1] == p.StopNode(node="node-2", drain=True)
        told = invoke("node", "stop", "node-2", "--yes", "--ci", "github")[2]
        assert "::group::stop node-2\nnode-2 is told to stop" in told
        assert told.count("::group::") == told.count("::endgroup::")
        assert invoke("node", "stop", "node-2", "--no-drain", "-y")[0] == 0
        assert stops(node)[-1] == p.StopNode(node="node-2", drain=False)
        assert invoke("node", "stop", "node-2")[0] == 6
    with FakeNode(stopping_node(lambda: ["node-1"], violations=("last",))) as node:
        node.write(tmp_path)
        assert invoke("node", "stop", "node-2", "--yes")[0] == 5


def test_stop_returns_when_the_node_is_no_member_any_more(tmp_path: Path, invoke: Invoke) -> None:
    answers = iter([["node-1", "node-2"]] * 3)
    with FakeNode(stopping_node(lambda: next(answers, ["node-1"]))) as node:
        node.write(tmp_path)
        assert invoke("node", "stop", "node-2", "--yes")[0] == 0
        assert sum(isinstance(message, p.GetNodes) for message in node.seen) == 4
    with FakeNode(stopping_node(lambda: ["node-1", "node-2"])) as node:
        node.write(tmp_path)
        code, _, err = invoke("node", "stop", "node-2", "--yes", "-t", "400ms")
        assert code == 9
        assert "node-2 was told to stop, but it is still a member" in err


def test_stop_waits_for_the_process_that_this_machine_knows(tmp_path: Path, invoke: Invoke) -> None:
    """Its pid file names the running test: an end that doesn't come."""
    folder = tmp_path / "cluster"
    (folder / "run").mkdir(parents=True)
    layout.write(folder, layout.Layout(format=1, cluster="local", nodes=(), cluster_id=META.cluster_id))
    started = Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[19]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    layout.pid_file(folder, "node-2").write_text(f"{os.getpid()} {started} {boot}")
    with FakeNode(stopping_node(lambda: ["node-1"])) as node:
        node.write(tmp_path, data=str(folder))
        code, _, err = invoke("node", "stop", "node-2", "--yes", "-t", "400ms")
        assert code == 9
        assert "node-2 was told to stop, but its process still runs" in err
        layout.pid_file(folder, "node-2").write_text(f"{os.getpid()} {int(started) - 1} {boot}")
        assert invoke("node", "stop", "node-2", "--yes", "-t", "400ms")[0] == 0


# --- targeting


def test_what_is_lifted_is_sent_empty_and_not_together_with_what_is_set(tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({p.UpdateCampaign: lambda _: SAMPLES["CampaignShow"]}) as node:
        node.write(tmp_path)
        update = ("campaign", "update", "rail", "--yes")
        assert invoke(*update, "--place", "JP", "--place", "JP", "--lift", "sites", "--lift", "end")[0] == 0
        sent = node.seen[-1]
        assert isinstance(sent, p.UpdateCampaign)
        assert (sent.places, sent.sites, sent.end_at) == (("JP",), (), "")
        assert (sent.blocked_categories, sent.start_at, sent.unmatched) == (None, None, None), "these stay"
        seen = len(node.seen)
        for wrong in (("--place", "JP", "--lift", "places"), ("--lift", "budget"), ("--end", "tomorrow")):
            assert invoke(*update, *wrong)[0] == 2
        assert len(node.seen) == seen


# --- waiting and watching


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


# --- profiles, endpoints


def test_the_first_contact_binds_the_profile_and_another_cluster_is_refused(tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({p.GetNodes: lambda _: SAMPLES["NodeList"]}) as node:
        config = node.write(tmp_path)
        assert invoke("node", "list")[0] == 0
        assert load_file(config).profiles["local"].cluster_id == "c-0001"
        node.meta = msgspec.structs.replace(META, cluster_id="c-9999")
        code, out, err = invoke("node", "list")
    assert (code, out) == (14, "")
    assert "c-0001" in err
    assert "c-9999" in err


def test_endpoint_asks_that_node_and_no_other(tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({p.GetNodes: lambda _: SAMPLES["NodeList"]}) as node:
        node.write(tmp_path)
        assert invoke("node", "list", "--endpoint", node.address)[0] == 0
        code, _, err = invoke("node", "list", "--endpoint", "127.0.0.1:1")
    assert code == 8
    assert "127.0.0.1:1: connection refused" in err
    assert node.address not in err
    assert invoke("node", "list", "--endpoint", "nonsense")[0] == 2


@pytest.mark.parametrize(
    ("line", "request_type", "kind"), [read for read in READS if read[0].split()[1] == "show" and read[2] in DOMAIN]
)
def test_what_only_reads_does_not_say_that_it_changed_something(
    line: str, request_type: type, kind: str, tmp_path: Path, invoke: Invoke
) -> None:
    with FakeNode({request_type: lambda _: SAMPLES[kind]}) as node:
        node.write(tmp_path)
        assert "CHANGED" not in invoke(*line.split())[1]
        assert invoke(*line.split(), "--columns", "changed")[1].split() == ["CHANGED", "yes"]


def test_serve_explain_tries_a_request_id_then_a_site(tmp_path: Path, invoke: Invoke) -> None:
    def explain(request: p.GetExplanation) -> msgspec.Struct:
        if request.request_id:
            raise p.AdminRefusal(3, "E-NOT-FOUND", "no such request")
        return SAMPLES["ServeExplanation"]

    with FakeNode({p.GetExplanation: explain}) as node:
        node.write(tmp_path)
        code, out, _ = invoke("serve", "explain", "example")
        told = SAMPLES["ServeExplanation"]
        assert code == 0
        assert f"WHEN       {told.at}" in out
        assert f"WHY        {told.why}" in out
        assert node.seen[-1] == p.GetExplanation(site="example")
        assert invoke("serve", "explain")[0] == 2
        assert invoke("serve", "explain", "a", "--site", "b")[0] == 2


# --- the tree


def leaves() -> list[list[str]]:
    found = []
    for noun, about in NOUNS.items():
        app = app_of(noun)
        verbs = [info.name for info in app.registered_commands]
        found += [[noun, str(verb)] for verb in verbs] if about.verbs else [[noun]]
        for group in app.registered_groups:
            assert group.typer_instance is not None
            found += [[noun, str(group.name), str(info.name)] for info in group.typer_instance.registered_commands]
    return found


@pytest.mark.parametrize("words", leaves(), ids=" ".join)
def test_help_of_every_leaf_says_what_it_does_changes_and_ends_with(words: list[str], invoke: Invoke) -> None:
    code, out, err = invoke(*words, "--help")
    assert (code, err) == (0, "")
    assert "Examples:" in out
    assert out.count(f"    promovolvectl {words[0]}") + out.count("| promovolvectl") >= 2
    assert "Exit status:" in out
    assert "--output FORMAT" in out
    assert "\x1b" not in out
    assert invoke(*words, "-h")[1] == out


@pytest.mark.parametrize("words", leaves(), ids=" ".join)
def test_no_letter_means_two_things(words: list[str], invoke: Invoke) -> None:
    import re

    out = invoke(*words, "--help")[1]
    letters = re.findall(r"^  (-\w),", out, re.MULTILINE)
    assert sorted(letters) == sorted({*letters})
    assert set(letters) <= {"-o", "-p", "-t", "-q", "-v", "-y", "-h", "-w", "-f"}


# --- restarts and stops of a whole cluster


def restart_handlers(*looks: Any, **flags: Any) -> Handlers:
    """`looks` is what the operation says, one after the other."""
    seen = iter(looks)
    staged = plan(verb="restart", target="cluster", **flags)
    return {
        p.GetNodes: lambda _: SAMPLES["NodeList"],
        p.StageRestart: lambda _: staged,
        p.GetPlan: lambda _: staged,
        p.CommitPlan: lambda _: restarting("node-1", ""),
        p.GetOperation: lambda _: next(seen),
    }


def restarting(name: str, detail: str, state: str = "running") -> Any:
    phase = p.OperationPhase(name=name, state="done" if state == "done" else "running", elapsed_s=1, detail=detail)
    return operation(state, verb="restart", target="cluster", phases=(phase,), result={})


def test_p66_a_rolling_restart_starts_what_has_ended_here_and_follows_to_the_end(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(processes, "start", lambda _folder, name: started.append(name))
    runs = iter([object(), None, None])
    monkeypatch.setattr(processes, "running", lambda _folder, _name: next(runs))
    looks = (*(restarting("node-1", "away") for _ in range(4)), restarting("node-1", "", "done"))
    with FakeNode(restart_handlers(*looks)) as node:
        node.write(tmp_path, data=str(tmp_path))
        monkeypatch.setattr(layout, "read", lambda _folder: folder_of("node-1", node))
        code, _, err = invoke("cluster", "restart", "--rolling", "--yes")
    assert code == 0, err
    assert started == ["node-1"], "once, when its process has ended"


def test_a_process_that_was_started_again_is_not_asked_for_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "start", lambda *_: None)
    monkeypatch.setattr(layout, "read", lambda _folder: folder_of("node-1", FakeNode({})))
    said: list[str] = []
    asks = ("node/node-1: its process must be started again, by its supervisor or by an operator",)
    away = restarting("node-1", "away")
    away = msgspec.structs.replace(away, phases=(msgspec.structs.replace(away.phases[0], blockers=asks),))
    told = rolling.Supervisor(tmp_path, "c-0001", said.append).tend(away)
    assert (said, told.phases[0].blockers) == (
        ["  started node-1 again"],
        ("node/node-1: its process is started and not ready yet",),
    )


def ours(node: FakeNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster is this machine's, and all its processes run."""
    node.write(tmp_path, data=str(tmp_path))
    monkeypatch.setattr(layout, "read", lambda _folder: folder_of("node-1", node))
    monkeypatch.setattr(processes, "running", lambda _folder, _name: object())


@pytest.mark.parametrize(
    ("verb", "rest"),
    [
        ("cluster restart", ("--rolling", "--yes")),
        ("node restart", ("node-1", "--yes")),
        ("plan commit", ("p-1", "--yes")),
    ],
)
def test_a_restart_of_processes_that_nobody_else_starts_is_not_detached(
    verb: str, rest: tuple[str, ...], tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeNode(restart_handlers()) as node:
        ours(node, tmp_path, monkeypatch)
        code, out, err = invoke(*verb.split(), *rest, "--detach")
        assert (code, out) == (5, ""), err
        assert {type(seen) for seen in node.seen} <= {p.GetNodes, p.GetPlan}, "before anything is staged or committed"
        assert f"hint: promovolvectl {verb} {' '.join(rest)}\n" in err
        monkeypatch.setattr(layout, "read", lambda _folder: None)
        assert invoke(*verb.split(), *rest, "--detach")[0] == 0, "elsewhere a supervisor starts them"


def test_who_stops_waiting_for_a_restart_of_this_machine_is_told_what_goes_on_with_it(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    restart = "promovolvectl cluster restart --rolling --yes"

    def interrupted() -> Any:
        yield restarting("node-1", "away")
        raise KeyboardInterrupt

    looks = interrupted()
    with FakeNode({**restart_handlers(), p.GetOperation: lambda _: restarting("node-1", "away")}) as node:
        ours(node, tmp_path, monkeypatch)
        with monkeypatch.context() as patched:
            patched.setattr(follow, "_phase_lines", lambda _operation: next(looks) and [])
            code, _, err = invoke("cluster", "restart", "--rolling", "--yes")
        assert (code, f"hint: {restart} goes on with it" in err, "stay down" in err) == (130, True, True), err
        for verb in ("watch", "wait"):
            code, _, err = invoke("op", verb, "op-1", "-t", "100ms")
            assert code == 9
            assert f"are started again by: {restart}\n" in err
            assert f"hint: {restart}\n" in err


def folder_of(name: str, node: FakeNode) -> Any:
    cluster_id = node.meta.cluster_id
    return SimpleNamespace(cluster_id=cluster_id, node=lambda wanted: wanted if wanted == name else None)


def test_a_restart_of_all_at_once_is_not_what_this_does(invoke: Invoke, tmp_path: Path) -> None:
    with FakeNode(restart_handlers()) as node:
        node.write(tmp_path)
        code, _, err = invoke("cluster", "restart", "--yes")
    assert (code, node.seen) == (2, [])
    assert "--rolling" in err


def test_p68_a_restart_that_is_under_way_is_followed(invoke: Invoke, tmp_path: Path) -> None:
    done = restarting("node-1", "", "done")
    with FakeNode(restart_handlers(done, done, changed=False, operation="op-1", moves=())) as node:
        node.write(tmp_path)
        code, out, err = invoke("cluster", "restart", "--rolling", "-o", "json")
    assert (code, json.loads(out)["id"]) == (0, "op-1")
    assert "under way as op-1; this goes on with it" in err


def test_p64_a_shutdown_freezes_first_tells_the_asked_node_last_and_waits_for_silence(
    invoke: Invoke, tmp_path: Path
) -> None:
    told: list[str] = []
    node = FakeNode({})
    rows = tuple(sample_node(name) for name in ("node-2", node.meta.observed_by, "node-3"))

    def nodes(_: Any) -> Any:
        if len([t for t in told if t != "freeze"]) == len(rows):
            return p.AdminError(code="E-UNREACHABLE", exit=8, message="nobody is here")
        return p.NodeList(items=rows)

    node.handlers |= {
        p.GetNodes: nodes,
        p.FreezePlacement: lambda _: (told.append("freeze"), p.Done(changed=True))[1],
        p.StopNode: lambda request: (told.append(request.node), p.Done(changed=True))[1],
    }
    with node:
        node.write(tmp_path)
        code, out, _ = invoke("cluster", "shutdown", "--yes", "-o", "json")
    assert (code, sorted(json.loads(out)["stopped"])) == (0, sorted(row.name for row in rows))
    assert told[0] == "freeze"
    assert told[-1] == node.meta.observed_by
