"""Completion: live names, within a moment, from a cache when the cluster does not answer, and never an error."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from fake_server import FakeNode
from samples import SAMPLES

from node.admin import protocol as p
from promovolvectl.cli import offered
from promovolvectl.client import paths
from promovolvectl.client.profiles import Profile, write_profile

PROGRAM = [sys.executable, "-c", "from promovolvectl.cli.main import run; run()"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def completed(words: str, index: int) -> tuple[list[str], str]:
    env = {**os.environ, "_PROMOVOLVECTL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(index)}
    done = subprocess.run(PROGRAM, env=env, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.split(), done.stderr


def aged(seconds: float) -> None:
    """Makes all kept names older."""
    [file] = paths.cache_dir().glob("*.json")
    kept = {kind: (at - seconds, names) for kind, (at, names) in json.loads(file.read_text()).items()}
    file.write_text(json.dumps(kept))


def test_check_v17_names_are_live_then_kept_then_old(tmp_path: Path) -> None:
    with FakeNode({p.GetNodes: lambda _: SAMPLES["NodeList"]}) as node:
        node.write(tmp_path)
        names = list(offered.offered("NODE"))
        assert names
        assert offered.offered("NODE") == names
        assert len(node.seen) == 1
        aged(offered.FRESH_S + 1)
        assert offered.offered("NODE") == names
        assert len(node.seen) == 2
    aged(offered.FRESH_S + 1)
    assert offered.offered("NODE") == names  # nobody answers any more
    assert paths.cache_dir().stat().st_mode & 0o077 == 0


def test_check_v17_a_cluster_that_says_nothing_is_given_a_moment_only(tmp_path: Path) -> None:
    with FakeNode({p.GetNodes: lambda _: None}) as node:
        node.write(tmp_path)
        assert list(offered.offered("NODE")) == []
        assert node.timeouts_ms
        assert max(node.timeouts_ms) <= offered.ASK_MS


def test_a_hint_of_a_command_that_is_carried_out_has_the_names_that_are_kept(tmp_path: Path) -> None:
    """Nobody can be asked from within its loop; a warning of that would be told to who typed it."""

    async def hint() -> list[str]:
        return list(offered.offered("NODE"))

    with FakeNode({p.GetNodes: lambda _: SAMPLES["NodeList"]}) as node:
        node.write(tmp_path)
        assert asyncio.run(hint()) == []
        names = list(offered.offered("NODE"))
        aged(offered.FRESH_S + 1)
        assert asyncio.run(hint()) == names
        assert len(node.seen) == 1


def test_check_v17_the_script_itself_opens_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    from promovolvectl.cli.main import main

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    assert main(["completion", "bash"]) == 0


def test_a_shell_gets_names_formats_and_profiles_and_never_an_error(tmp_path: Path) -> None:
    with FakeNode({p.GetNodes: lambda _: SAMPLES["NodeList"]}) as node:
        node.write(tmp_path)
        names = list(offered.offered("NODE"))
        assert completed("promovolvectl node show ", 3) == (names, "")
        assert completed("promovolvectl shard move 17 --to ", 5) == (names, "")
        assert completed(f"promovolvectl node show {names[0][:-1]}", 3)[0] == [
            n for n in names if n.startswith(names[0][:-1])
        ]
    assert completed("promovolvectl version -o js", 3) == (["json", "jsonl"], "")
    assert completed("promovolvectl node list -p ", 4) == (["local"], "")
    assert completed("promovolvectl no-such-noun x", 2) == ([], "")
    (tmp_path / "config.toml").write_text("not toml")
    assert completed("promovolvectl node show ", 3) == ([], "")


def test_what_the_cache_holds_is_not_trusted(tmp_path: Path) -> None:
    write_profile(tmp_path / "config.toml", Profile(name="local"), make_current=True)
    for text in ("", "[]", '{"NODE": 3}', '{"NODE": ["x", ["a"]]}'):
        paths.cache_dir().mkdir(parents=True, exist_ok=True)
        (paths.cache_dir() / "names-local.json").write_text(text)
        assert list(offered.offered("NODE")) == []
