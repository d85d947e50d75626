"""The frame around commands: parsing, precedence, errors, exit statuses, signals, and what is not imported."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Invoke
from fake_server import FakeNode
from samples import SAMPLES, operation, plan

from node.admin import protocol as p
from node.wire.chunks import Inbox, Piece
from promovolvectl.cli import options, values
from promovolvectl.cli.duration import milliseconds
from promovolvectl.cli.nouns import DEPTH
from promovolvectl.cli.page_text import SOURCE_BYTES_MAX, Source, text_of
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.profiles import Profile, load_file, remove_profile, write_profile

PROGRAM = [sys.executable, "-c", "from promovolvectl.cli.main import run; run()"]
HEAVY = (
    *("textual", "textual_serve", "aiohttp", "jinja2", "rich"),
    *("pydantic_settings", "numpy", "lmdb", "asyncpg", "playwright"),
)


def program(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *words], capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **env}
    )


# --- where flags may stand


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("-o json cluster status", "cluster status -o json"),
        ("cluster -o json status -q", "cluster status -o json -q"),
        ("-qy --output=json -p x node drain a", "node drain -qy --output=json -p x a"),
        ("-ojson version", "version -ojson"),
        ("--endpoint a:1 --endpoint b:2 node list", "node list --endpoint a:1 --endpoint b:2"),
        ("node list -o json", "node list -o json"),
        ("--help", "--help"),
        ("node --help", "node --help"),
        ("-o json node", "node"),
        ("-p local --help", "--help"),
        ("-y -o json node --help", "node --help"),
        ("-p local node list -h", "node list -p local -h"),
        ("page classify -", "page classify -"),
        ("-o json entity -q quarantine list", "entity quarantine list -o json -q"),
        ("-o json entity list", "entity list -o json"),
        ("--nonsense node list", "--nonsense node list"),
    ],
)
def test_global_flags_may_stand_before_noun_and_verb(given: str, meant: str) -> None:
    assert options.hoisted(given.split(), DEPTH) == meant.split()


def test_the_flag_behind_the_verb_wins_over_the_one_before(invoke: Invoke) -> None:
    assert json.loads(invoke("-o", "csv", "version", "-o", "json")[1])["kind"] == "Version"


# --- precedence


def test_flag_over_environment_over_profile_over_default(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert invoke("version")[1].startswith("VERSION")
    write_profile(tmp_path / "config.toml", Profile(name="a", output="csv"), make_current=True)
    write_profile(tmp_path / "config.toml", Profile(name="b", output="name"), make_current=False)
    assert invoke("version")[1].startswith("version,")
    assert invoke("version", "-p", "b")[1].startswith("version/")
    monkeypatch.setenv("PROMOVOLVECTL_PROFILE", "b")
    assert invoke("version")[1].startswith("version/")
    monkeypatch.setenv("PROMOVOLVECTL_OUTPUT", "jsonl")
    assert json.loads(invoke("version")[1])["kind"] == "Version"
    assert invoke("version", "-o", "value")[1].count("\t") == 2


def test_profiles_are_written_whole_private_and_leave_others_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "config.toml"
    write_profile(path, Profile(name="a", cluster="x"), make_current=True)
    write_profile(path, Profile(name="b", cluster="y"), make_current=False)
    file = load_file(path)
    assert (file.current, set(file.profiles)) == ("a", {"a", "b"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [item.name for item in path.parent.iterdir()] == ["config.toml"]
    remove_profile(path, "a")
    assert load_file(path).current == "b"


@pytest.mark.parametrize("text", ["current = 3", "curent = 'a'", "not toml", "[profiles.a]\nendpoint = []", "\x00"])
def test_a_broken_configuration_names_file_and_place(text: str, tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "config.toml").write_text(text)
    code, _, err = invoke("cluster", "status")
    assert code == 16
    assert str(tmp_path / "config.toml") in err
    assert invoke("version")[0] == 0


def test_no_profile_and_an_unknown_profile(invoke: Invoke, tmp_path: Path) -> None:
    code, _, err = invoke("cluster", "status")
    assert (code, err.splitlines()[-1]) == (16, "hint: promovolvectl up")
    write_profile(tmp_path / "config.toml", Profile(name="a"), make_current=True)
    code, _, err = invoke("cluster", "status", "-p", "b")
    assert code == 3
    assert "known: a" in err
    write_profile(tmp_path / "config.toml", Profile(name="shop"), make_current=False)
    code, _, err = invoke("cluster", "status", "-p", "shpo")
    assert "Did you mean 'shop'?" in err
    assert err.splitlines()[-1] == "hint: promovolvectl profile list", "'up' would found a cluster for a slip"


# --- values


@pytest.mark.parametrize(("text", "ms"), [("90s", 90_000), ("1h30m", 5_400_000), ("250ms", 250), ("1.5s", 1_500)])
def test_lengths_of_time(text: str, ms: int) -> None:
    assert milliseconds(text) == ms


@pytest.mark.parametrize("text", ["60", "", "s", "5x", "-5s", "0s", "31d", "1s 2s", "nan"])
def test_lengths_of_time_that_are_none(text: str) -> None:
    with pytest.raises(CommandFailed):
        milliseconds(text)


@pytest.mark.parametrize(
    "text", ["1e3", "1,5", " 1", "1.", ".5", "\u0661", "99999999999", "1000000001", "NaN", "-1", "+1"]
)
def test_amounts_that_are_none(text: str) -> None:
    with pytest.raises(CommandFailed, match="--max-cpm"):
        values.money(text, "--max-cpm")


@pytest.mark.parametrize("text", ["ftp://x", "x", "http://", "https://u:p@x/", "http://[", "https://x/" + "a" * 2100])
def test_urls_that_are_refused(text: str) -> None:
    with pytest.raises(CommandFailed, match="--asset-url"):
        values.web_url(text, "--asset-url")


# --- pages


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(CommandFailed) as caught:
        text_of(Source("x", b"\x89PNG\x00\x00"))
    assert caught.value.code == "E-NO-TEXT"


def test_encodings_of_pages() -> None:
    assert text_of(Source("x", "\ufeffÄpfel".encode())) == "Äpfel"
    assert text_of(Source("x", "Äpfel".encode("latin-1"))) == "Äpfel"
    assert text_of(Source("x", "Яблоки".encode("koi8-r"), charset="koi8-r")) == "Яблоки"


def test_classify_reads_files_and_standard_input(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.txt"
    page.write_text("Night  trains run again.")
    with FakeNode({p.ClassifyText: lambda _: SAMPLES["Classification"]}) as node:
        node.write(tmp_path)
        assert invoke("page", "classify", str(page))[0] == 0
        stdin = io.TextIOWrapper(io.BytesIO(b"<html><body>By road</body></html>"))
        monkeypatch.setattr(sys, "stdin", stdin)
        assert invoke("page", "classify", "-")[0] == 0
        assert [message.text for message in node.seen] == [
            "Night  trains run again.",
            "<html><body>By road</body></html>",
        ]
        page.write_bytes(b"a" * (SOURCE_BYTES_MAX + 1))
        assert invoke("page", "classify", str(page))[0] == 17
        assert invoke("page", "classify", str(tmp_path / "none"))[0] == 17
        assert invoke("page", "classify", str(tmp_path))[0] == 17
        assert invoke("page", "classify", "ftp://example.com/x")[0] == 2
        assert invoke("page", "classify", "file:///etc/hostname")[0] == 2
        assert len(node.seen) == 2


def test_a_page_larger_than_a_message_is_sent_in_pieces(invoke: Invoke, tmp_path: Path) -> None:
    page, markup = tmp_path / "page.html", "<html><body>" + "Ä" * 400_000
    page.write_text(markup)
    inbox = Inbox()

    def take(request: p.SendPiece) -> p.PieceTaken:
        piece = Piece(request.size, request.digest, request.offset, request.data)
        return p.PieceTaken(wanted=inbox.take(request.transfer, piece, 0))

    with FakeNode({p.ClassifyText: lambda _: SAMPLES["Classification"], p.SendPiece: take}) as node:
        node.write(tmp_path)
        assert invoke("page", "classify", str(page))[0] == 0
        asked = node.seen[-1]
        assert asked.text == ""
        assert inbox.claim(asked.transfer) == markup.encode()


# --- processes


ASKING = [["node", "list"], ["cluster", "status"]]


@pytest.mark.parametrize("words", [["--help"], ["version"], ["--version"], ["node", "--help"], *ASKING])
def test_nothing_heavy_is_loaded(words: list[str], tmp_path: Path) -> None:
    """Those that ask a cluster are answered, so that what shows the answer is loaded, too."""
    handlers = {
        p.GetNodes: lambda _: SAMPLES["NodeList"],
        p.GetClusterStatus: lambda _: SAMPLES["ClusterStatus"],
    }
    with FakeNode(handlers) as node:
        node.write(tmp_path)
        done = subprocess.run(
            [sys.executable, "-X", "importtime", *PROGRAM[1:], *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0
    loaded = {line.split("|")[-1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "promovolvectl.cli.main" in loaded
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]
    assert ({"zmq", "cbor2"} <= loaded) == (words in ASKING)


def test_help_has_no_escape_codes_in_ci() -> None:
    for words in (["--help"], ["node", "drain", "--help"], ["nodee"]):
        done = program(*words, GITHUB_ACTIONS="true", FORCE_COLOR="1", COLUMNS="40")
        assert "\x1b" not in done.stdout + done.stderr


def test_a_broken_pipe_is_silent() -> None:
    with subprocess.Popen([*PROGRAM, "explain"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        done.stdout.close()
        assert done.stderr.read() == ""
        assert done.wait(60) == 141


# Ctrl-C while the module that is named is being loaded.
PRESSED = """
import os, signal, sys
class Pressing:
    def find_spec(self, name, *_):
        if name == sys.argv[0]:
            sys.argv[0] = ""
            os.kill(os.getpid(), signal.SIGINT)
