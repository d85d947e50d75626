"""`dashboard --web`: what it refuses before anything listens, and the command that it starts for each window."""

from __future__ import annotations

import shlex
import socket
import sys
from pathlib import Path

import pytest
from conftest import Invoke

from promovolvectl.cli import dashboard
from promovolvectl.cli.options import Flags
from promovolvectl.cli.run import Run
from promovolvectl.client.profiles import Profile, write_profile


@pytest.fixture(autouse=True)
def profile(tmp_path: Path) -> None:
    write_profile(tmp_path / "config.toml", Profile(name="x"), make_current=True)


@pytest.mark.parametrize(
    "words",
    [
        "--web --bind 192.0.2.7",
        "--web --bind 192.0.2.7 --insecure-bind",
        "--web --bind 192.0.2.7 --insecure-bind --reason ' '",
        "--web --bind 192.0.2.7 --reason lab",
        "--web --bind 0.0.0.0 --insecure-bind --reason lab",
        "--web --bind :: --insecure-bind --reason lab",
        "--web --bind 224.0.0.1 --insecure-bind --reason lab",
        "--web --bind 2001:db8::1",
        "--web --bind fe80::1%eth0 --insecure-bind --reason lab",
        "--web --bind ::ffff:192.0.2.7",
        "--web --bind localhost",
        "--web --bind evil.example --insecure-bind --reason lab",
        "--web --port 70000",
        "--web --once",
        "--web --record r.jsonl",
        "--bind 127.0.0.1",
        "--port 8080",
        "--reason lab",
    ],
)
def test_what_must_not_be_listened_on_is_refused(
    words: str, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a socket exists."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket, "create_server", lambda *_, **__: pytest.fail("it listens"))
    status, out, err = invoke("dashboard", *shlex.split(words))
    assert (status, out) == (2, ""), err
    assert "E-USAGE" in err
    assert not (tmp_path / "r.jsonl").exists()


def test_an_address_of_no_machine_and_a_port_that_is_taken_are_told(invoke: Invoke) -> None:
    status, _, err = invoke(
        *("dashboard", "--web", "--bind", "192.0.2.7", "--insecure-bind", "--reason", "a lab of one\x1b[31m")
    )
    assert status == 17
    assert "reachable from other machines: a lab of one\\x1b" in err
    assert "E-LISTEN" in err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, out, err = invoke("dashboard", "--web", "--port", str(port))
    assert (status, out) == (17, "")
    assert f"127.0.0.1 port {port} can't be listened on" in err


def test_a_profile_and_a_recording_that_are_not_there_are_refused_here_and_not_in_the_browser(
    invoke: Invoke, tmp_path: Path
) -> None:
    assert invoke("dashboard", "--web", "-p", "absent")[0] == 3
    status, _, err = invoke("dashboard", "--web", "--replay", str(tmp_path / "absent.jsonl"))
    assert status == 17
    assert "not a recording" in err


def test_a_library_that_is_not_installed_is_named(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And the Python that must have it, as it is typed from here: a bare `pip` is the system's."""
    python = tmp_path / ".venv/bin/python"
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.chdir(tmp_path)  # which its Python is not below
    status, _, err = invoke("dashboard", "--web")
    assert status == 17
    assert f"{shlex.quote(sys.executable)} -m pip install 'promovolvectl[web]'" in err
    monkeypatch.setattr("sys.executable", str(python))
    assert "hint: .venv/bin/python -m pip install 'promovolvectl[web]'" in invoke("dashboard", "--web")[2]


def test_a_window_is_this_command_again_with_nothing_secret_in_it(
    monkeypatch: pytest.MonkeyPatch, invoke: Invoke
) -> None:
    """Every word is one word, whatever stands in it: there is no shell, and no value is taken for a flag."""
    started: list[tuple[str, ...]] = []

    def serve(run: Run, shown: tuple[str, ...], *_: object) -> int:
        assert isinstance(run.flags, Flags)
        started.append(shown)
        return 0

    monkeypatch.setattr(dashboard, "_serve", serve)
    odd = "x; touch /tmp/y $(id) `id` --web"
    words = ("--screen", "nodes", "--read-only", "--theme", "mono", "-p", odd, "--endpoint", "127.0.0.1:1")
    assert invoke("dashboard", "--web", *words, "--replay", "-r.jsonl", "--speed", "2")[0] == 0
    interpreter, *_, command = started[0][: started[0].index("dashboard") + 1]
    assert (interpreter, command) == (dashboard.sys.executable, "dashboard")
    assert started[0][started[0].index("dashboard") + 1 :] == (
        f"--profile={odd}",
        *("--endpoint=127.0.0.1:1", "--screen=nodes", "--theme=mono", "--replay=-r.jsonl", "--speed=2.0"),
        "--read-only",
    )
