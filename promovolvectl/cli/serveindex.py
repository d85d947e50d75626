"""`serveindex maps|get`."""

from __future__ import annotations

from typing import Annotated

import typer

from node.admin.protocol import GetEntry, GetMaps, ServeIndexEntry, ServeIndexMaps
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.client.exit_codes import ExitStatus

app = group("The replicated index that serving reads.")


@leaf(
    app,
    "maps",
    does="The maps of the ServeIndex, their size, and whether all replicas agree.",
    changes="Reads only.",
    examples=("promovolvectl serveindex maps", "promovolvectl serveindex maps --filter agree=no -o json"),
)
async def maps(run: Run) -> Answer:
    return answer_of("ServeIndexMaps", *await run.ask(GetMaps(), ServeIndexMaps))


@leaf(
    app,
    "get",
    does="One entry as each node holds it.",
    changes="Reads only.",
    examples=(
        "promovolvectl serveindex get 'example.com|top'",
        "promovolvectl serveindex get 'example.com|top' -o json",
    ),
    exits=(ExitStatus.NOT_FOUND,),
)
async def get(
    run: Run,
    key: Annotated[str, typer.Argument(metavar="KEY", show_default=False, help="SITE|SLOT, quoted for the shell.")],
) -> Answer:
    return answer_of("ServeIndexEntry", *await run.ask(GetEntry(key=key), ServeIndexEntry))
