"""`facts list|tail|status`: the log of what happened, as it was written in the transactions that it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer
from msgspec.structs import replace

from node.admin.protocol import Meta
from node.admin.protocol.facts import FactItem, FactList, FactStatus, GetFacts, GetFactStatus
from promovolvectl.cli.events import since_of
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.render import Answer, answer_of, plain
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.cli.tail import Item, tailed
from promovolvectl.client.exit_codes import ExitStatus

app = group("The log of facts: impressions, clicks, approvals, classifications, money.")
_PAGE: Final = 200
_ANSWER_MAX: Final = 10_000  # facts of one answer that nobody limited: a log may hold millions
_COLUMNS: Final = ("offset", "at", "type", "object", "fields", "problem")

Types = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE", show_default=False, help="Only these: click, 'creative_*'; repeatable."),
]
About = Annotated[
    str,
    typer.Option(
        "--object", metavar="TYPE/ID", show_default=False, help="Of the entity that begins so: campaign/rail."
    ),
]
With = Annotated[
    list[str] | None,
    typer.Option(
        "--with", metavar="NAME=VALUE", show_default=False, help="With this field: site=example.com; repeatable."
    ),
]
Since = Annotated[
    str, typer.Option("--since", metavar="TIME", show_default=False, help="Only of the last, such as 10m.")
]


@leaf(
    app,
    "list",
    does="The log of facts from its beginning, or behind an offset, oldest first.",
    changes="Reads only. One answer holds 10000 facts at most; its next is the offset to go on behind, with --after. A "
    "fact that can't be read is shown with what is wrong with it.",
    examples=(
        "promovolvectl facts list --type impression --with campaign=rail --since 1h",
        "promovolvectl facts list --after 120000 --limit 500 -o jsonl",
    ),
    shows="FactList",
)
async def list_(
    run: Run,
    types: Types = None,
    about: About = "",
    fields: With = None,
    since: Since = "",
    after: Annotated[
        int, typer.Option("--after", metavar="NUMBER", min=0, help="Only what stands behind this one.")
    ] = 0,
) -> Answer:
    wanted = _asked(types, about, fields, since)
    # A filter or an order may need what the first rows do not have.
    most = _ANSWER_MAX if run.flags.filter_ or run.flags.sort else run.flags.limit or _ANSWER_MAX
    items: list[FactItem] = []
    at = after
    while True:
        page = replace(wanted, after=at, limit=min(_PAGE, most - len(items)))
        found, meta = await run.ask(page, FactList)
        items += found.items
        at = found.next
        if not found.more or len(items) >= most:
            whole = FactList(items=tuple(items), next=at, more=found.more, first=after + 1)
            return answer_of("FactList", whole, meta)


@leaf(
    app,
    "tail",
    does="The newest facts, oldest first; with --follow what is added, too.",
    changes="Reads only. Each line of --follow has its offset as its cursor: --after goes on behind it, at any node.",
    examples=(
        "promovolvectl facts tail --last 50 --type 'creative_*'",
        "promovolvectl facts tail --follow --after 120000 -o jsonl --limit 1",
    ),
    shows="FactList",
)
async def tail(
    run: Run,
    types: Types = None,
    about: About = "",
    fields: With = None,
    since: Since = "",
    last: Annotated[int, typer.Option("--last", metavar="N", min=1, max=200, help="Begin with the newest N.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with what comes; Ctrl-C, -t or --limit ends it.")] = (
        False
    ),
    after: Annotated[
        int | None,
        typer.Option("--after", metavar="NUMBER", min=0, show_default=False, help="With --follow: begin behind this."),
    ] = None,
) -> Answer | ExitStatus:
    wanted = _asked(types, about, fields, since)
    if not follow:
        found, meta = await run.ask(replace(wanted, last=min(last, run.flags.limit or last)), FactList)
        return answer_of("FactList", found, meta)

    async def more(cursor: str) -> tuple[Sequence[dict[str, Any]], str, Meta]:
        asked = replace(wanted, after=int(cursor)) if cursor else replace(wanted, last=last)
        found, meta = await run.ask(asked, FactList)
        return plain(found)["items"], str(found.next), meta

    return await tailed(run, more, _COLUMNS, "" if after is None else str(after), placed=_offset, name=_name)


def _asked(types: list[str] | None, about: str, fields: list[str] | None, since: str) -> GetFacts:
    for field in fields or ():
        if not field.partition("=")[0] or "=" not in field:
            raise usage("--with", f"{field!r} is not NAME=VALUE", "--with site=example.com")
    return GetFacts(
        types=tuple(types or ()), about=about, fields=tuple(fields or ()), since_ms=since_of(since), limit=_PAGE
    )


def _offset(item: Item) -> str:
    return str(item["offset"])


def _name(item: Item) -> str:
    return f"fact/{item['offset']}"


@leaf(
    app,
    "status",
    does="How far each projection has followed the log of facts, and what failed on the way.",
    changes="Reads only. Ends with 10 when one is too far behind.",
    examples=("promovolvectl facts status", "promovolvectl facts status -o json --query 'items[].behind'"),
    exits=(ExitStatus.UNHEALTHY,),
    shows="FactStatus",
    gathers=True,
)
async def status(run: Run) -> Answer:
    found, meta = await run.ask(GetFactStatus(), FactStatus)
    return answer_of("FactStatus", found, meta, ExitStatus.OK if found.ok else ExitStatus.UNHEALTHY)
