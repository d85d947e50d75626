"""Checks of `docs/checks.md` for every answer or every surrounding at once: V10, V11, V13 to V16, E2."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml
from conftest import Invoke
from fake_server import META, FakeNode
from msgspec import inspect
from samples import SAMPLES, operation
from test_cli_commands import READS, drain_node

from node.admin import protocol as p
from promovolvectl.cli import follow, waiting
from promovolvectl.cli.follow import POLL_S
from promovolvectl.cli.render import FORMATS, Answer, View, plain, render
from promovolvectl.cli.schemas import TYPES, schema_of
from promovolvectl.cli.terminal import resolve
from promovolvectl.client.profiles import load_file

PIPE = resolve({}, tty=False, columns=80)
ESCAPE = "\x1b"
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
SENTINEL = "sentinel-7f3a"

# ---- V10

WARNINGS = tuple(
    p.Warned(code=code, text=text)
    for code, text in (
        ("W-CLOCK", "entity-2's clock is 41 s ahead"),
        ("W-MAP-FULL", "serve-17 of entity-1 is 97 % full"),
        ("W-PROTOCOL", "entity-3 speaks protocol 1, this node 2"),
        ("W-ODD", 'a "quoted" \x1b[31mtext\nof two lines, {"kind": "Error"}'),
    )
)


@pytest.fixture(scope="module")
def warning() -> Iterator[FakeNode]:
    """A node that has something to say beside every answer, and misses another."""
    missing = (p.Missing(node="entity-9", reason="no answer in 2 s", since="2026-11-29T13:58:40.001Z"),)
    meta = msgspec.structs.replace(META, warnings=WARNINGS, missing=missing)
    handlers = {request: (lambda _, kind=kind: SAMPLES[kind]) for _, request, kind in READS}
    with FakeNode(handlers, meta) as node:
        yield node


def test_check_v10_whatever_a_node_warns_of_stdout_is_one_document(
    warning: FakeNode, tmp_path: Path, invoke: Invoke
) -> None:
    """Every command that asks, with all that there is to say at once, as talkative as can be."""
    warning.write(tmp_path)
    told = [{"code": each.code, "text": each.text} for each in WARNINGS]
    for line, _, kind in READS:
        code, out, err = invoke(*line.split(), "-o", "json", "-v")
        document = json.loads(out)
        assert (document["kind"], document["warnings"], document["complete"]) == (kind, told, False), line
        assert code in (0, 10, 12, 5), line
        assert ESCAPE not in out + err, line


@pytest.mark.parametrize("form", ["json", "yaml", "jsonl", "csv"])
def test_check_v10_warnings_of_the_interpreter_and_of_nodes_leave_stdout_alone(
    form: str, warning: FakeNode, tmp_path: Path
) -> None:
    """Standard output and error on one stream, as in a container with a terminal, and apart."""
    warning.write(tmp_path)
    env = {**os.environ, "PYTHONWARNINGS": "default", "PYTHONDEVMODE": "1"}
    command = [sys.executable, "-c", "from promovolvectl.cli.main import run; run()", "node", "list", "-v", "-o", form]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 12
    assert "W-CLOCK" in done.stderr or form in ("json", "yaml")
    rows = len(SAMPLES["NodeList"].items)
    match form:
        case "json":
            assert len(json.loads(done.stdout)["items"]) == rows
        case "yaml":
            assert len(yaml.safe_load(done.stdout)["items"]) == rows
        case "jsonl":
            assert len([json.loads(line) for line in done.stdout.splitlines()]) == rows
        case _:
            assert len(list(csv.reader(io.StringIO(done.stdout)))) == rows + 1


# ---- V11

TEXTS = ("5672", "null", "true", "1e3", "0x1f", "2026-11-29T14:03:11.204Z", "", "ä\U0001f40e", "- a: [b]")
DEPTH_MAX = 6


def made(kind: inspect.Type, many: int, text: str, *, null: bool, depth: int = 0) -> Any:
    """A value of the type as builtins: lists of so many, this text for every text, 5672 for every number."""

    def inner(each: inspect.Type) -> Any:
        return made(each, many, text, null=null, depth=depth + 1)

    count = many if depth < DEPTH_MAX else 0
    match kind:
        case inspect.StructType(fields=fields):
            return {field.encode_name: inner(field.type) for field in fields}
        case inspect.TupleType(item_types=items):
            return [inner(each) for each in items]
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return [inner(item) for _ in range(count)]
        case inspect.DictType(value_type=value):
            return {f"{text}{number}": inner(value) for number in range(count)}
        case inspect.UnionType(types=types):
            none = [each for each in types if isinstance(each, inspect.NoneType)]
            return None if none and (null or depth >= DEPTH_MAX) else inner(next(t for t in types if t not in none))
        case _:
            return scalar(kind, many, text)


def scalar(kind: inspect.Type, many: int, text: str) -> Any:
    match kind:
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.EnumType(cls=cls):
            return next(iter(cls)).value
        case inspect.IntType():
            return 5672
        case inspect.FloatType():
            return 56.72
        case inspect.BoolType():
            return bool(many)
        case inspect.BytesType():
            return "bm90aGluZw=="
        case inspect.StrType() | inspect.AnyType():
            return text
        case _:
            raise AssertionError(f"no value for {kind}")


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_check_v11_types_are_the_same_in_empty_and_full_answers(kind: str) -> None:
    """None, one and three of everything, with texts that look like something else: each fits the committed schema, and
    YAML says the same as JSON."""
    validator = jsonschema.Draft202012Validator(schema_of(kind))
    shape = inspect.type_info(TYPES[kind])
    for many, null in ((0, True), (1, False), (1, True), (3, False)):
        for text in TEXTS:
            payload = made(shape, many, text, null=null)
            answer = Answer(kind, plain(msgspec.convert(payload, TYPES[kind], strict=False)), META)
            document = json.loads(render(answer, View("json"), PIPE))
            validator.validate(document)
            assert {key: document[key] for key in payload} == payload
            assert yaml.safe_load(render(answer, View("yaml"), PIPE)) == document


# ---- V13


@pytest.mark.parametrize("raw", [b"\xff" + SENTINEL.encode(), SENTINEL.encode(), b"\x83\x01\xa0" + SENTINEL.encode()])
def test_check_v13_a_frame_that_cannot_be_read_is_not_repeated(raw: bytes, tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({p.GetNodes: lambda _: raw}) as node:
        node.write(tmp_path)
        code, out, err = invoke("node", "list", "-t", "2s")
    assert (code, out) == (14, "")
    assert SENTINEL not in err + reports(tmp_path)


def test_check_v13_a_key_file_that_cannot_be_read_is_not_repeated(tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode({}) as node:
        config = node.write(tmp_path)
        key = Path(load_file(config).profiles["local"].key_file)
        key.write_text(f"secret = '{SENTINEL}'\n")
        key.chmod(0o600)
        for form in ("table", "json"):
            code, out, err = invoke("node", "list", "-o", form)
            assert (code, out) == (16, "")
            assert SENTINEL not in err + reports(tmp_path)


@pytest.mark.parametrize("words", [("version", "-o", "json"), ("--help",), ("explain",), ("node", "list")])
def test_check_v13_a_full_disk_under_the_output_is_said_without_anybodys_data(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    with FakeNode({p.GetNodes: lambda _: SAMPLES["NodeList"]}) as node, Path("/dev/full").open("w") as full:
        node.write(tmp_path)
        command = [sys.executable, "-c", "from promovolvectl.cli.main import run; run()", *words]
        env = {**os.environ, "PGPASSWORD": SENTINEL}
        done = subprocess.run(
            command, env=env, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert done.returncode == 17, done.stderr
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert SENTINEL not in done.stderr + reports(tmp_path)


def reports(folder: Path) -> str:
    return "\n".join(path.read_text() for path in folder.rglob("report-*.txt"))


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
        command = [sys.executable, "-c", "from promovolvectl.cli.main import run; run()", *words]
        env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run(command, env=env, stdout=writes, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writes)
    assert (done.returncode, done.stderr) == (141, "")


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
