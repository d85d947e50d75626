"""`serveindex dump|load`: entries as JSON Lines, out and in."""

from __future__ import annotations

import secrets
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, TextIO

import msgspec
import typer

from node.admin.protocol import DumpPage, DumpRow, GetDump, LoadTaken, Meta, SendLoad, StageLoad
from node.core.hashing import MAP_COUNT
from promovolvectl.cli.changing import Change, planned
from promovolvectl.cli.leaf import Outcome, leaf
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.serveindex.noun import WHOLE_MS, Maps, Node, app
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.index_kinds import ServeIndexDump

BATCH_BYTES = 256 << 10
BATCH_ROWS = 1_000
_HINT = "promovolvectl serveindex dump --file FILE"
_STREAMED = ("table", "wide", "jsonl")


@leaf(
    app,
    "dump",
    does="Every entry of the maps, a JSON document a line, as they are read.",
    changes="Reads only. --file writes them to a file instead, which 'load' reads in again.",
    examples=(
        "promovolvectl serveindex dump --map serve-17 > serve-17.jsonl",
        "promovolvectl serveindex dump --file index.jsonl --node entity-1",
    ),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.PARTIAL, ExitStatus.LOCAL_FILE),
    shows="ServeIndexDump",
)
async def dump(
    run: Run,
    maps: Maps = None,
    node: Node = "",
    file: Annotated[
        str, typer.Option("-f", "--file", metavar="FILE", show_default=False, help="Write to this file.")
    ] = "",
) -> Outcome:
    pages = _pages(run, list(maps or ()) or [f"serve-{number:02d}" for number in range(MAP_COUNT)], node)
    if file:
        return await _to_file(run, pages, Path(file))
    if run.format in _STREAMED and not (run.flags.filter_ or run.flags.sort or run.flags.query or run.flags.columns):
        return await _to_stdout(run, pages)
    rows: list[DumpRow] = []
    meta = run.local_meta()
    async for page, answered in pages:
        rows += page.items
        meta, node = msgspec.structs.replace(answered, warnings=(*meta.warnings, *answered.warnings)), page.node
    found = ServeIndexDump(node=node, entries_count=len(rows), items=tuple(rows))
    return answer_of("ServeIndexDump", found, meta)


async def _pages(run: Run, maps: list[str], node: str) -> AsyncIterator[tuple[DumpPage, Meta]]:
    """All of one replica: the node that is asked first is asked for the rest, too."""
    for name in maps:
        place, after = 0, ""
        while True:
            page, meta = await run.ask(GetDump(map=name, node=node, place=place, after=after), DumpPage)
            yield page, meta
            place, after, node = page.place, page.after, page.node
            if not page.more:
                break


async def _to_stdout(run: Run, pages: AsyncIterator[tuple[DumpPage, Meta]]) -> ExitStatus:
    left = run.flags.limit or sys.maxsize
    async for page, meta in pages:
        _write(run.out, page.items[:left])
        run.out.flush()
        left -= len(page.items)
        _warn(run, meta)
        if left <= 0:
            break
    return ExitStatus.OK


async def _to_file(run: Run, pages: AsyncIterator[tuple[DumpPage, Meta]], path: Path) -> Answer:
    """Written beside its place first: a dump that broke off must not look like a whole one."""
    count, node = 0, ""
    meta = run.local_meta()
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("x", encoding="utf-8") as stream:
            async for page, answered in pages:
                _write(stream, page.items)
                count, node = count + len(page.items), page.node
                meta = msgspec.structs.replace(answered, warnings=(*meta.warnings, *answered.warnings))
        size = part.stat().st_size
        part.replace(path)
    except OSError as error:
        raise _file_error(path, error.strerror or str(error)) from error
    finally:
        part.unlink(missing_ok=True)
    found = ServeIndexDump(node=node, entries_count=count, items=(), file=str(path), bytes=size)
    return answer_of("ServeIndexDump", found, meta)


def _write(stream: TextIO, rows: tuple[DumpRow, ...]) -> None:
    stream.write("".join(f"{msgspec.json.encode(row).decode()}\n" for row in rows))


def _warn(run: Run, meta: Meta) -> None:
    for warning in meta.warnings:
        run.say(f"warning: {warning.text} ({warning.code})")


@planned(
    app,
    "load",
    does="Read a dump in: write what it has later than the cluster, by each key's owner.",
    changes="Puts views that are absent or older here. What was written or removed after the dump stays as it is.",
    examples=(
        "promovolvectl serveindex load serve-17.jsonl --dry-run",
        "promovolvectl serveindex load index.jsonl --yes --reason 'lost by mistake' -o json",
    ),
    exits=(ExitStatus.LOCAL_FILE,),
)
async def load(
    run: Run,
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", show_default=False, help="JSON Lines of 'dump'; - is standard input.")
    ],
    **given: Any,
) -> Change:
    name = secrets.token_hex(8)
    sent = 0
    for batch in _batches(_rows(file, run.stdin)):
        taken, _ = await run.ask(SendLoad(load=name, offset=sent, rows=batch), LoadTaken)
        sent = taken.rows_count
    if not sent:
        raise _unreadable(file, "it holds no row")
    stage = StageLoad(load=name, rows_count=sent, reason=given["reason"])
    return Change(stage, answer_ms=run.timeout_ms(WHOLE_MS))


def _rows(file: str, stdin: TextIO) -> Iterator[DumpRow]:
    """Raises CommandFailed naming the line: 17 for what is no row, 2 for one that nobody could have written."""
    try:
        with nullcontext(stdin) if file == "-" else Path(file).open(encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield _row(file, number, line)
    except OSError as error:
        raise _unreadable(file, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise _unreadable(file, f"it is not UTF-8: {error}") from error


def _row(file: str, number: int, line: str) -> DumpRow:
    try:
        row = msgspec.json.decode(line, type=DumpRow)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _unreadable(file, f"line {number} is no row of a dump: {error}") from error
    # Not even a message takes such a number, so that the cluster could not say what is wrong.
    for name, value in (("epoch", row.version.epoch), ("hlc", row.version.hlc)):
        if not 0 <= value < 1 << 64:
            text = f"line {number}, key {row.key[:80]!r}: its {name} {value} is not from 0 to 2^64 - 1"
            raise CommandFailed(ExitStatus.USAGE, "E-BAD-INPUT", text, hint=_HINT, about=row.key[:80])
    return row


def _batches(rows: Iterator[DumpRow]) -> Iterator[tuple[DumpRow, ...]]:
    """As many rows as one message takes."""
    batch: list[DumpRow] = []
    size = 0
    for row in rows:
        if batch and (size + len(row.value) > BATCH_BYTES or len(batch) >= BATCH_ROWS):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(row)
        size += len(row.value)
    if batch:
        yield tuple(batch)


def _file_error(path: Path, why: str) -> CommandFailed:
    return CommandFailed(ExitStatus.LOCAL_FILE, "E-FILE", f"{path}: {why}", about=str(path))


def _unreadable(file: str, why: str) -> CommandFailed:
    return CommandFailed(ExitStatus.LOCAL_FILE, "E-SOURCE", f"{file}: {why}", hint=_HINT, about=file)
