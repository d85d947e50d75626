"""`op show`."""

from __future__ import annotations

from typing import Annotated

import typer

from node.admin.protocol import GetOperation, Operation
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.client.exit_codes import ExitStatus

app = group("Operations: long work that goes on at the cluster.")


@leaf(
    app,
    "show",
    does="One operation: its phases, what it waits for, and its result.",
    changes="Reads only.",
    examples=("promovolvectl op show op-1", "promovolvectl op show op-1 -o value --query state"),
    exits=(ExitStatus.NOT_FOUND,),
)
async def show(
    run: Run, identity: Annotated[str, typer.Argument(metavar="ID", show_default=False, help="The operation's id.")]
) -> Answer:
    return answer_of("Operation", *await run.ask(GetOperation(id=identity), Operation))
