"""`sim run` and `sim replay` as a person starts them: the simulator is a process of its own."""

from __future__ import annotations

import json
import os
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


def test_a_violation_ends_with_10_and_a_token_that_replays_it() -> None:
    done = sim("replay", "1.n4.s60.plost-write", "-o", "json")
    assert done.returncode == 10, done.stderr
    (violation,) = json.loads(done.stdout)["violations"]
    assert violation["invariant"] == "I2"
    assert violation["replay"] == "1.n4.s60.plost-write"


def test_hosts_come_from_a_file(tmp_path: Path) -> None:
    status = tmp_path / "status.json"
    status.write_text(json.dumps({"nodes": [{"name": name, "roles": EVERY_ROLE} for name in ("east", "west")]}))
    done = sim("run", "--seeds", "1", "--hours", "0.003", "--from", str(status))
    assert done.returncode == 0, done.stderr
    assert "SEEDS 1" in done.stdout


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("replay", "7.q"), 2, "no part of a replay token"),
        (("run", "--faults", "moon"), 2, "moon is not of"),
        (("run", "--from", "x", "--live"), 2, "say one of them"),
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
