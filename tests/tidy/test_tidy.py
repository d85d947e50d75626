"""Rules of this tree that no linter knows. Each finding is one line `file:line what`, so that it can be jumped to."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("node", "promovolvectl")
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
EDGES = ("node/http/", "node/admin/", "node/crawler/", "node/wiring/process.py")
# The adapters that ARCHITECTURE.md names: they bring the world in, so that nobody else has to.
ADAPTERS = ("node/core/clock.py", "node/core/rng.py", "node/actors/runtime.py")
BANNED = re.compile(
    r"time\.(time|monotonic|perf_counter|process_time)(_ns)?|(datetime|date)\.(now|utcnow|today)"
    r"|uuid\.uuid[14]|uuid[14]|os\.urandom|random\.(?!Random\b)\w+|secrets\.\w+"
)
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError")
CITED = re.compile(r"\b([IR])(\d+)\b")
DEFINED = {"I": range(1, 10), "R": range(1, 4)}

Nodes = Sequence[ast.AST]
Rule = Callable[[str, str, Nodes], Iterator[str]]  # of a file's path, its text and all nodes of its tree


def nodes_of(text: str) -> Nodes:
    return tuple(ast.walk(ast.parse(text)))


def dotted(node: ast.expr) -> str:
    """`a.b.c` of a name or attribute; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def of_the_world(path: str) -> bool:
    """A module that may read clocks and draw randomness: an adapter, or an edge."""
    return path.startswith(EDGES) or path in ADAPTERS or path.endswith("_zmq.py")


def banned_calls(path: str, _text: str, nodes: Nodes) -> Iterator[str]:
    if not path.startswith("node/") or of_the_world(path):
        return
    for found in nodes:
        if isinstance(found, ast.Call) and BANNED.fullmatch(dotted(found.func)):
            yield f"{path}:{found.lineno} calls {dotted(found.func)}: time and randomness are arguments (R2)"


def lengths(path: str, text: str, nodes: Nodes) -> Iterator[str]:
    count = text.count("\n")
    if count > FILE_LINES_MAX:
        yield f"{path}:1 has {count} lines, at most {FILE_LINES_MAX}"
    for found in nodes:
        if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
            size = (found.end_lineno or found.lineno) - found.lineno + 1
            if size > FUNCTION_LINES_MAX:
                yield f"{path}:{found.lineno} {found.name} has {size} lines, at most {FUNCTION_LINES_MAX}"


def bare_excepts(path: str, _text: str, nodes: Nodes) -> Iterator[str]:
    for found in nodes:
        if isinstance(found, ast.ExceptHandler) and found.type is None:
            yield f"{path}:{found.lineno} catches everything without a name"


def lost_tasks(path: str, _text: str, nodes: Nodes) -> Iterator[str]:
    """A task that nobody holds can be collected while it runs, and its error is seen by nobody."""
    for found in nodes:
        if isinstance(found, ast.Expr) and isinstance(found.value, ast.Call):
            name = dotted(found.value.func).rpartition(".")[2]
            if name in ("create_task", "ensure_future"):
                yield f"{path}:{found.lineno} drops the task that it starts"


def prints(path: str, _text: str, nodes: Nodes) -> Iterator[str]:
    """What a person reads goes to a stream that was named; a bare print lands in whatever stdout is."""
    for found in nodes:
        if (
            isinstance(found, ast.Call)
            and dotted(found.func) == "print"
            and not any(keyword.arg == "file" for keyword in found.keywords)
        ):
            yield f"{path}:{found.lineno} prints"


def awaiting_handlers(path: str, _text: str, nodes: Nodes) -> Iterator[str]:
    """R1: an actor's `receive` is a plain function."""
    if not path.startswith("node/") or of_the_world(path):
        return
    for found in nodes:
        if isinstance(found, ast.AsyncFunctionDef) and found.name == "receive":
            yield f"{path}:{found.lineno} a handler awaits (R1)"


