"""Checks of `docs/checks.md` for every answer at once: what stdout, types and failures may hold (V10, V11, V13)."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml
from conftest import Invoke
from fake_server import META, FakeNode
from msgspec import inspect
from samples import SAMPLES
from test_cli_commands import READS

from node.admin import protocol as p
from promovolvectl.cli.render import Answer, View, plain, render
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


WRITING = [("version", "-o", "json"), ("--version",), ("--help",), ("explain",), ("node", "list")]


@pytest.mark.parametrize("words", WRITING)
def test_an_output_that_was_closed_before_is_said_so(words: tuple[str, ...], tmp_path: Path) -> None:
    """`>&-`: the number is free, and what is opened next must not become the output."""
    with FakeNode({p.GetNodes: lambda _: SAMPLES["NodeList"]}) as node:
        node.write(tmp_path)
        command = [sys.executable, "-c", "from promovolvectl.cli.main import run; run()", *words]
        closed = ["sh", "-c", '"$@" >&-', "sh", *command]
        done = subprocess.run(closed, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        silent = subprocess.run(["sh", "-c", '"$@" 2>&- <&-', "sh", *command], timeout=60, check=False)
    assert done.returncode == 17, done.stderr
    assert "standard output can't be written" in done.stderr
    assert "Exception ignored" not in done.stderr
    assert silent.returncode == 0
    assert reports(tmp_path) == ""


@pytest.mark.parametrize("words", WRITING)
def test_check_v13_a_full_disk_under_the_output_is_said_without_anybodys_data(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    with FakeNode({p.GetNodes: lambda _: SAMPLES["NodeList"]}) as node, Path("/dev/full").open("w") as full:
        node.write(tmp_path)
        command = [sys.executable, "-c", "from promovolvectl.cli.main import run; run()", *words]
        env = {**os.environ, "PGPASSWORD": SENTINEL}
        done = subprocess.run(command, env=env, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 17, done.stderr
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert SENTINEL not in done.stderr + reports(tmp_path)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("nosuch",), 2),
        (("node", "nosuch", "-o", "json"), 2),
        (("node", "show", "x"), 3),
        (("node", "list", "-v"), 0),
        (("node", "list", "--ci", "github", "--debug"), 0),
    ],
)
def test_a_full_disk_under_standard_error_changes_no_status(
    words: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    def nobody(request: p.GetNode) -> p.NodeShow:
        raise p.AdminRefusal(3, "E-NOT-FOUND", "no node x")

    with (
        FakeNode({p.GetNodes: lambda _: SAMPLES["NodeList"], p.GetNode: nobody}) as node,
        Path("/dev/full").open("w") as full,
    ):
        node.write(tmp_path)
        command = [sys.executable, "-c", "from promovolvectl.cli.main import run; run()", *words]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=full, timeout=60, check=False)
    assert done.returncode == status
    assert reports(tmp_path) == ""


def reports(folder: Path) -> str:
    return "\n".join(path.read_text() for path in folder.rglob("report-*.txt"))
