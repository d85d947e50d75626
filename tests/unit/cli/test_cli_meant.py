"""What a person is told who stops waiting, mistypes a verb, or sits at a terminal that can't be redrawn."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from conftest import Invoke
from fake_server import FakeNode
from samples import SAMPLES, status
from terminal import Terminal

from node.admin import protocol as p
from promovolvectl.cli.senses import meant
from promovolvectl.cli.walk import leaves
from promovolvectl.local import cluster, margin

VERBS = {"start": False, "stop": False, "show": True, "list": True, "wait": True}


@pytest.mark.parametrize(
    ("word", "verbs"),
    [
        ("status", ["show", "list"]), ("get", ["show", "list"]), ("strat", ["start"]), ("lst", ["list"]), ("xyz", []),
    ],
)  # fmt: skip
def test_a_word_that_looks_means_no_verb_that_changes(word: str, verbs: list[str]) -> None:
    assert meant(word, VERBS) == verbs


def test_status_is_never_taken_for_a_change(invoke: Invoke) -> None:
    changing = {leaf.name for leaf in leaves() if not leaf.about.changes.startswith("Reads only")}
    nouns = {leaf.words[0] for leaf in leaves() if len(leaf.words) == 2}
    for noun in sorted(nouns):
        for word in ("describe", "state"):
            code, _, err = invoke(noun, word)
            assert code == 2
            assert not [name for name in changing if name.startswith(f"{noun} ") and f"{name.split()[1]!r}" in err], err
    assert "Did you mean 'show' or 'list'?" in invoke("replay", "status")[2]
    assert "hint: promovolvectl replay list\n" in invoke("replay", "status")[2]


@pytest.mark.parametrize(
    ("words", "at", "told"),
    [
        (("up", "-p", "six"), "up", "hint: promovolvectl up -p six, or to stop them: promovolvectl down -p six\n"),
        (("up", "-p", "six", "--data", "/d"), "up", "promovolvectl down -p six --data /d\n"),
        (("down", "-p", "six"), "down", "hint: promovolvectl down -p six\n"),
        (("node", "start", "n-1"), "start_node", "hint: promovolvectl node wait n-1 --for ready\n"),
    ],
)
def test_who_stops_waiting_for_processes_is_told_what_becomes_of_them(
    words: tuple[str, ...], at: str, told: str, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cluster, at, pressed)
    with FakeNode({}) as node:
        node.write(tmp_path)
    code, out, err = invoke(*words)
    assert (code, out) == (130, "")
    assert "Stopped waiting." in err
    assert told in err


def test_a_terminal_that_is_dumb_gets_no_dashboard_and_no_escape(tmp_path: Path) -> None:
    env = {**os.environ, "PROMOVOLVECTL_CONFIG": str(tmp_path / "config.toml")}
    code = "import os, sys; os.environ['TERM'] = 'dumb'; from promovolvectl.cli.main import run; run()"
    terminal = Terminal((sys.executable, "-c", code, "dashboard", "--replay", tmp_path / "r.jsonl"), env)
    try:
        assert terminal.ended() == 2
        assert "\x1b" not in terminal.told
        assert "hint: promovolvectl dashboard --once" in terminal.text
    finally:
        terminal.close()


def test_a_look_that_nobody_had_time_to_answer_blames_nobody(tmp_path: Path, invoke: Invoke) -> None:
    """The status is not converged, and then no time is left: what is told is what was seen."""
    with FakeNode({p.GetClusterStatus: lambda _: status(converged=False)}) as node:
        node.write(tmp_path)
        code, _, err = invoke("cluster", "wait", "--for", "converged", "-t", "250ms")
        assert len(node.seen) == 1, "a quarter of a second is the pause between two looks"
    assert code == 9
    assert "converged: not converged" in err
    assert "did not answer" not in err


def test_everything_that_is_waited_for_is_asked_at_once(tmp_path: Path, invoke: Invoke) -> None:
    """A node that is asked about health says nothing before, and one whose status is late is not asked in turn."""
    with FakeNode({p.GetClusterStatus: lambda _: None, p.GetClusterHealth: lambda _: SAMPLES["Health"]}) as node:
        node.write(tmp_path)
        assert invoke("cluster", "wait", "--for", "healthy", "-t", "300ms")[0] == 9
        assert {type(each) for each in node.seen} == {p.GetClusterStatus, p.GetClusterHealth}


@pytest.mark.parametrize(
    ("query", "lacking", "hint"),
    [
        ("nodes[0].name", "nodes", "promovolvectl schema NodeList"),
        ("itms[].name", "itms", "promovolvectl node list --query 'items[].name'"),
        ("length(rows)", "rows", "promovolvectl schema NodeList"),
        ("{a: items, b: nope.x}", "nope", "promovolvectl schema NodeList"),
    ],
)
def test_a_query_for_a_field_that_no_answer_has_is_refused_before_it_is_asked(
    query: str, lacking: str, hint: str, tmp_path: Path, invoke: Invoke
) -> None:
    with FakeNode({p.GetNodes: lambda _: SAMPLES["NodeList"]}) as node:
        node.write(tmp_path)
        code, out, err = invoke("node", "list", "--query", query)
        assert (code, out, node.seen) == (2, "", [])
    assert f"no field {lacking!r} in NodeList; there are: items" in err
    assert f"hint: {hint}\n" in err


@pytest.mark.parametrize(
    "query",
    ["items[?status=='up'].name", "nodes || items[0].name", "observed_at", "missing", "@.items", "items[].nope",
     "not_null(nodes, items[0].name)", "sort_by(items, &name)[0].name", "items | [0].name", "*", "keys(@)"],
)  # fmt: skip
def test_a_query_that_may_be_meant_is_asked(query: str, tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({p.GetNodes: lambda _: SAMPLES["NodeList"]}) as node:
        node.write(tmp_path)
        assert invoke("node", "list", "--query", query, "-o", "json")[0] == 0


@pytest.mark.parametrize(
    ("roles", "which"),
    [
        ((("api", "singleton"), ("entity",)), "its only entity node"),
        ((("api",), ("entity",), ("entity", "singleton")), "one of its 2 entity nodes"),
        ((("api", "entity"), ("entity",), ("entity", "singleton")), ""),
        ((("api", "entity", "singleton"),), ""),
    ],
)
def test_what_one_crash_will_do_is_foreseen_before_a_cluster_is_made(
    roles: tuple[tuple[str, ...], ...], which: str
) -> None:
    text = margin.foreseen(roles)
    assert bool(text) == bool(which)
    assert which in text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("auth key create bob --role reader", "'--role': 'reader' is not one of 'viewer', 'operator', 'admin'."),
        ("node list --limit x", "'--limit': a whole number is needed (E-USAGE)"),
        ("dashboard --speed abc", "'--speed': a number is needed (E-USAGE)"),
        ("node logs --per-node 0", "'--per-node': "),
    ],
)
def test_a_value_that_is_none_is_refused_in_our_words(words: str, told: str, invoke: Invoke) -> None:
    code, _, err = invoke(*words.split())
    assert code == 2
    assert told in err
    assert "Input should" not in err
    assert "Value error" not in err
