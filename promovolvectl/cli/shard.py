"""`shard list|where|move`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from node.admin.protocol import GetShardOf, GetShards, ShardList, ShardPlace, StageMove
from promovolvectl.cli.confirm import plan_then_commit, spelled
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.options import CHANGE, LONG
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.client.exit_codes import ExitStatus

app = group("Where entities live, and moving them.")


@leaf(
    app,
    "list",
    does="Every shard with its node, epoch and state.",
    changes="Reads only.",
    examples=("promovolvectl shard list --node entity-2", "promovolvectl shard list --filter state!=running"),
)
async def list_(
    run: Run,
    node: Annotated[str, typer.Option("--node", metavar="NODE", show_default=False, help="Only this node's.")] = "",
) -> Answer:
    return answer_of("ShardList", *await run.ask(GetShards(node=node or None), ShardList))


@leaf(
    app,
    "where",
    does="The shard and the node of one entity.",
    changes="Reads only.",
    examples=("promovolvectl shard where site example.com", "promovolvectl shard where campaign cp-1 -o json"),
)
async def where(
    run: Run,
    kind: Annotated[str, typer.Argument(metavar="TYPE", show_default=False, help="Such as site or campaign.")],
    identity: Annotated[str, typer.Argument(metavar="ID", show_default=False, help="The entity's id.")],
) -> Answer:
    return answer_of("ShardPlace", *await run.ask(GetShardOf(kind=kind, id=identity), ShardPlace))


@leaf(
    app,
    "move",
    does="Move one shard to another node.",
    changes="Changes where the shard's entities live. Their state and the messages for them move with it.",
    examples=(
        "promovolvectl shard move 17 --to entity-2",
        "promovolvectl shard move 17 --to entity-2 --dry-run -o json",
    ),
    exits=(
        ExitStatus.NOT_FOUND,
        ExitStatus.CONFLICT,
        ExitStatus.REFUSED,
        ExitStatus.NOT_CONFIRMED,
        ExitStatus.NOT_ALLOWED,
        ExitStatus.FAILED,
    ),
    flags=CHANGE + LONG,
    shows="Operation",
)
async def move(
    run: Run,
    shard: Annotated[int, typer.Argument(metavar="SHARD", min=0, show_default=False, help="The shard's number.")],
    to: Annotated[str, typer.Option("--to", metavar="NODE", show_default=False, help="Where it goes.")],
    **given: Any,
) -> Answer:
    again = spelled("shard", "move", str(shard), "--to", to)
    return await plan_then_commit(run, StageMove(shard=shard, to=to), again=again, given=given, wait=given["wait"])
