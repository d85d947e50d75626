"""Every example of every help is run: what a person copies from there works."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import Invoke
from fake_server import FakeNode
from samples import SAMPLES, operation

from node.admin import protocol as p
from promovolvectl.cli.nouns import DEPTH
from promovolvectl.cli.options import hoisted
from promovolvectl.cli.tree import root
from promovolvectl.cli.walk import Leaf, leaves
from promovolvectl.client.profiles import Profile, write_profile

LEAVES = tuple(leaves())
EXAMPLES = [(leaf, example) for leaf in LEAVES for example in leaf.about.examples]
# These start or stop processes in folders that a person may have, read or write a store, or draw on a terminal for as
# long as it is there; the matrix runs them for real, here they are parsed. So are those that wait for what one sample
# can't show: a silence of all nodes, a shard's number.
PARSED = {
    "up", "down", "node start", "dashboard", "cluster watch", "cluster shutdown",
    "bench serve", "bench actors", "bench replication",
    "shard wait", "store status", "store leases", "store verify", "store backup", "store restore", "store compact",
}  # fmt: skip
BY_TYPE = {type(sample): sample for sample in SAMPLES.values() if isinstance(sample, msgspec.Struct)}
DONE: dict[type, Any] = {
    p.Operation: operation("done"),
    p.Replay: msgspec.structs.replace(BY_TYPE[p.Replay], state="done"),
    p.Done: p.Done(changed=True, message=""),
    p.PieceTaken: p.PieceTaken(wanted=0),
}


def split(example: str) -> list[list[str]]:
    lexer = shlex.shlex(example, posix=True, punctuation_chars="|&;><")
    lexer.whitespace_split = True
    lines: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("|&;><"):
            lines.append([])
        else:
            lines[-1].append(word)
    return [line[1:] for line in lines if line[:1] == ["promovolvectl"]]


@pytest.fixture(scope="module")
def answering() -> Iterator[FakeNode]:
    """A node that has an answer to everything."""
    replies = {**BY_TYPE, **DONE}
    handlers = {
        request: (lambda _, reply=reply: replies[reply]) for request, reply in p.REPLIES.items() if reply in replies
    }
    with FakeNode(handlers) as node:
        yield node


async def simulated(arguments: Sequence[str], **_: Any) -> Any:
    """In place of minutes of simulation, which tests/sim runs: what it was told to do makes a report."""
    assert arguments
    return SAMPLES["SimReport"]


def parsed(words: list[str]) -> None:
    """Raises what the parser raises."""
    command, line = root(), hoisted(words, DEPTH)
    while hasattr(command, "list_commands"):
        name, *line = line
        command = command.get_command(None, name)
    command.make_context(" ".join(words), line)


@pytest.mark.parametrize(("leaf", "example"), EXAMPLES, ids=[example for _, example in EXAMPLES])
def test_an_example_runs(
    leaf: Leaf, example: str, answering: FakeNode, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = answering.write(tmp_path)
    for name in ("prod", "old", "a", "empty"):
        write_profile(config, Profile(name=name), make_current=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Night trains run again.")))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PROMOVOLVECTL_TIMEOUT", "1s")
    monkeypatch.setattr("promovolvectl.cli.sim.simulate", simulated)
    for name in ("article.txt", "config.toml"):
        (tmp_path / name).touch()
    lines = split(example)
    assert lines, "no command of ours"
    for words in lines:
        if leaf.name in PARSED:
            parsed(words)
            continue
        waits = ("-t", "1s") if leaf.words[-1] == "wait" else ()  # for what this node is not
        code, _, err = invoke(*words, *waits)
        assert code in {int(status) for status in leaf.about.exits} - {1, 2}, f"{words}: {code}\n{err}"
