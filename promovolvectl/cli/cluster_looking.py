"""`cluster members|views|top|repair`: who is there, by whose view, what they do, and mending what a check finds."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from node.admin.protocol.diagnosis import ClusterViews, GetMembers, GetViews, MemberList, StageClusterRepair
from promovolvectl.cli.changing import Change, planned
from promovolvectl.cli.cluster import app
from promovolvectl.cli.leaf import leaf
from promovolvectl.cli.names import naming
from promovolvectl.cli.node_looking import Interval, rates
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.client.exit_codes import ExitStatus

__all__ = ["app"]
REPAIR_MS: Final = 110_000  # shards are handed over and whole replicas compared


@leaf(
    app,
    "members",
    does="Who is a member, as one node sees it: the order of age, who reports whom, what keeps it from converging.",
    changes="Reads only; asks one node, so it answers when others do not.",
    examples=("promovolvectl cluster members", "promovolvectl cluster members --seen-by entity-2 -o json"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.PARTIAL),
    shows="MemberList",
)
async def members(
    run: Run,
    seen_by: Annotated[str, naming("--seen-by", "node", "NODE", "By this node's view; the one asked if not.")] = "",
) -> Answer:
    return answer_of("MemberList", *await run.ask(GetMembers(node=seen_by), MemberList))


@leaf(
    app,
    "views",
    does="What every node holds about every other, beside each other; what fewer hold than the rest is marked.",
    changes="Reads only. Views of a cluster in change differ for a moment: look again before you act.",
    examples=("promovolvectl cluster views", "promovolvectl cluster views --exit-code -q || echo 'they differ'"),
    exits=(ExitStatus.DIFFERS,),
    shows="ClusterViews",
    gathers=True,
)
async def views(
    run: Run, exit_code: Annotated[bool, typer.Option("--exit-code", help="End with 13 when views differ.")] = False
) -> Answer:
    reply, meta = await run.ask(GetViews(), ClusterViews)
    differs = exit_code and not reply.agree
    return answer_of("ClusterViews", reply, meta, ExitStatus.DIFFERS if differs else ExitStatus.OK)


@leaf(
    app,
    "top",
    does="What every node does a second: page views, messages, writes, and what it did not handle.",
    changes="Reads only; looks twice at each node.",
    examples=("promovolvectl cluster top --sort cpu_ratio:desc", "promovolvectl cluster top --interval 5s -o json"),
    shows="RateList",
    gathers=True,
)
async def top(run: Run, interval: Interval = "500ms") -> Answer:
    return await rates(run, "", interval)


@planned(
    app,
    "repair",
    does="Mend everything that 'cluster check' finds and that can be mended, as one plan: shards, then replicas.",
    changes="Gives shards without or with a wrong owner to a right one, and puts into each replica what others hold. "
    "No state is lost. What no plan can mend is named.",
    examples=("promovolvectl cluster repair --dry-run", "promovolvectl cluster repair --yes --reason 'after the cut'"),
)
def repair(run: Run, **given: Any) -> Change:
    stage = StageClusterRepair(reason=given["reason"])
    return Change(stage, answer_ms=run.timeout_ms(REPAIR_MS))
