"""Every verb that changes the cluster: what it is asked before, what `--dry-run` leaves undone, what goes on record."""

from __future__ import annotations

import io
import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import Invoke
from fake_server import FakeNode
from samples import SAMPLES, operation, plan

from node.admin import protocol as p
from node.admin.permits import PERMITS, Use, changing_words, ordered
from promovolvectl.cli import terminal
from promovolvectl.cli.walk import Leaf, leaves

# `down` stops processes of this machine, as 'node start' starts them.
CHANGING = [leaf for leaf in leaves() if leaf.name in changing_words() and leaf.name != "down"]
# Its rows are sent before it is staged, and kept nowhere.
STAGED_AT_ONCE = [leaf for leaf in CHANGING if leaf.name != "serveindex load"]
FLAGS = ("--dry-run", "--plan", "--reason", "--request-id", "--timeout")
# What is typed for a metavar. Names of things that the sample answers know.
WORDS = {
    "SHARD": "17", "SHARD…": "17", "NAME:WxH": "top:728x90", "WxH": "728x90", "AMOUNT": "1.00", "URL": "https://a.example/",
    "TYPE": "site", "FILE|-": "-", "DRILL": "fence",
}  # fmt: skip
OWN = {
    "cluster restart": ("--rolling",),
    "site update": ("--floor-cpm", "0.80"),
    "campaign update": ("--max-cpm", "2.00"),
    "advertiser update": ("--daily-budget", "2.00"),
    "replay start": ("--all",),
    "auth rotate": ("--step", "use"),
    "node log-level": ("node.sharding", "debug"),
}
DOMAIN_HARM = {
    "site suspend": p.UpdateSite(site="x", suspended=True, reason="why"),
    "advertiser suspend": p.SetAdvertiserStatus(advertiser="x", status="suspended", reason="why"),
    "creative revoke": p.RevokeCreative(creative="x", reason="why"),
    "creative reject": p.RevokeCreative(creative="x", reject=True, reason="why"),
}


def line_of(leaf: Leaf) -> list[str]:
    """A command line that the leaf takes."""
    words = [*leaf.words]
    for each in leaf.arguments:
        if each.required or each.metavar == "[ID]":
            words.append(WORDS.get(each.metavar, "x"))
    own = OWN.get(leaf.name, ())
    for each in leaf.flags:
        if each.required and each.spelled[-1] not in own:
            words += [each.spelled[-1], WORDS.get(each.metavar, "x")]
    return [*words, *own]


