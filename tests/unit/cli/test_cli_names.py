"""What `-o name` prints is accepted wherever a name of that kind is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from conftest import Invoke
from fake_server import FakeNode
from samples import SAMPLES

from node.admin import protocol as p
from node.engine.entities import entity_types
from promovolvectl.cli.names import TYPES, shard_number
from promovolvectl.cli.tree import root

# By what help calls them: the kind that `-o name` puts before such a name.
KINDS = {
    "NODE": "node", "SITE": "site", "ADVERTISER": "advertiser", "CAMPAIGN": "campaign", "CREATIVE": "creative",
    "SHARD": "shard", "SHARD…": "shard", "KEY": "key", "MAP": "map", "[SITE…]": "site",
}  # fmt: skip


def taken(command: click.Command, words: tuple[str, ...] = ()) -> list[tuple[str, click.Parameter]]:
    """All arguments and flags of all commands that take names of these kinds."""
    if hasattr(command, "list_commands"):
        below = [(name, command.get_command(None, name)) for name in command.list_commands(None)]
        return [found for name, each in below for found in taken(each, (*words, name))]
    return [(" ".join(words), param) for param in command.params if param.metavar in KINDS]


def test_every_argument_and_flag_of_a_kind_takes_its_names() -> None:
    found = taken(root())
    assert {param.metavar for _, param in found} >= set(KINDS)
    for words, param in found:
        kind = KINDS[param.metavar or ""]
        name = "17" if kind == "shard" else "a|b"
        many = param.nargs != 1 or param.multiple
        context = click.Context(click.Command(words))
        spelled = [param.process_value(context, (text,) if many else text) for text in (f"{kind}/{name}", name)]
        value = shard_number(name) if kind == "shard" else name
        assert [list(each) if many else each for each in spelled] == [[value] if many else value] * 2, (words, param)


@pytest.mark.parametrize(
    ("line", "sent", "kind"),
    [
        ("op show op/op-1", p.GetOperation(id="op-1"), "Operation"),
        ("op wait op/op-1", p.GetOperation(id="op-1"), "Operation"),
        ("op cancel op/op-1 --reason why", p.CancelOperation(id="op-1", reason="why"), "Operation"),
        ("plan show plan/p-1", p.GetPlan(id="p-1"), "Plan"),
        ("replay show replay/r-1", p.GetReplay(id="r-1"), "Replay"),
        ("deadletter show deadletter/node-1.7.17", p.GetDeadLetter(id="node-1.7.17"), "DeadLetterShow"),
        ("entity show site/blog/a", p.GetEntity(kind="site", id="blog/a"), "EntityShow"),
        ("entity show site blog", p.GetEntity(kind="site", id="blog"), "EntityShow"),
        ("shard where site/blog", p.GetShardOf(kind="site", id="blog", look=True), "ShardPlace"),
        ("serve explain site/a|top", p.GetExplanation(site="a", slot="top"), "ServeExplanation"),
        ("campaign list --advertiser advertiser/ad", p.GetCampaigns(advertiser="ad"), "CampaignList"),
        ("replay coverage site/a", p.GetCoverage(sites=("a",)), "Coverage"),
    ],
)
def test_names_are_sent_bare(line: str, sent: msgspec.Struct, kind: str, tmp_path: Path, invoke: Invoke) -> None:
    sample = SAMPLES[kind]
    if kind == "Operation":
        sample = msgspec.structs.replace(sample, state="done")
    with FakeNode({type(sent): lambda _: sample}) as node:
        node.write(tmp_path)
        assert invoke(*line.split())[0] == 0
    assert node.seen[0] == sent


@pytest.mark.parametrize(
    ("line", "sent", "kind"),
    [
        ("page list --site a", p.GetPages(site="a"), "PageList"),
        ("-o json node show --node=node/n-1", p.GetNode(node="n-1"), "NodeShow"),
        ("serve explain --request r-1", p.GetExplanation(request_id="r-1"), "ServeExplanation"),
        ("shard pin --shard 3 --to n --shard=4 --dry-run", p.StagePin(shards=(3, 4), to="n"), "Plan"),
        ("replay start a --site b --detach", p.StartReplay(sites=("a", "b")), "Replay"),
        ("serveindex coverage a b", p.GetCoverage(sites=("a", "b")), "Coverage"),
    ],
)
def test_a_name_is_taken_by_a_flag_or_as_the_argument(
    line: str, sent: msgspec.Struct, kind: str, tmp_path: Path, invoke: Invoke
) -> None:
    with FakeNode({type(sent): lambda _: SAMPLES[kind]}) as node:
        node.write(tmp_path)
        assert invoke(*line.split())[0] == 0
    assert node.seen[0] == sent


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("page list --site", "Missing argument 'SITE'"),
        ("page list a --site b", "unexpected extra argument"),
        ("entity show --id a", "No such option: --id"),
    ],
)
def test_a_flag_that_is_no_name_of_the_only_argument_is_a_usage_error(line: str, said: str, invoke: Invoke) -> None:
    code, out, err = invoke(*line.split())
    assert (code, out, said in err) == (2, "", True), err


def test_the_types_that_are_named_are_those_of_the_product() -> None:
    anything: Any = None
    assert sorted(each.kind for each in entity_types(anything, anything, anything)) == sorted(TYPES)


@pytest.mark.parametrize("line", ["explain error/E-USAGE", "schema schema/ClusterStatus"])
def test_what_is_read_without_a_cluster_too(line: str, invoke: Invoke) -> None:
    assert invoke(*line.split())[0] == 0


@pytest.mark.parametrize("line", ["shard show node/17", "shard show -- -1", "shard show 1.5", "entity show site"])
def test_anything_else_is_a_usage_error(line: str, tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({}) as node:
        node.write(tmp_path)
        status, out, err = invoke(*line.split())
    assert (status, out, bool(err), node.seen) == (2, "", True, [])