def unfinished(path: str, text: str, _nodes: Nodes) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if UNFINISHED.search(line):
            yield f"{path}:{number} is unfinished: {line.strip()}"


def unknown_citations(path: str, text: str, _nodes: Nodes) -> Iterator[str]:
    """Comments and docstrings cite rules and invariants by number; those must exist."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.COMMENT, tokenize.STRING):
            continue
        for letter, digits in CITED.findall(token.string):
            if int(digits) not in DEFINED[letter]:
                yield f"{path}:{token.start[0]} cites {letter}{digits}, which does not exist"


RULES = (
    banned_calls,
    lengths,
    bare_excepts,
    lost_tasks,
    prints,
    awaiting_handlers,
    unfinished,
    unknown_citations,
)


def sources() -> Iterable[Path]:
    return (path for package in PRODUCT for path in sorted((ROOT / package).rglob("*.py")))


@cache
def findings() -> dict[Rule, list[str]]:
    """Each file is read and parsed once for all rules."""
    found: dict[Rule, list[str]] = {rule: [] for rule in RULES}
    for file in sources():
        path, text = file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")
        nodes = nodes_of(text)
        for rule in RULES:
            found[rule] += rule(path, text, nodes)
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_rule(rule: Rule) -> None:
    assert not findings()[rule], "\n".join(findings()[rule])


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (banned_calls, "node/gossip/a.py", "import time\nnow = time.monotonic()\n"),
        (banned_calls, "node/ads/a.py", "from uuid import uuid4\nname = uuid4()\n"),
        (banned_calls, "node/engine/a.py", "import random\nx = random.random()\n"),
        (banned_calls, "node/core/a.py", "from datetime import datetime\nx = datetime.now()\n"),
        (lengths, "node/a.py", "\n" * (FILE_LINES_MAX + 1)),
        (lengths, "node/a.py", "def f():\n" + "    x = 1\n" * FUNCTION_LINES_MAX),
        (bare_excepts, "node/a.py", "try:\n    pass\nexcept:\n    pass\n"),
        (lost_tasks, "node/admin/a.py", "loop.create_task(work())\n"),
        (prints, "promovolvectl/cli/a.py", "print('x')\n"),
        (awaiting_handlers, "node/ads/a.py", "class A:\n    async def receive(self, ctx, message): ...\n"),
        (unfinished, "node/a.py", f"x = 1  # {'TO' + 'DO'}: more\n"),
        (unknown_citations, "node/a.py", "x = 1  # breaks I10\n"),
        (unknown_citations, "node/a.py", '"""See R4."""\n'),
    ],
    ids=lambda value: getattr(value, "__name__", None) or f"{len(value)}-characters",
)
def test_each_rule_finds_what_it_is_for(rule: Rule, path: str, text: str) -> None:
    assert list(rule(path, text, nodes_of(text)))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("node/wiring/process.py", "import time\nnow = time.monotonic()\n"),
        ("node/engine/a.py", "import random\nx = random.Random(7)\n"),
        ("node/engine/a.py", "task = loop.create_task(work())\n"),
        ("promovolvectl/cli/a.py", "import sys\nprint('x', file=sys.stderr)\n"),
        ("node/a.py", "x = 'I9 and R3'  # I1 to I9\n"),
    ],
    ids=str,
)
def test_what_is_right_is_left_alone(path: str, text: str) -> None:
    assert not [found for rule in RULES for found in rule(path, text, nodes_of(text))]


def test_the_architecture_defines_what_is_cited() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for number in DEFINED["I"]:
        assert f"| I{number} |" in text
    for number in DEFINED["R"]:
        assert f"**R{number} " in text


def test_test_modules_have_names_of_their_own() -> None:
    """Two of one name in different folders can't be collected in one run, which no run of a part would show."""
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py"]
    assert sorted({name for name in names if names.count(name) > 1}) == []
