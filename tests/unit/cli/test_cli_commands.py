"""Commands as a person or a script gives them, against a node of real sockets."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from conftest import Invoke
from fake_server import META, FakeNode
from samples import SAMPLES

from node.admin import protocol as p
from node.admin.protocol import diagnosis as d
from node.admin.protocol import explaining
from node.admin.protocol.facts import GetFacts, GetFactStatus, GetLedger
from promovolvectl.cli.nouns import NOUNS, app_of
from promovolvectl.cli.outlook import refuse_unfit
from promovolvectl.cli.render import FORMATS, plain
from promovolvectl.cli.select import Selection
from promovolvectl.cli.shapes import SHAPES
from promovolvectl.client.profiles import load_file

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
    ("site delete example.com --dry-run", p.StageOrder, "Plan"),
    ("site update example.com --floor-cpm 0.8 --block-domain a.example", p.UpdateSite, "SiteShow"),
    ("site update example.com --timezone Asia/Tokyo --margin 0.2", p.UpdateSite, "SiteShow"),
    ("site update example.com --audience JP --audience US", p.UpdateSite, "SiteShow"),
    ("site update example.com --clear-audience", p.UpdateSite, "SiteShow"),
    ("site update example.com --pace --no-auto-approve", p.UpdateSite, "SiteShow"),
    ("site update example.com --slot-floor top:1.20 --clear-slot-floor side", p.UpdateSite, "SiteShow"),
    ("creative revoke cr-1 --dry-run", p.StageOrder, "Plan"),
    ("creative reject cr-1 --site example.com --dry-run", p.StageOrder, "Plan"),
    ("campaign update rail --max-cpm 3.5 --daily-budget 80", p.UpdateCampaign, "CampaignShow"),
    ("campaign update rail --place JP --end 2026-12-24T00:00:00Z --lift sites", p.UpdateCampaign, "CampaignShow"),
    ("campaign update rail --audience JP --lift places", p.UpdateCampaign, "CampaignShow"),
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


def test_a_column_that_there_is_not_is_refused_in_every_format(tmp_path: Path, invoke: Invoke) -> None:
    """`-o json` shows no columns, and took any name for one with 0."""
    with FakeNode({p.GetNodes: lambda _: SAMPLES["NodeList"], p.GetNode: lambda _: SAMPLES["NodeShow"]}) as node:
        node.write(tmp_path)
        for line in (("node", "list"), ("node", "show", "node-1"), ("config", "view"), ("schema", "Plan")):
            for form in FORMATS:
                code, out, err = invoke(*line, "--columns", "bogus", "-o", form)
                assert (code, out, "there is no field 'bogus'" in err) == (2, "", True), (line, form, err)
        assert invoke("node", "list", "--columns", "name,pid", "-o", "json")[0] == 0


def test_every_field_of_an_answer_can_be_named_before_it_is_there() -> None:
    for kind, reply in SAMPLES.items():
        for row in SHAPES[kind].rows(plain(reply)) if kind in SHAPES and kind != "Schema" else ():
            if kind in ("Health", "ServeIndexEntry"):
                continue
            refuse_unfit(Selection(columns=",".join(row), sort=next(iter(row))), kind)


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


@pytest.mark.parametrize("site", ["", "silent"])
def test_serve_explain_says_who_is_silent_and_not_that_nobody_remembers(
    site: str, tmp_path: Path, invoke: Invoke
) -> None:
    def explain(request: p.GetExplanation) -> msgspec.Struct:
        if request.site and not site:
            raise p.AdminRefusal(3, "E-NOT-FOUND", f"there is no site {request.site!r}")
        raise p.AdminRefusal(12, "E-SILENT", "n4 did not answer")

    with FakeNode({p.GetExplanation: explain}) as node:
        node.write(tmp_path)
        code, _, err = invoke("serve", "explain", "example")
        assert (code, "n4 did not answer" in err) == (12, True)


def test_serve_explain_tries_a_request_id_and_a_site(tmp_path: Path, invoke: Invoke) -> None:
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
        assert p.GetExplanation(site="example") in node.seen
        assert invoke("serve", "explain")[0] == 2
        assert invoke("serve", "explain", "a", "--site", "b")[0] == 2


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
