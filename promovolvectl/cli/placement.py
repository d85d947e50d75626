"""`placement explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from node.admin.protocol import ExplainPlacement, PlacementExplanation
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import shard_number
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.client.exit_codes import ExitStatus

app = group("Why shards are where they are.")


@leaf(
    app,
    "explain",
    does="Why a shard is where it is: pins, hand-offs, cordons, its last move, and what each node weighs.",
    changes="Reads only.",
    examples=("promovolvectl placement explain 17", "promovolvectl placement explain 17 -o json --query why"),
    exits=(ExitStatus.UNREACHABLE,),
)
async def explain(
    run: Run,
    shard: Annotated[
        int, typer.Argument(metavar="SHARD", parser=shard_number, show_default=False, help="Its number, 0 to 255.")
    ],
) -> Answer:
    return answer_of("PlacementExplanation", *await run.ask(ExplainPlacement(shard=shard), PlacementExplanation))
