"""One command line in this process, as from a pipe or a terminal, and what every answer must be like."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import json
import os
import pty
import re
import signal
import struct
import sys
import termios
import threading
import tty
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TextIO

import msgspec
import yaml
from jsonschema import Draft202012Validator
from overheard import EVERYBODY

from promovolvectl.cli.main import main
from promovolvectl.cli.schemas import schema_of
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.errors import CommandFailed

ESCAPE = "\x1b"
_ANSWERS = frozenset((0, 10, 12, 13))  # statuses that come with an answer, be it an empty list
_MAYBE = frozenset((5, 15))  # with an answer that says so, or with an error
_KEPT = ("PATH", "HOME", "LANG", "PYTHONPATH", "TMPDIR")


@dataclass(frozen=True)
class Ended:
    """How one command line ended."""

    words: tuple[str, ...]
    status: int
    out: str
    err: str

    @property
    def answered(self) -> bool:
        return self.status in _ANSWERS or (self.status in _MAYBE and bool(self.out))

    def __str__(self) -> str:
        return f"{' '.join(self.words)}: status {self.status}\n--- stdout\n{self.out[:2000]}\n--- stderr\n{self.err}"


def in_pipe(words: tuple[str, ...], env: Mapping[str, str]) -> Ended:
    encoding = "ascii" if env.get("LC_ALL") == "C" else "utf-8"
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    err = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    status = _ran(words, env, out, err)
    ended = Ended(words, status, _written(out), _written(err))
    EVERYBODY.heard(env, words, ended.out, ended.err)
    return ended


def on_terminal(words: tuple[str, ...], env: Mapping[str, str], columns: int = 100) -> Ended:
    """Both streams on pseudo-terminals of their own; nobody sits at the keyboard."""
    with _screen(columns) as (out, read_out), _screen(columns) as (err, read_err):
        status = _ran(words, env, out, err)
        return Ended(words, status, read_out(), read_err())


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.detach()
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


@contextlib.contextmanager
def _screen(columns: int) -> Iterator[Any]:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    seen: list[bytes] = []
    reader = threading.Thread(target=_drain, args=(ours, seen))
    reader.start()
    stream = os.fdopen(theirs, "w", encoding="utf-8")

    def read() -> str:
        stream.close()
        reader.join(10)
        return b"".join(seen).decode()

    try:
        yield stream, read
    finally:
        stream.close()
        reader.join(10)
        os.close(ours)


def _drain(ours: int, seen: list[bytes]) -> None:
    with contextlib.suppress(OSError):  # the other side has closed
        while data := os.read(ours, 65_536):
            seen.append(data)


def _ran(words: tuple[str, ...], env: Mapping[str, str], out: TextIO, err: TextIO) -> int:
    before = dict(os.environ), sys.stdin, sys.stdout, sys.stderr
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    with Path(os.devnull).open(encoding="utf-8") as nobody:
        try:
            os.environ.clear()
            os.environ.update({**kept, **env, "TYPER_USE_RICH": "0"})
            sys.stdin, sys.stdout, sys.stderr = nobody, out, err
            status = main(words)
            out.flush()
            err.flush()
            return status
        finally:
            os.environ.clear()
            os.environ.update(before[0])
            sys.stdin, sys.stdout, sys.stderr = before[1:]
            for number, handler in handlers.items():
                signal.signal(number, handler)


# --- asking a cluster once


class Remembered:
    """What a cluster answered, in place of `AdminClient.call`: a leaf is answered by the real cluster the first time,
    and shown the same in every other format and surrounding. A question that comes again within one command, as about
    an operation that is followed, is answered as often as it was; whoever asks something new, asks the cluster."""

    def __init__(self) -> None:
        self._real = AdminClient.call
        self._answers: dict[tuple[Any, ...], tuple[AdminClient, list[Any]]] = {}
        self._asked: dict[AdminClient, Counter[tuple[Any, ...]]] = {}

    async def call(self, client: AdminClient, params: Any, timeout_ms: int = 10_000) -> Any:
        question = (client.profile.endpoints, type(params), msgspec.json.encode(params))
        first, answers = self._answers.setdefault(question, (client, []))
        counts = self._asked.setdefault(client, Counter())
        number = counts[question]
        counts[question] += 1
        if client is not first and answers:
            return _given(answers[min(number, len(answers) - 1)])
        try:
            answers.append(await self._real(client, params, timeout_ms))
        except CommandFailed as failed:
            answers.append(failed)
        return _given(answers[-1])


def _given(answer: Any) -> Any:
    if isinstance(answer, CommandFailed):
        raise answer
    return answer


# --- what an answer must be like


def check(found: Ended, form: str, declared: tuple[int, ...]) -> None:
    """Fails with the whole cell when status, streams or the answer's form break the contract."""
    assert found.status in declared, f"undeclared status: {found}"
    assert "Traceback" not in found.err, found
    assert ESCAPE not in found.err, found
    if not found.answered:
        _check_error(found, form)
        return
    try:
        _CHECKS[form](found.out)
    except Exception as error:
        raise AssertionError(f"{form}: {error!r}\n{found}") from error


def _check_error(found: Ended, form: str) -> None:
    assert found.out == "", found
    assert found.err, found
    if form in ("json", "yaml", "jsonl"):
        document = json.loads(found.err.splitlines()[-1])
        _validator("Error").validate(document)
        assert document["exit"] == found.status, found
    else:
        assert re.search(r"^error: .+ \(E-[A-Z0-9-]+\)$", found.err, re.MULTILINE) or "\n" in found.err, found


def _check_document(document: Any) -> None:
    if "type" in document and "object" in document and "api_version" not in document:
        assert document["type"] in ("snapshot", "changed", "event", "gap", "heartbeat")  # of `watch`
    elif "$schema" in document:
        Draft202012Validator.check_schema(document)
    else:
        _validator(document["kind"]).validate(document)


def _check_json(text: str) -> None:
    _check_document(json.loads(text))


def _check_yaml(text: str) -> None:
    for document in yaml.safe_load_all(text):
        _check_document(document)


def _check_jsonl(text: str) -> None:
    for line in text.splitlines():
        document = json.loads(line)
        assert isinstance(document, dict)
        if "api_version" in document:
            _check_document(document)


def _check_csv(text: str) -> None:
    heading, *rows = csv.reader(io.StringIO(text))
    assert heading
    assert all(re.fullmatch(r"[a-z][a-z0-9_.]*", name) for name in heading), heading
    assert all(len(row) == len(heading) for row in rows)


def _check_names(text: str) -> None:
    assert all(re.fullmatch(r"[a-z-]+/\S.*", line) for line in text.splitlines())


def _check_text(text: str) -> None:
    assert not text or text.endswith("\n")  # rows, of which there may be none
    assert "\r" not in text


_CHECKS = {
    "table": _check_text,
    "wide": _check_text,
    "json": _check_json,
    "yaml": _check_yaml,
    "jsonl": _check_jsonl,
    "csv": _check_csv,
    "name": _check_names,
    "value": _check_text,
}


@cache
def _validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator(schema_of(kind))
