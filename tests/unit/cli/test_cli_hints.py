"""A hint is a line that can be pasted: what was typed, put right, with names that the cluster has."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Invoke
from fake_server import FakeNode
from msgspec.structs import replace
from samples import SAMPLES

from node.admin import protocol as p
from promovolvectl.cli import hints, nouns
from promovolvectl.cli.hints import whole
from promovolvectl.cli.options import format_asked, profile_asked
from promovolvectl.client.profiles import load_file, write_profile

SOURCES = [Path(nouns.__file__).parents[1], Path(p.__file__).parents[2]]


@pytest.mark.parametrize(
    ("typed", "hint", "message", "line"),
    [
        ("node list -t 3", "--timeout 3s", "", "node list --timeout 3s"),
        ("-ojsn node list", "-o json", "", "-o json node list"),
        ("node list --output=jsn -q", "-o json", "", "node list -o json -q"),
        ("shard pin 5", "--to n1", "", "shard pin 5 --to n1"),
        ("site create x -- --odd", "--slot top:1x1", "", "site create x --slot top:1x1 -- --odd"),
        ("a --for x --for y", "--for z", "--for: 'x' is no", "a --for z --for y"),
        ("a --for x --for y", "--for z", "--for: x, y", "a --for x --for z"),
        ("a --slot t:1 --slot t:2 -y", "--slot t:2 --slot u:3", "", "a --slot t:2 --slot u:3 -y"),
        ("a --web --once", "without --web", "", "a --once"),
        ("up --nodes 3 --node a=b", "without --nodes N", "", "up --node a=b"),
        ("a --lift x --lift y", "without --lift y", "", "a --lift x"),
        ("a --path=d --node n", "without --path DIR", "", "a --node n"),
        ("node drain x -y", "make the plan again", "", "node drain x -y"),
    ],
)
def test_flags_become_the_line_that_was_typed_with_them(typed: str, hint: str, message: str, line: str) -> None:
    assert whole(hint, message, typed.split()) == f"promovolvectl {line}"


@pytest.mark.parametrize("hint", ["", "promovolvectl up", "make the plan again", "--a 'b", "--step use comes first"])
def test_any_other_hint_stays_as_it_is(hint: str) -> None:
    assert whole(hint, "", ["plan", "commit", "p-1"]) == hint


def _hints() -> Iterator[tuple[str, str]]:
    """Every hint of the sources that is written as flags."""
    for path in (path for folder in SOURCES for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            named = [each.value for each in node.keywords if each.arg == "hint"]
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            for value in [*named, *(node.args[2:3] if called == "usage" else ())]:
                parts = value.values if isinstance(value, ast.JoinedStr) else [value]
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts)
                if text.startswith(("-", hints.WITHOUT)):
                    yield f"{path.name}:{node.lineno}", text


def test_every_hint_that_is_flags_is_nothing_else() -> None:
    found = dict(_hints())
    assert len(found) > 40, "the sources are read"
    assert not {at: text for at, text in found.items() if whole(text, "", ()) == text}


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("shard move 92", "shard move 92 --to {entity}"),
        ("shard pin 5 6 --dry-run", "shard pin 5 6 --dry-run --to {entity}"),
        ("node top", "node top {any}"),
        ("node drain -o wide", "node drain -o wide {any}"),
        ("auth rotate {any}", "auth rotate {any} --step install"),
        ("auth can-i", "auth can-i node drain"),
        ("node get", "node show {any}"),
        ("shard mov 5 -q", "shard move 5 -q --to {entity}"),
        ("entity show", "entity show site/{site}"),
        ("serveindex get", "serveindex get '{site}|{slot}'"),
        ("site create", "site create example.com --publisher ann --slot top:728x90"),
    ],
)
def test_what_a_line_lacks_is_a_name_that_the_cluster_has(
    typed: str, hint: str, tmp_path: Path, invoke: Invoke
) -> None:
    row = SAMPLES["NodeList"].items[0]
    away, here = replace(row, name="front", roles=("api",)), replace(row, name="kept", roles=("entity",))
    nodes, sites = p.NodeList(items=(away, here)), SAMPLES["SiteList"]
    site = sites.items[0]
    names = {"any": "front", "entity": "kept", "site": site.site, "slot": site.slots[0].slot}
    with FakeNode({p.GetNodes: lambda _: nodes, p.GetSites: lambda _: sites}) as node:
        node.write(tmp_path)
        code, _, err = invoke(*typed.format(**names).split())
    assert (code, err.splitlines()[-1]) == (2, f"hint: promovolvectl {hint.format(**names)}")


@pytest.mark.parametrize(
    ("name", "value", "mend"),
    [
        ("TIMEOUT", "abc", "90s"),
        ("OUTPUT", "foo", "json"),
        ("COLOR", "foo", "auto"),
        ("TIME", "foo", "utc"),
        ("CI", "foo", "github"),
        ("ENDPOINT", "foo", "127.0.0.1:7401"),
    ],
)
def test_a_value_out_of_the_environment_is_told_as_its_variable_s(
    name: str, value: str, mend: str, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"PROMOVOLVECTL_{name}"
    monkeypatch.setenv(variable, value)
    code, _, err = invoke("node", "list")
    assert (code, err.splitlines()[-1]) == (2, f"hint: export {variable}={mend}")
    assert err.startswith(f"error: {variable}: ")
    assert invoke("node", "list", f"--{name.lower()}", mend)[0] != 2, "the flag wins, and nobody looks at the other"


def test_a_profile_that_the_environment_names_is_told_as_its(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeNode({}) as node:
        node.write(tmp_path)
    monkeypatch.setenv("PROMOVOLVECTL_PROFILE", "foo")
    code, _, err = invoke("node", "list")
    assert (code, err.startswith("error: PROMOVOLVECTL_PROFILE: there is no profile 'foo'")) == (3, True)
    assert invoke("node", "list", "-p", "foo")[2].startswith("error: there is no profile 'foo'")


def test_a_value_out_of_the_profile_is_told_as_its_and_mended_by_the_hint(tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({p.GetNodes: lambda _: SAMPLES["NodeList"]}) as node:
        config = node.write(tmp_path)
        [(name, profile)] = load_file(config).profiles.items()
        write_profile(config, replace(profile, name=name, timeout="90", output="jsn"), make_current=True)
        for setting, mend in (("output", "json"), ("timeout", "90s")):
            code, _, err = invoke("node", "list")
            hint = f"promovolvectl profile set {name} {setting}={mend}"
            assert (code, hint in err, f"{setting} of the profile '{name}'" in err) == (2, True, True), err
            assert invoke(*hint.split()[1:])[0] == 0
        assert invoke("node", "list")[0] == 0


def test_a_key_that_is_there_is_not_written_over_and_another_name_is_offered(tmp_path: Path, invoke: Invoke) -> None:
    for taken in ("ann.key", "ann-2.key"):
        (tmp_path / taken).touch()
    code, _, err = invoke("auth", "key", "create", "ann", "--out", str(tmp_path / "ann.key"), "--yes")
    again = f"promovolvectl auth key create ann --out {tmp_path}/ann-3.key --yes"
    assert (code, err.splitlines()[-1]) == (17, f"hint: {again}")


@pytest.mark.parametrize("length", ["0s", "100ms"])
def test_a_key_for_no_time_is_refused_in_words_that_fit(length: str, invoke: Invoke) -> None:
    code, _, err = invoke("auth", "key", "create", "ann", "--expires", length)
    assert (code, "is less than a second; without it a key does not expire" in err) == (2, True)
    assert err.splitlines()[-1] == "hint: promovolvectl auth key create ann --expires 90d"


@pytest.mark.parametrize("words", [("-p", "b"), ("-pb",), ("--profile", "b"), ("--profile=b",), ("-p", "a", "-p", "b")])
def test_what_a_line_asks_for_is_known_before_it_is_parsed_however_it_is_spelled(words: tuple[str, ...]) -> None:
    line = ("shard", "move", "92", *words)
    assert profile_asked(line) == profile_asked((*line, "--", "-p", "c")) == "b"
    spelled = [word.replace("--profile", "--output").replace("-p", "-o").replace("b", "csv") for word in words]
    assert format_asked([*spelled, "--", "-o", "json"], {"PROMOVOLVECTL_OUTPUT": "yaml"}) == "csv"
