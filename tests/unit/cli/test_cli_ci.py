"""`--ci github`: what a job is told, and that stdout and statuses stay as they are."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from conftest import Invoke
from fake_server import META, FakeNode
from samples import SAMPLES, operation, plan, status

from node.admin import protocol as p
from promovolvectl.cli import ci


def test_annotations_can_not_be_broken_by_what_they_quote() -> None:
    assert ci.annotation("error", "a: b, c", "50 %\nsecond") == "::error title=a%3A b%2C c::50 %25%0Asecond"
    assert "\x1b" not in ci.annotation("error", "x", "\x1b[31m")
    assert ci.table("K", [], ["A|B"], [["<b>\x1b", "x|y"]]).splitlines()[2] == "| A\\|B |"
    assert "&lt;b>\\x1b | x\\|y" in ci.table("K", [], ["A", "B"], [["<b>\x1b", "x|y"]])


def test_a_failure_is_an_annotation_and_an_error(invoke: Invoke) -> None:
    code, out, err = invoke("explain", "E-NONE", "--ci", "github")
    assert (code, out) == (3, "")
    assert err.splitlines()[0].startswith("::error title=E-NOT-FOUND::there is no error code 'E-NONE'.")
    assert err.splitlines()[1].startswith("error: ")
    assert invoke("explain", "E-NONE", "--ci", "github", "-o", "json")[2].startswith('{"kind": "Error"')
    assert invoke("explain", "--ci", "gitlab")[0] == 2


def test_phases_are_groups_and_the_answer_is_in_the_summary(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    looks = iter([operation("running"), operation("done")])
    handlers = {
        p.StageDrain: lambda _: plan(),
        p.CommitPlan: lambda _: operation("running"),
        p.GetOperation: lambda _: next(looks),
    }
    with FakeNode(handlers) as node:
        node.write(tmp_path)
        monkeypatch.setenv("PROMOVOLVECTL_CI", "github")
        code, out, err = invoke("node", "drain", "node-2", "--yes")
    assert code == 0
    assert "::" not in out
    assert err.count("::group::") == err.count("::endgroup::") >= 1
    heading, above = "### Operation\n\n", "- OPERATION op-1  drain node-2  done"
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith(heading + above)
    assert "\n\n| NAME | STATE |" in summary


def test_an_answer_without_rows_is_in_the_summary_by_what_stands_above_them(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    found = msgspec.structs.replace(SAMPLES["CanStop"], node="node-1", can_stop=True, reasons=())
    with FakeNode({p.GetCanStop: lambda _: found}) as node:
        node.write(tmp_path)
        assert invoke("node", "can-stop", "node-1", "--ci", "github")[0] == 0
    first, _, told = (tmp_path / "summary.md").read_text().splitlines()[:3]
    assert (first, told) == ("### CanStop", "- yes: node-1 can stop; its shards move first")


def test_a_wait_is_a_group_that_says_what_does_not_hold_yet(invoke: Invoke, tmp_path: Path) -> None:
    answers = iter([status(converged=False), status(converged=True)])
    with FakeNode({p.GetClusterStatus: lambda _: next(answers)}) as node:
        node.write(tmp_path)
        code, _, err = invoke("cluster", "wait", "--for", "converged", "--ci", "github")
    assert code == 0
    opened, waiting, closed = err.splitlines()
    assert (opened, closed) == ("::group::wait for converged", "::endgroup::")
    assert waiting.startswith("after 0 s, waiting for converged (")


def test_who_did_not_answer_is_a_warning_and_what_is_unhealthy_an_error(invoke: Invoke, tmp_path: Path) -> None:
    missing = (p.Missing(node="node-3", reason="no answer in 2 s", since="2026-11-29T13:58:40.001Z"),)
    with FakeNode(
        {p.GetClusterHealth: lambda _: SAMPLES["Health"]}, msgspec.structs.replace(META, missing=missing)
    ) as node:
        node.write(tmp_path)
        plain = invoke("cluster", "health")
        told = invoke("cluster", "health", "--ci", "github")
    assert told[:2] == plain[:2]
    assert "::warning title=Health::node-3 did not answer: no answer in 2 s" in told[2]
    assert "::error title=Health::ended with 10" in told[2]


def test_a_summary_that_can_not_be_written_fails_nothing(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    code, out, err = invoke("version", "--ci", "github")
    assert (code, bool(out)) == (0, True)
    assert "can't be written" in err
