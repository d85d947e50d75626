"""`node remove` and `node can-stop`: what is sent, what is shown, how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Invoke
from fake_server import FakeNode
from msgspec.structs import replace
from samples import SAMPLES, operation, plan

from node.admin import protocol as p
from promovolvectl.cli.confirm import way_out

Handlers = dict[type, Callable[[Any], Any]]

NO: Any = SAMPLES["CanStop"]
YES = replace(NO, can_stop=True, reasons=())


def asked(invoke: Invoke, folder: Path, handlers: Handlers, *words: str) -> tuple[int, str, str, list[Any]]:
    with FakeNode(handlers) as node:
        node.write(folder)
        code, out, err = invoke("node", *words)
    return code, out, err, node.seen


def removing(**changes: Any) -> Handlers:
    staged = plan(verb="remove", target="node/node-2", **changes)
    done = operation(verb="remove", target="node/node-2", result={"changed": True}, phases=())
    return {p.StageRemove: lambda _: staged, p.CommitPlan: lambda _: done}


def test_o3_every_rule_that_is_overridden_is_named(tmp_path: Path, invoke: Invoke) -> None:
    words = ("remove", "node-2", "--force", "live-node", "--force", "majority", "--yes", "-o", "json")
    code, out, _, seen = asked(invoke, tmp_path, removing(), *words)
    assert (code, json.loads(out)["result"]) == (0, {"changed": True})
    assert seen[0] == p.StageRemove(node="node-2", force=("live-node", "majority"))
    code, _, err, seen = asked(invoke, tmp_path, removing(), "remove", "node-2", "--force", "everything", "--yes")
    assert (code, seen) == (2, [])
    assert "live-node, majority, last-entity-node" in err


def test_o3_what_breaks_a_rule_ends_with_five_and_is_not_committed(tmp_path: Path, invoke: Invoke) -> None:
    handlers = removing(violations=("node-2 can be reached",))
    code, _, err, seen = asked(invoke, tmp_path, handlers, "remove", "node-2", "--yes")
    assert (code, len(seen)) == (5, 1)
    assert "node-2 can be reached" in err


LAST = p.StopReason(code="last-of-role", about="node/node-2", text="node-2 is the last api node in reach")
AWAY = p.StopReason(code="unreachable", about="node/node-3", text="node-3 can't be reached")


def test_a_stop_at_once_is_held_to_what_can_stop_finds(tmp_path: Path, invoke: Invoke) -> None:
    found = replace(NO, node="node-2", reasons=(LAST, AWAY))
    words = ("stop", "node-2", "--no-drain", "--yes")
    code, _, err, seen = asked(invoke, tmp_path, {p.GetCanStop: lambda _: found}, *words)
    assert (code, [type(message) for message in seen]) == (5, [p.GetCanStop])
    assert "hint: promovolvectl node stop node-2 --no-drain --yes --force last-of-role\n" in err
    other = replace(LAST, text="node-2 is the last crawler node in reach; 'node start node-9' lets another do it")
    both = replace(found, reasons=(LAST, other))
    code, _, err, _ = asked(invoke, tmp_path, {p.GetCanStop: lambda _: both}, *words)
    assert (code, LAST.text in err, other.text in err) == (5, True, True), "each rule's every reason"
    assert "hint: promovolvectl node start node-9\n" in err, "before any rule is overridden"
    handlers: Handlers = {p.GetCanStop: lambda _: found}
    forced = (*words, "--force", "last-of-role", "--dry-run", "-o", "json")
    code, out, _, _ = asked(invoke, tmp_path, handlers, *forced)
    plan = json.loads(out)
    assert (code, plan["violations"], plan["overridden"]) == (0, [], [f"last-of-role: {LAST.text}"])
    assert plan["notes"] == [f"unreachable: {AWAY.text}"]


@pytest.mark.parametrize(
    ("violations", "hint"),
    [
        (("shard 124 is pinned to n1: 'shard unpin 124' lets it move", "x"), "promovolvectl shard unpin 124"),
        (("n9 is no entity node: 'node list --filter a~b' names those",), "promovolvectl node list --filter a~b"),
        (("last-of-role: a; --force last-of-role overrides it",), "again --force last-of-role"),
        (("last-of-role: a; --force b overrides it", "last-of-role: c; --force b overrides it"), "again --force b"),
        (("majority: a; --force majority overrides it", "n2 is cordoned"), "again --dry-run"),
    ],
)
def test_a_refused_plan_hints_at_what_helps(violations: tuple[str, ...], hint: str) -> None:
    assert way_out(violations, lambda *more: " ".join(("again", *more))) == hint


def test_p24_what_is_removed_already_ends_well_and_unchanged(tmp_path: Path, invoke: Invoke) -> None:
    code, out, _, seen = asked(invoke, tmp_path, removing(changed=False), "remove", "node-2", "-o", "json")
    assert (code, json.loads(out)["changed"], len(seen)) == (0, False, 1)


@pytest.mark.parametrize(("answer", "status"), [(NO, 5), (YES, 0)])
def test_can_stop_answers_with_its_status_and_in_words(
    answer: p.CanStop, status: int, tmp_path: Path, invoke: Invoke
) -> None:
    handlers: Handlers = {p.GetCanStop: lambda _: answer}
    code, out, err, _ = asked(invoke, tmp_path, handlers, "can-stop", "node-1")
    assert (code, err) == (status, "")
    assert out.startswith("no: node-1 can't stop now\n" if status else "yes: node-1 can stop; its shards move first\n")
    assert "2 of 3 counted members in reach, 2 required" in out
    code, out, _, _ = asked(invoke, tmp_path, handlers, "can-stop", "node-1", "-o", "json")
    document = json.loads(out)
    assert (code, document["kind"], document["can_stop"]) == (status, "CanStop", not status)
    assert [reason["object"] for reason in document["reasons"]] == ["node/node-2"] * bool(status)
