"""`serveindex diff|repair`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from node.admin.protocol import GetDiff, ServeIndexDiff, StageIndexRepair
from promovolvectl.cli.confirm import plan_then_commit, spelled
from promovolvectl.cli.leaf import leaf
from promovolvectl.cli.options import CHANGE
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.cli.serveindex.noun import CHANGES, WHOLE_MS, Maps, app
from promovolvectl.client.exit_codes import ExitStatus


@leaf(
    app,
    "diff",
    does="Compare replicas by what they hold, entry by entry; ends with 13 when they differ.",
    changes="Reads only, all of them. Their digests are not trusted; what differs only for a moment is not counted.",
    examples=(
        "promovolvectl serveindex diff",
        "promovolvectl serveindex diff entity-1 api-1 --map serve-17 -o jsonl",
    ),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.DIFFERS),
    shows="ServeIndexDiff",
)
async def diff(
    run: Run,
    nodes: Annotated[
        list[str] | None, typer.Argument(metavar="[NODE…]", show_default=False, help="Two or more; all if none.")
    ] = None,
    maps: Maps = None,
) -> Answer:
    if nodes and len(set(nodes)) < 2:
        raise usage("NODE…", "one replica alone can't differ", "promovolvectl serveindex diff entity-1 api-1")
    request = GetDiff(nodes=tuple(sorted(set(nodes or ()))), maps=tuple(maps or ()))
    found, meta = await run.ask(request, ServeIndexDiff, run.timeout_ms(WHOLE_MS))
    status = ExitStatus.OK if found.equal else ExitStatus.DIFFERS
    return answer_of("ServeIndexDiff", found, meta, status)


@leaf(
    app,
    "repair",
    does="Mend replicas that differ: fetch what is missing, older or damaged from another, build digests anew.",
    changes="Puts what the greatest version says where a replica holds something else. No newer write is touched.",
    examples=(
        "promovolvectl serveindex repair --dry-run",
        "promovolvectl serveindex repair --node entity-1 --map serve-17 --yes -o json",
    ),
    exits=CHANGES,
    flags=CHANGE,
    shows="Operation",
)
async def repair(
    run: Run,
    node: Annotated[
        list[str] | None,
        typer.Option("--node", metavar="NODE", show_default=False, help="Only this node's replica; repeatable."),
    ] = None,
    maps: Maps = None,
    **given: Any,
) -> Answer:
    words = [word for name in node or () for word in ("--node", name)]
    words += [word for name in maps or () for word in ("--map", name)]
    stage = StageIndexRepair(nodes=tuple(node or ()), maps=tuple(maps or ()), reason=given["reason"])
    again = spelled("serveindex", "repair", *words)
    return await plan_then_commit(run, stage, again=again, given=given, answer_ms=run.timeout_ms(WHOLE_MS))
