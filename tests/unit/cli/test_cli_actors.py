"""`entity` and `deadletter`: what is asked of the node, what is asked of the person, and how it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Invoke
from fake_server import FakeNode
from samples import operation, plan

from node.admin import protocol as p

LETTER = "node-1.7.17"


def node_of(staged: p.Plan, done: p.Operation | None = None) -> FakeNode:
    return FakeNode(
        {
            p.StageEntity: lambda request: staged,
            p.StageDeadLetters: lambda request: staged,
            p.CommitPlan: lambda request: done or operation("done", phases=()),
        }
    )


@pytest.mark.parametrize(
    ("words", "verb"),
    [
        ("entity restart site example.com", "restart"),
        ("entity passivate site example.com", "passivate"),
        ("entity quarantine release site example.com", "release"),
    ],
)
def test_a_change_to_an_entity_is_shown_and_needs_consent(
    words: str, verb: str, tmp_path: Path, invoke: Invoke
) -> None:
    with node_of(plan(verb=verb)) as node:
        node.write(tmp_path)
        code, _, err = invoke(*words.split())
        assert code == 6
        assert f"promovolvectl {words} --yes" in err
        assert [type(request) for request in node.seen] == [p.StageEntity]
        assert invoke(*words.split(), "--dry-run")[0] == 0
        assert invoke(*words.split(), "--yes", "--reason", "why")[0] == 0
        assert node.seen[2:] == [
            p.StageEntity(verb=verb, kind="site", id="example.com"),
            p.CommitPlan(id="p-1", reason="why", request_id="p-1"),
        ]


def test_what_breaks_a_rule_is_refused_with_yes_too(tmp_path: Path, invoke: Invoke) -> None:
    with node_of(plan(verb="restart", violations=("site example.com is quarantined: release it",))) as node:
        node.write(tmp_path)
        code, _, err = invoke("entity", "restart", "site", "example.com", "--yes")
        assert (code, p.CommitPlan in {type(request) for request in node.seen}) == (5, False)
        assert "release it" in err


def test_replay_takes_consent_and_discard_the_name_of_what_is_lost(tmp_path: Path, invoke: Invoke) -> None:
    with node_of(plan(verb="discard")) as node:
        node.write(tmp_path)
        assert invoke("deadletter", "replay", LETTER)[0] == 6
        assert invoke("deadletter", "replay", LETTER, "--yes")[0] == 0
        commits = len([request for request in node.seen if isinstance(request, p.CommitPlan)])
        code, _, err = invoke("deadletter", "discard", LETTER, "--yes")
        assert code == 6, "consent is not enough for what is lost for good"
        assert f"--confirm {LETTER}" in err
        assert invoke("deadletter", "discard", LETTER, "--confirm", "node-1.7.18")[0] == 6
        assert invoke("deadletter", "discard", LETTER, "--dry-run")[0] == 0
        assert len([request for request in node.seen if isinstance(request, p.CommitPlan)]) == commits
        assert invoke("deadletter", "discard", LETTER, "--confirm", LETTER)[0] == 0
        assert len([request for request in node.seen if isinstance(request, p.CommitPlan)]) == commits + 1


def test_letters_that_were_gone_make_it_a_failure(tmp_path: Path, invoke: Invoke) -> None:
    gone = operation("failed", phases=(), result={"replayed_count": 0, "missed_count": 1})
    with node_of(plan(verb="replay"), gone) as node:
        node.write(tmp_path)
        code, out, _ = invoke("deadletter", "replay", LETTER, "--yes", "-o", "json", "--query", "result.missed_count")
        assert (code, out.strip()) == (15, "1")


@pytest.mark.parametrize(
    ("words", "request_", "reply"),
    [
        (
            "entity list --node n1 --type site --state backoff --per-node 9",
            p.GetEntities(node="n1", kind="site", state="backoff", limit=9),
            p.EntityList(items=(), total=0),
        ),
        ("entity quarantine list --type site", p.GetQuarantine(kind="site"), p.QuarantineList(items=())),
        ("entity quarantine show site a", p.GetQuarantine(kind="site", id="a"), p.QuarantineList(items=())),
        (
            "deadletter list --reason failed --type ads.x",
            p.GetDeadLetters(reason="failed", message_type="ads.x"),
            p.DeadLetterList(items=(), total=0),
        ),
    ],
)
def test_filters_are_applied_at_the_nodes(
    words: str, request_: Any, reply: Any, tmp_path: Path, invoke: Invoke
) -> None:
    with FakeNode({type(request_): lambda _: reply}) as node:
        node.write(tmp_path)
        assert invoke(*words.split())[0] == 0
        assert node.seen == [request_]
