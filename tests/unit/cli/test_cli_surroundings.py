"""Checks of `docs/checks.md` for every surrounding at once: a pipe, a job, a reader who leaves, an answer that is late
(V14 to V16, E2)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Invoke
from drain_answers import drain_node
from fake_server import FakeNode
from samples import SAMPLES, operation

from node.admin import protocol as p
from node.admin.protocol import diagnosis as d
from promovolvectl.cli import follow, waiting
from promovolvectl.cli.follow import POLL_S
from promovolvectl.cli.render import FORMATS

ESCAPE = "\x1b"
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
PROGRAM = [sys.executable, "-c", "from promovolvectl.cli.main import run; run()"]

# ---- V14


class Clock:
    """Stands in for a module's `time` and `asyncio`: sleeping takes no time here, and has taken it there."""

    def __init__(self, patch: pytest.MonkeyPatch, module: Any, *, faster: float = 1) -> None:
        self.now = 1_000.0
        self.faster = faster
        patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        patch.setattr(module, "asyncio", SimpleNamespace(sleep=self.sleep))

    async def sleep(self, seconds: float) -> None:
        self.now += seconds * self.faster
        await asyncio.sleep(0)


@pytest.mark.parametrize("verb", ["drain", "move"])
def test_check_v14_five_minutes_of_work_are_no_flood(
    verb: str, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pipe: nine phases of a drain, of which one is held up by another entity each minute, or a plan of 600 moves:
    a line for each change, what holds it up each 30 s, and no control byte."""
    clock = Clock(monkeypatch, follow, faster=4)  # a second for each look
    began, names = clock.now, ("readiness", "ingestion", "singletons", "shards", "asks", "replicas", "flush", "leave")
    looks = 0

    def look(_: Any) -> p.Operation:
        nonlocal looks
        looks += 1
        at_s = clock.now - began
        phases = []
        for number, name in enumerate(names):
            from_s, to_s = (4 * number, 4 * number + 4) if number < 3 else (12, 280) if number == 3 else (280, 300)
            state = "done" if at_s >= to_s else "running" if at_s >= from_s else "waiting"
            held = (f"entity/campaign/c-{at_s // 60:.0f}: a write is under way",) if name == "shards" else ()
            phases.append(p.OperationPhase(name=name, state=state, elapsed_s=at_s, blockers=held))
        if verb == "move":
            moves = f"{2 * at_s:.0f}/600 moved, 8 moving, {600 - 2 * at_s:.0f} waiting"
            phases = [p.OperationPhase(name="moves", state="running", elapsed_s=at_s, detail=moves)]
        over = at_s >= 300
        return operation("done" if over else "running", verb=verb, phases=tuple(phases), elapsed_s=at_s)

    handlers = {**drain_node(), p.CommitPlan: look, p.GetOperation: look}
    with FakeNode(handlers) as node:
        node.write(tmp_path)
        code, _, err = invoke("node", "drain", "node-2", "--yes", "-t", "10m")
    assert code == 0
    assert looks >= 300 / (4 * POLL_S)
    lines = err.splitlines()
    assert len(lines) <= 40, err
    assert not re.search(r"[\r\x1b]", err)
    assert sum("campaign/c-" in line for line in lines) >= (5 if verb == "drain" else 0)


# ---- V15

COMBINATIONS = (
    {},
    {"GITHUB_ACTIONS": "true"},
    {"GITHUB_ACTIONS": "true", "NO_COLOR": "1"},
    {"GITHUB_ACTIONS": "true", "FORCE_COLOR": "1"},
    {"CI": "true", "FORCE_COLOR": "1", "COLORTERM": "truecolor"},
    {"FORCE_COLOR": "1", "NO_COLOR": ""},
    {"FORCE_COLOR": "1", "TERM": "dumb"},
    {"FORCE_COLOR": "3", "PY_COLORS": "1", "TERM": "xterm-256color"},
    {"NO_COLOR": "", "PY_COLORS": "1"},
    {"CLICOLOR_FORCE": "1", "TERM": "xterm-256color"},
    {"TERM": "dumb", "COLORTERM": "truecolor"},
    {"CI": "true", "GITHUB_ACTIONS": "true", "FORCE_COLOR": "1", "NO_COLOR": "1", "PY_COLORS": "1"},
)
LINES = (
    ("--help",), ("node", "drain", "--help"), ("nodee",), ("node", "drain"), ("node", "list", "--nope"),
    ("explain",), ("explain", "-o", "json"), ("explain", "XYZ"), ("help", "exit-codes"),
)  # fmt: skip
SAID = """
import json, os, subprocess, sys
os.environ["TYPER_USE_RICH"] = "0"
from promovolvectl.cli.main import main
for words in json.loads(sys.argv[1]):
    print("###", main(words), flush=True)
"""


def test_check_v15_help_and_usage_errors_are_the_same_bytes_whatever_is_set() -> None:
    plain_env = {name: value for name, value in os.environ.items() if name not in ("TERM", "COLORTERM", "COLUMNS")}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SAID, json.dumps(LINES)],
            env={**plain_env, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for more in COMBINATIONS
    ]
    ended = [tuple(MOMENT.sub("now", text) for text in each.communicate(timeout=120)) for each in running]
    assert ended[0][0].count("### 2") == 3
    assert ended[0][1].count("usage: promovolvectl") >= 2
    for more, said in zip(COMBINATIONS, ended, strict=True):
        assert said == ended[0], more
    assert ESCAPE not in "".join(ended[0])


def test_check_v15_colour_comes_where_it_is_asked_for_and_never_into_json(tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({p.GetClusterStatus: lambda _: SAMPLES["ClusterStatus"]}) as node:
        node.write(tmp_path)
        found = {form: invoke("cluster", "status", "--color", "always", "-o", form)[1] for form in FORMATS}
    assert ESCAPE in found["table"]
    assert not [form for form, text in found.items() if form not in ("table", "wide") and ESCAPE in text]


# ---- V16


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [("--help",), ("serveindex", "dump"), ("help", "exit-codes"), ("node", "list")])
def test_check_v16_a_reader_who_has_left_is_no_mistake(words: tuple[str, ...], unbuffered: str, tmp_path: Path) -> None:
    rows = tuple(
        p.DumpRow(key=f"s|{n}", map="serve-1", version=p.EntryVersion(epoch=1, hlc=n, origin="a"), expires_at=None,
                  removed=False, value=b"x" * 100)
        for n in range(100)
    )  # fmt: skip
    page = p.DumpPage(node="node-1", items=rows, more=False, place=0, after="")
    handlers = {p.GetDump: lambda _: page, p.GetNodes: lambda _: SAMPLES["NodeList"]}
    reads, writes = os.pipe()
    os.close(reads)
    with FakeNode(handlers) as node:
        node.write(tmp_path)
        env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run([*PROGRAM, *words], env=env, stdout=writes, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writes)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_check_v16_who_follows_ends_with_the_line_that_nobody_reads(unbuffered: str, tmp_path: Path) -> None:
    """`events --follow | head -1`."""
    at = "2026-11-29T14:03:11.204Z"
    event = d.EventItem(at=at, topic="shard.moved", object="shard/17", text="n1 → n2", node="n1")
    with FakeNode({d.GetEventList: lambda _: d.EventList(items=(event,), cursor="n1@7:1")}) as node:
        node.write(tmp_path)
        env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        command = [*PROGRAM, "events", "--follow", "-o", "jsonl"]
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            assert json.loads(child.stdout.readline())["object"]["object"] == "shard/17"
            child.stdout.close()
            assert (child.stderr.read(), child.wait(60)) == ("", 141)


# ---- E2


@pytest.mark.parametrize("words", [("cluster", "wait", "--for", "nodes=9"), ("node", "wait", "new-1", "--for", "up")])
def test_check_e2_waiting_ends_within_a_second_of_its_time_however_slow_answers_are(
    words: tuple[str, ...], tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, waiting)
    began, asked = clock.now, []

    def slow(reply: Any) -> Any:
        clock.now += node.timeouts_ms[-1] / 1_000  # the last moment in which the answer is taken
        asked.append(clock.now - began)
        return reply

    with FakeNode({}) as node:
        node.handlers = {
            p.GetClusterStatus: lambda _: slow(SAMPLES["ClusterStatus"]),
            p.GetNodes: lambda _: slow(p.NodeList(items=())),
        }
        node.write(tmp_path)
        code, _, err = invoke(*words, "-t", "20s")
    assert (code, "do not hold" in err) == (9, True)
    assert 20 <= clock.now - began <= 21
    assert len(asked) > 1