@pytest.fixture
def answering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNode]:
    """A node that answers everything; whoever asks stands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    row = b'{"map": "serve-00", "key": "a|b", "value": "", "version": "1/1/n"}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(row)))
    by_type = {type(sample): sample for sample in SAMPLES.values() if isinstance(sample, msgspec.Struct)}
    by_type |= {p.Operation: operation("done"), p.Plan: plan(), p.Done: p.Done(changed=True)}
    handlers = {
        request: (lambda _, reply=reply: by_type[reply]) for request, reply in p.REPLIES.items() if reply in by_type
    }
    del handlers[p.GetShardOf]  # the client's own question before a change
    with FakeNode(handlers) as node:
        node.write(tmp_path)
        yield node


@pytest.mark.parametrize("leaf", CHANGING, ids=lambda leaf: leaf.name)
def test_every_verb_that_changes_something_has_the_flags_of_a_change(leaf: Leaf) -> None:
    assert not [flag for flag in FLAGS if not leaf.takes(flag)]


@pytest.mark.parametrize("leaf", STAGED_AT_ONCE, ids=lambda leaf: leaf.name)
def test_check_e1_a_dry_run_changes_nothing_whatever_else_is_said(
    leaf: Leaf, answering: FakeNode, invoke: Invoke, tmp_path: Path
) -> None:
    before = {path.name for path in tmp_path.iterdir()}
    confirmed = ("--confirm", "x") if leaf.takes("--confirm") else ()
    code, out, err = invoke(*line_of(leaf), "--plan", "--yes", *confirmed, "-o", "json")
    assert (code, json.loads(out or "{}").get("kind")) == (0, "Plan"), err
    assert answering.seen
    assert not [message for message in answering.seen if PERMITS[type(message)].use is Use.CHANGE]
    assert {path.name for path in tmp_path.iterdir()} == before


def test_a_dry_run_shows_what_would_be_refused_and_ends_well(answering: FakeNode, invoke: Invoke) -> None:
    """D1: it was asked for a plan and prints it; a script reads its violations."""
    broken = plan(violations=("minimum owners: nobody would take shards",))
    answering.handlers |= {request: lambda _: broken for request, reply in p.REPLIES.items() if reply is p.Plan}
    told = set()
    for leaf in STAGED_AT_ONCE:
        code, out, err = invoke(*line_of(leaf), "--dry-run", "-o", "json")
        found = json.loads(out)
        assert (code, found["kind"]) == (0, "Plan"), (leaf.name, err)
        told |= {leaf.name} if found["violations"] else set()
    assert len(told) > 40
    assert {"cluster restart", "node cordon", "node stop", "shard move", "plan commit", "campaign pause"} <= told


@pytest.mark.parametrize(("command", "order"), DOMAIN_HARM.items(), ids=lambda found: str(found))
def test_what_takes_something_from_serving_is_shown_and_asked_about(
    command: str, order: msgspec.Struct, answering: FakeNode, invoke: Invoke
) -> None:
    words = (*command.split(), "x", "--reason", "why")
    code, out, err = invoke(*words)
    assert (code, out) == (6, "")
    assert f"hint: promovolvectl {command} x --reason why --yes" in err
    assert [type(message) for message in answering.seen] == [p.StageOrder]
    assert isinstance(answering.seen[0], p.StageOrder)
    assert (ordered(answering.seen[0]), answering.seen[0].reason) == (order, "why")
    code, out, _ = invoke(*words, "--yes", "--request-id", "r-7", "-o", "json")
    assert (code, json.loads(out)["kind"]) == (0, "Operation")
    assert answering.seen[-1] == p.CommitPlan(id="p-1", reason="why", request_id="r-7")


def test_what_is_lost_for_good_wants_its_name_and_yes_does_not_say_it(
    answering: FakeNode, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("campaign", "delete", "rail", "--yes")
    code, _, err = invoke(*words)
    assert (code, "hint: promovolvectl campaign delete rail --yes --confirm rail" in err) == (6, True)
    assert invoke(*words, "--confirm", "other")[0] == 6
    assert {type(message) for message in answering.seen} == {p.StageOrder}
    assert invoke(*words, "--confirm", "rail")[0] == 0
    monkeypatch.setattr(terminal, "may_prompt", lambda *_: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO("rail\n"))
    assert invoke("campaign", "delete", "rail")[0] == 0
    assert [type(message).__name__ for message in answering.seen].count("CommitPlan") == 2


def test_what_is_undone_as_easily_is_done_at_once_and_on_record(answering: FakeNode, invoke: Invoke) -> None:
    given = ("--reason", "why", "--request-id", "r")
    assert invoke("campaign", "pause", "rail", *given)[0] == 0
    assert invoke("site", "resume", "x", *given)[0] == 0
    assert invoke("op", "cancel", "op-1", *given)[0] == 0
    record: dict[str, Any] = {"reason": "why", "request_id": "r"}
    assert answering.seen == [
        p.SetCampaignStatus(campaign="rail", status="paused", **record),
        p.UpdateSite(site="x", suspended=False, **record),
        p.CancelOperation(id="op-1", **record),
    ]


def test_an_update_says_what_is_to_change(answering: FakeNode, invoke: Invoke) -> None:
    for noun in ("site", "campaign", "advertiser"):
        assert invoke(noun, "update", "x", "--reason", "why")[0] == 2
    assert answering.seen == []


def test_the_line_to_repeat_is_the_line_that_was_typed(answering: FakeNode, invoke: Invoke) -> None:
    """With every flag where it stood: without a reason, a deadline or an end it would be another order."""
    asked = set()
    for leaf in STAGED_AT_ONCE:
        typed = ["-o", "json", *line_of(leaf), "--reason", "it's over", "-t", "9s"]
        code, _, err = invoke(*typed)
        if code != 6:
            continue
        hint = json.loads(err.splitlines()[-1])["hint"]
        more = ["--confirm", "x"] if leaf.takes("--confirm") else ["--yes"]
        assert hint == shlex.join(["promovolvectl", *typed, *more]), leaf.name
        asked.add(leaf.name)
    assert len(asked) > 30
    assert {"auth key create", "auth rotate", "node stop", "cluster restart", "serveindex remove"} <= asked


def test_what_is_added_to_a_line_stands_before_what_are_arguments_only(answering: FakeNode, invoke: Invoke) -> None:
    code, _, err = invoke("node", "drain", "-q", "--", "n 1")
    assert (code, "hint: promovolvectl node drain -q --yes -- 'n 1'" in err) == (6, True), err
