"""`sim run` and `sim replay` as a person starts them: the simulator is a process of its own."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "from promovolvectl.cli.main import run; run()"]
EVERY_ROLE = ["api", "entity", "singleton"]


def sim(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, "sim", *words], capture_output=True, text=True)


def test_a_run_that_holds_says_how_much_was_tried() -> None:
    done = sim("run", "--seeds", "2", "--nodes", "3", "--hours", "0.003", "-o", "json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["kind"], report["seeds"], report["violations"]) == ("SimReport", 2, [])
    assert report["virtual_hours"] > 0
    assert report["events"] > 1_000
    assert "2 of 2 seeds, 0 failed" in done.stderr


def test_a_violation_ends_with_10_and_all_that_is_needed_to_see_it_again() -> None:
    token = "1.n4.s60.plost-write"
    done = sim("replay", token, "-o", "json")
    assert done.returncode == 10, done.stderr
    (violation,) = json.loads(done.stdout)["violations"]
    assert violation["invariant"] == "I2"
    assert violation["replay"] == token
    assert violation["command"] == f"promovolvectl sim replay {token}"
    assert violation["text"] in violation["last_events"][-1]
    assert any(line.startswith("loss_ratio=") for line in violation["knobs"])
    told = sim("replay", token)
    assert told.returncode == 10, told.stderr
    lines = [line.strip() for line in told.stdout.splitlines()]
    for wanted in (*violation["knobs"], *violation["last_events"], f"again: {violation['command']}"):
        assert wanted.strip() in lines
    assert f"seed 1: I2 at {violation['at_s']:.3f} s: {violation['text']}" in lines


def test_a_failure_on_the_hosts_of_a_file_replays_with_that_file_only(tmp_path: Path) -> None:
    status, other = tmp_path / "two hosts.json", tmp_path / "other.json"
    for file, names in ((status, ("east", "west")), (other, ("east", "south"))):
        file.write_text(json.dumps({"nodes": [{"name": name, "roles": EVERY_ROLE} for name in names]}))
    done = sim("replay", "1.s60.plost-write", "--from", str(status), "-o", "json")
    assert done.returncode == 10, done.stderr
    (violation,) = json.loads(done.stdout)["violations"]
    words = shlex.split(violation["command"])
    assert words[:3] == ["promovolvectl", "sim", "replay"]
    assert words[-2:] == ["--from", str(status)]
    again = sim(*words[2:], "-o", "json")
    assert json.loads(again.stdout)["violations"] == [violation]
    for without, said in (((), "none is given"), (("--from", str(other)), "the given one is")):
        refused = sim("replay", violation["replay"], *without)
        assert refused.returncode == 2, refused.stderr
        assert said in refused.stderr


def test_hosts_come_from_a_file(tmp_path: Path) -> None:
    status = tmp_path / "status.json"
    status.write_text(json.dumps({"nodes": [{"name": name, "roles": EVERY_ROLE} for name in ("east", "west")]}))
    done = sim("run", "--seeds", "1", "--hours", "0.003", "--from", str(status))
    assert done.returncode == 0, done.stderr
    assert "SEEDS 1" in done.stdout


@pytest.mark.parametrize(
    "document",
    [
        "[" * 100_000,
        b"\xff",
        '{"nodes": [{"name": "a\\u001b[31m", "roles": []}]}',
        '{"nodes": [{"name": "a", "roles": [[]]}]}',
    ],
    ids=["deep", "no-text", "control", "roles"],
)
def test_a_file_that_is_no_topology_is_refused_by_its_name(tmp_path: Path, document: str | bytes) -> None:
    file = tmp_path / "status.json"
    file.write_bytes(document if isinstance(document, bytes) else document.encode())
    done = sim("run", "--seeds", "1", "--from", str(file))
    assert (done.returncode, str(file) in done.stderr) == (2, True), done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("replay", "7.q"), 2, "no part of a replay token"),
        (("run", "--faults", "moon"), 2, "moon is not of"),
        (("run", "--from", "x", "--live"), 2, "say one of them"),
        (("run", "--from", "x", "--nodes", "4"), 2, "--from, --nodes"),
        (("run", "--from", "/nowhere.json"), 17, "/nowhere.json"),
    ],
)
def test_what_can_not_be_run_is_said(words: tuple[str, ...], status: int, said: str) -> None:
    done = sim(*words)
    assert done.returncode == status, done.stderr
    assert said in done.stderr


def test_ctrl_c_ends_the_simulator_too() -> None:
    command = [*COMMAND, "sim", "run", "--seeds", "5000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as child:
        assert child.stderr is not None
        progress = next(line for line in child.stderr if "seeds" in line)
        os.killpg(child.pid, signal.SIGINT)
        child.stderr.read()  # until everybody who holds it has ended
    assert child.returncode == 130, progress
