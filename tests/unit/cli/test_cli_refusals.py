"""What a refused line is told: what was meant, in every format, without a word that is not ours."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest
from conftest import Invoke
from fake_server import FakeNode

from node.admin import protocol as p
from promovolvectl.cli import options
from promovolvectl.cli.codes import CODES
from promovolvectl.cli.nouns import DEPTH
from promovolvectl.client.exit_codes import ExitStatus


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("vesion", "Did you mean 'version'?"),
        ("node drian x", "Did you mean 'drain' or 'undrain'?"),
        ("node", "needs a verb: list, show, can-stop, mailboxes, cordon, uncordon, drain, undrain, remove, "),
        ("node show", "Missing argument"),
        ("version extra", "unexpected extra argument"),
        ("version -o jsno", "there is no format 'jsno'"),
        ("cluster status --outptu json", "No such option"),
        ("version --limit -1", "--limit"),
        ("replay start", "--all"),
        ("replay start --all --site x", "--all"),
        ("site create x --publisher a --slot top", "NAME:WIDTHxHEIGHT"),
        ("advertiser create a --daily-budget 1.1234567", "--daily-budget"),
        ("advertiser create a --daily-budget 0", "more than zero"),
        ("advertiser create a --daily-budget=-5", "--daily-budget"),
        ("completion powershell", "bash, zsh, fish"),
        ("cluster wait --for converged -t 60", "hint: promovolvectl cluster wait --for converged --timeout 60s"),
    ],
)
def test_usage_errors_end_with_two_and_help(words: str, part: str, invoke: Invoke) -> None:
    code, out, err = invoke(*words.split())
    assert (code, out) == (2, "")
    assert part in err
    assert "Traceback" not in err
    code, _, err = invoke(*words.split(), "-o", "json") if "-o" not in words else (2, "", '{"exit": 2}')
    assert json.loads(err)["exit"] == 2


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("shard list entity-1", "shard list --node entity-1"),
        ("campaign list --limit 3 acme -o json", "campaign list --limit 3 --advertiser acme -o json"),
        ("page list --sites X", "page list X"),
        ("page list --sites=X -q", "page list X -q"),
        ("shard move 124 entity-1", "shard move 124 --to entity-1"),
        ("site update x --floor 3", "site update x --floor-cpm 3"),
        ("site update x --flor-cpm=3", "site update x --floor-cpm=3"),
        ("shard move 124", "shard move 124 --to entity-2"),
        ("shard move 3 4 --to entity-1", "shard move --help"),
        ("events list", "events"),
        ("events list --type shard.*", "events --type 'shard.*'"),
        ("events shard.moved", "events --node shard.moved"),
        ("version extra", "version --help"),
        ("node list --nope", "node list --help"),
    ],
)
def test_a_usage_error_hints_at_the_line_that_was_meant(words: str, hint: str, invoke: Invoke) -> None:
    code, _, err = invoke(*words.split())
    if "json" in words:
        err = f"{json.loads(err)['message']}\nhint: {json.loads(err)['hint']}\n"
    assert (code, err.splitlines()[-1]) == (2, f"hint: promovolvectl {hint}")
    assert f"usage: promovolvectl {' '.join(words.split()[: DEPTH[words.split()[0]]])} " in err


@pytest.mark.parametrize(
    ("words", "hint"),
    [("drill", "cluster drill"), ("rebalence", "shard rebalance")],
)
def test_help_of_what_is_no_topic_offers_the_command(words: str, hint: str, invoke: Invoke) -> None:
    code, _, err = invoke("help", *words.split())
    assert (code, err.splitlines()[-1]) == (3, f"hint: promovolvectl {hint} --help")
    assert invoke("help", "nothing-at-all")[2].endswith("hint: promovolvectl help\n")


@pytest.mark.parametrize("words", ["sim", "node drain", "auth key", "auth key create", "up"])
def test_help_of_a_command_is_its_own_help(words: str, invoke: Invoke) -> None:
    code, out, err = invoke("help", *words.split())
    assert (code, err) == (0, "")
    assert out == invoke(*words.split(), "--help")[1]


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        ("node list -t 0s", 2, "promovolvectl node list --timeout 90s"),
        ("node list --filter shards>abc", 2, "promovolvectl node list --filter 'shards>10'"),
        ("node list --limit abc", 2, "promovolvectl node list --help"),
        ("node list --filter stat=up,shards>1", 2, "promovolvectl node list --filter 'status=up,shards>1'"),
        ("node list --sort role:desc", 2, "promovolvectl node list --sort roles:desc"),
        ("node list --columns nam,roles", 2, "promovolvectl node list --columns name,roles"),
        ("entity restart site --yes", 2, "promovolvectl entity restart site/ID --yes"),
        ("auth key create ../evil --yes", 2, "promovolvectl auth key create ann --yes"),
        ("auth key rotate .. --yes", 2, "promovolvectl auth key rotate ann --yes"),
    ],
)
def test_every_refused_line_has_a_hint_and_nothing_is_announced_before(
    words: str, code: int, hint: str, invoke: Invoke
) -> None:
    found, out, err = invoke(*words.split())
    assert (found, out, err.splitlines()[-1]) == (code, "", f"hint: {hint}"), err
    assert ".key" not in err


def test_a_folder_is_not_called_a_key_that_is_there(tmp_path: Path, invoke: Invoke) -> None:
    code, _, err = invoke("auth", "key", "create", "ann", "--role", "viewer", "--out", str(tmp_path), "--yes")
    assert (code, f"{tmp_path} is a folder" in err) == (17, True)
    again = f"hint: promovolvectl auth key create ann --role viewer --out {tmp_path / 'ann.key'} --yes"
    assert err.splitlines()[-1] == again


def test_an_error_of_a_machine_format_is_one_document(invoke: Invoke) -> None:
    _, out, err = invoke("-o", "json", "explain", "XYZ")
    assert out == ""
    assert err.count("\n") == 1
    assert json.loads(err) == {
        "kind": "Error",
        "code": "E-NOT-FOUND",
        "exit": 3,
        "message": "there is no error code 'XYZ'.",
        "hint": "promovolvectl explain",
        "object": "",
        "operation": "",
    }


def test_a_refusal_is_shown_with_its_hint_and_controls_made_visible(invoke: Invoke, tmp_path: Path) -> None:
    def refuse(_: object) -> None:
        raise p.AdminRefusal(3, "E-NOT-FOUND", "no \x1b[31mnode", hint="promovolvectl node list")

    with FakeNode({p.GetNode: refuse}) as node:
        node.write(tmp_path)
        code, _, err = invoke("node", "show", "x")
    assert (code, err) == (3, "error: no \\x1b[31mnode (E-NOT-FOUND)\nhint: promovolvectl node list\n")


def test_a_mistake_of_ours_saves_a_report_without_anybodys_data(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V13: not of the command line, the environment, or what the failing code had in its hands."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("inside token=sentinel-1 postgresql://a:sentinel-2@db/x and sentinel-3")

    monkeypatch.setattr("promovolvectl.cli.explain.plain", broken)
    monkeypatch.setenv("PGPASSWORD", "sentinel-3")
    code, _, err = invoke("explain", "E-BUG", "--query=secret")
    assert "sentinel" not in err
    assert code == 1
    assert "Traceback" not in err
    assert "ZeroDivisionError" not in err
    [saved] = (tmp_path / "state").rglob("report-*.txt")
    assert str(saved) in err
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    text = saved.read_text()
    assert "ZeroDivisionError" in text
    assert "secret" not in text.replace("«secret»", "")
    assert "sentinel" not in text
    assert "Traceback" in invoke("explain", "E-BUG", "--debug")[2]


def test_codes_are_explained_and_their_statuses_exist() -> None:
    for code, about in CODES.items():
        assert re.fullmatch(r"E-[A-Z0-9-]+", code)
        assert ExitStatus(about.exit)
        assert about.meaning.endswith(".")
        assert about.help


def test_only_one_module_ends_the_process() -> None:
    folder = Path(options.__file__).parents[1]
    sources = {path: path.read_text() for part in ("cli", "client") for path in (folder / part).glob("*.py")}
    ending = [
        path.name for path, text in sources.items() if re.search(r"sys\.exit\(|typer\.Exit\(|raise SystemExit", text)
    ]
    assert ending == ["main.py"]
