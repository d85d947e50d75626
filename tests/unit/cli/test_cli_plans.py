"""Plan, then commit: what is shown, what is asked, what is sent, and how the operation is followed to its end."""

from __future__ import annotations

import io
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Invoke
from drain_answers import Handlers, drain_node
from fake_server import FakeNode
from samples import SAMPLES, operation, plan

from node.admin import protocol as p
from promovolvectl.cli import follow, terminal
from promovolvectl.cli.follow import Words


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


@pytest.mark.parametrize(
    "line", ["shard rebalance --force capacity", "shard repair --kind odd", "node cordon a --force last-entity-node"]
)
def test_rules_and_kinds_that_do_not_exist_are_usage_errors(line: str, tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({}) as node:
        node.write(tmp_path)
        code, _, err = invoke(*line.split())
        assert (code, node.seen) == (2, [])
        assert "there is no" in err


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


def test_dry_run_prints_the_plan_and_changes_nothing(tmp_path: Path, invoke: Invoke) -> None:
    code, out, _, seen = drain(invoke, tmp_path, drain_node(), "--dry-run", "--yes", "-o", "json")
    assert (code, seen) == (0, ["StageDrain"])
    move = {"shard": 3, "from": "node-2", "to": "node-1", "entities": 4, "why": "drain", "state": "waiting"}
    assert json.loads(out)["moves"] == [{**move, "keys": []}]


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
        ({"verb": "restart", "result": {"reason": "n2 did not come back"}}, "n2 did not come back", "cluster status"),
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