sys.argv[:] = sys.argv[1:]
sys.meta_path.insert(0, Pressing())
from promovolvectl.cli.main import run; run()
"""


@pytest.mark.parametrize(
    "module",
    [
        "promovolvectl.cli.terminal", "promovolvectl.cli.options", "promovolvectl.cli.tree", "typer", "msgspec",
        "promovolvectl.cli.node", "promovolvectl.cli.tables", "promovolvectl.client.calls", "zmq",
    ],
)  # fmt: skip
def test_an_interrupt_is_silent_whatever_is_being_loaded(module: str, tmp_path: Path) -> None:
    with FakeNode({p.GetNodes: lambda _: SAMPLES["NodeList"]}) as node:
        node.write(tmp_path)
        done = subprocess.run(
            [sys.executable, "-c", PRESSED, module, "node", "list"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_an_output_can_not_encode_is_spelled_and_never_a_failure(encoding: str, tmp_path: Path) -> None:
    """An arrow, a letter that one of them has, and a sign that no encoding of one byte has."""
    moves = (p.PlanMove(shard=3, from_node="node-2", to="nodé-1", why="it goes 日"),)
    with FakeNode({p.StageDrain: lambda _: plan(moves=moves)}) as node:
        node.write(tmp_path)
        done = subprocess.run(
            [*PROGRAM, "node", "drain", "node-2", "--dry-run"],
            capture_output=True,
            timeout=60,
            check=False,
            env={**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C"},
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"->" in done.stdout
        assert b"\\u65e5" in done.stdout
        assert ("nodé-1" if encoding == "latin-1" else "nod\\xe9-1").encode("latin-1") in done.stdout


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_stop_the_watching_and_say_how_to_go_on(number: signal.Signals, status: int, tmp_path: Path) -> None:
    handlers = {
        p.StageDrain: lambda _: plan(),
        p.CommitPlan: lambda _: operation("running"),
        p.GetOperation: lambda _: operation("running"),
    }
    with FakeNode(handlers) as node:
        node.write(tmp_path)
        with subprocess.Popen(
            [*PROGRAM, "node", "drain", "node-2", "--yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child:
            assert child.stderr is not None
            assert any("shards: running" in line for line in child.stderr)
            child.send_signal(number)
            rest = child.stderr.read()
            assert child.wait(60) == status
    assert "hint: promovolvectl op watch op-1, or to end it: promovolvectl op cancel op-1" in rest
    assert "Traceback" not in rest


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 6), ("\n", 6), ("Y\n", 0)])
def test_a_person_is_asked_on_a_terminal_and_no_is_the_default(answer: str, status: int, tmp_path: Path) -> None:
    handlers = {p.StageDrain: lambda _: plan(), p.CommitPlan: lambda _: operation()}
    with FakeNode(handlers) as node:
        node.write(tmp_path)
        ours, theirs = pty.openpty()
        try:
            child = subprocess.Popen(
                [*PROGRAM, "node", "drain", "node-2"], stdin=theirs, stderr=theirs, stdout=subprocess.DEVNULL
            )
            shown = b""
            while b"Proceed? [y/N]" not in shown:
                shown += os.read(ours, 4096)
            os.write(ours, answer.encode())
            assert child.wait(60) == status
        finally:
            os.close(theirs)
            os.close(ours)
        committed = [message for message in node.seen if isinstance(message, p.CommitPlan)]
    assert b"PLAN p-1" in shown
    assert len(committed) == (1 if status == 0 else 0)


def test_completion_knows_nouns_verbs_and_flags() -> None:
    def completed(words: str, index: int) -> set[str]:
        done = program(_PROMOVOLVECTL_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(index))
        return set(done.stdout.split())

    assert completed("promovolvectl no", 1) == {"node"}
    assert completed("promovolvectl node d", 2) == {"drain"}
    assert "--dry-run" in completed("promovolvectl node drain --", 3)


def test_the_bare_name_orients_without_asking_anybody() -> None:
    done = program()
    assert done.returncode == 0
    assert "promovolvectl up --demo" in done.stdout


def test_a_request_that_nobody_remembers_is_not_called_a_site(invoke: Invoke, tmp_path: Path) -> None:
    def nothing(request: p.GetExplanation) -> None:
        text = f"there is no site {request.site!r}" if request.site else "no such decision is remembered"
        raise p.AdminRefusal(3, "E-NOT-FOUND", text)

    with FakeNode({p.GetExplanation: nothing}) as node:
        node.write(tmp_path)
        code, _, err = invoke("serve", "explain", "deadbeef")
    assert (code, len(node.seen)) == (3, 2)
    assert err.startswith("error: no decision about a request 'deadbeef' is remembered, and there is no site of that")


def test_addresses_that_were_given_are_not_started_by_a_profile_s_name(invoke: Invoke, tmp_path: Path) -> None:
    with FakeNode({}) as node:
        node.write(tmp_path)
        code, _, err = invoke("node", "list", "--endpoint", "127.0.0.1:1")
    assert code == 8
    assert "up -p" not in err
    assert "without --endpoint" in err.splitlines()[-1]
