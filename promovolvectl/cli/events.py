"""`events`: what happened, as every node saw it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import typer
from msgspec.structs import replace

from node.admin.protocol import Meta
from node.admin.protocol.diagnosis import EventList, GetEventList
from promovolvectl.cli.duration import milliseconds
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import naming
from promovolvectl.cli.render import Answer, answer_of, plain
from promovolvectl.cli.run import Run
from promovolvectl.cli.tail import tailed
from promovolvectl.client.exit_codes import ExitStatus

app = group("What happened in the cluster, as every node saw it.")
Row = TypeVar("Row")
_COLUMNS = ("at", "topic", "object", "text", "node")


@leaf(
    app,
    "events",
    does="What happened: nodes that came and went, shards that moved, coordinators, faults; oldest first.",
    changes="Reads only. Each node keeps its newest 500. An answer's cursor asks any node for what came after it; what "
    "is kept no more is shown as a gap.",
    examples=(
        "promovolvectl events --since 1h --type 'shard.*' --type 'node.*'",
        "promovolvectl events --follow -o jsonl --limit 1",
    ),
    exits=(ExitStatus.NOT_FOUND,),
    gathers=True,
)
async def events(
    run: Run,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with what comes; Ctrl-C, -t or --limit ends it.")] = (
        False
    ),
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", show_default=False, help="Only of the last, such as 10m.")
    ] = "",
    kinds: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", show_default=False, help="Only these, such as 'shard.*'; repeatable."),
    ] = None,
    node: Annotated[str, naming("--node", "node", "NODE", "Only what this node saw.")] = "",
    cursor: Annotated[
        str, typer.Option("--after", metavar="CURSOR", show_default=False, help="Only what came after that answer.")
    ] = "",
) -> Answer | ExitStatus:
    since_ms = since_of(since)

    def asked(after: str) -> GetEventList:
        return GetEventList(cursor=after, node=node, topics=tuple(kinds or ()), since_ms=since_ms)

    if not follow:
        found, meta = await run.ask(asked(cursor), EventList)
        return answer_of("EventList", replace(found, items=newest(found.items, run.flags.limit)), meta)

    async def more(after: str) -> tuple[Sequence[dict[str, Any]], str, Meta]:
        found, meta = await run.ask(asked(after), EventList)
        return plain(found)["items"], found.cursor, meta

    return await tailed(run, more, _COLUMNS, cursor)


def newest(items: tuple[Row, ...], limit: int) -> tuple[Row, ...]:
    """Of what comes oldest first the last `limit`; all when it is 0."""
    return items[-limit:] if limit else items


def since_of(text: str) -> int:
    """Wall milliseconds of so long ago; 0 for all."""
    return time.time_ns() // 1_000_000 - milliseconds(text, "--since") if text else 0
