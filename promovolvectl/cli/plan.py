"""`plan list|show|commit|cancel|discard`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from node.admin.protocol import CancelPlan, DiscardPlan, GetPlan, GetPlans, Plan, PlanList
from promovolvectl.cli.changing import Change, ordered
from promovolvectl.cli.confirm import commit as commit_plan
from promovolvectl.cli.confirm import confirm, refuse_violations
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import named
from promovolvectl.cli.options import CHANGE, LONG
from promovolvectl.cli.render import Answer, answer_of, plain, plan_text
from promovolvectl.cli.restarting import tending
from promovolvectl.cli.run import Run
from promovolvectl.client.changes import spelled
from promovolvectl.client.exit_codes import ExitStatus

app = group("Plans: changes that were staged, and how far they are.")
Id = Annotated[str, named("plan", "ID", "The plan's id.")]
_ENDINGS = (ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.NOT_ALLOWED)


@leaf(
    app,
    "list",
    does="Plans that were staged, are being carried out, or are over; oldest first.",
    changes="Reads only.",
    examples=("promovolvectl plan list", "promovolvectl plan list --filter state=staged -o name"),
    gathers=True,
)
async def list_(run: Run) -> Answer:
    return answer_of("PlanList", *await run.ask(GetPlans(), PlanList))


@leaf(
    app,
    "show",
    does="One plan: what goes where, what it would violate, how long it may take, and how far it is.",
    changes="Reads only.",
    examples=("promovolvectl plan show p-1", "promovolvectl plan show p-1 --exit-code -q || echo 'moves something'"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.DIFFERS),
)
async def show(
    run: Run,
    identity: Id,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="End with 13 when it moves a shard.")] = False,
) -> Answer:
    plan, meta = await run.ask(GetPlan(id=identity), Plan)
    differs = exit_code and any(move.state in ("waiting", "moving") for move in plan.moves)
    return answer_of("Plan", plan, meta, ExitStatus.DIFFERS if differs else ExitStatus.OK)


@leaf(
    app,
    "commit",
    does="Carry a staged plan out and follow it to its end.",
    changes="Changes what the plan says. Refused when the placement has changed since it was made.",
    examples=("promovolvectl plan commit p-1", "promovolvectl plan commit p-1 --yes --detach -o json"),
    exits=(*_ENDINGS, ExitStatus.REFUSED, ExitStatus.NOT_CONFIRMED, ExitStatus.FAILED),
    flags=CHANGE + LONG,
    shows="Operation",
)
async def commit(run: Run, identity: Id, **given: Any) -> Answer:
    plan, meta = await run.ask(GetPlan(id=identity), Plan)
    if given["dry_run"]:
        return answer_of("Plan", plan, meta)
    refuse_violations(plan, spelled("plan", "show", identity))
    tend = tending(run, meta, plan.target, wait=given["wait"]) if plan.verb == "restart" else None
    confirm(run, plan_text(plain(plan), run.err_terminal), f"plan/{identity}")
    return await commit_plan(
        run, plan, wait=given["wait"], reason=given["reason"], request_id=given["request_id"], tend=tend
    )


@ordered(
    app,
    "cancel",
    does="End a plan where it stands.",
    changes="What has moved stays, what is on its way arrives, and the rest does not start.",
    examples=("promovolvectl plan cancel p-1", "promovolvectl plan cancel p-1 --reason 'wrong node' -o json"),
    shows="Plan",
)
def cancel(run: Run, identity: Id, **given: Any) -> Change:
    order = CancelPlan(id=identity, reason=given["reason"], request_id=given["request_id"])
    return Change(order)


@ordered(
    app,
    "discard",
    does="Forget a plan that is not being carried out.",
    changes="Takes the plan off the list; no shard is touched.",
    examples=("promovolvectl plan discard p-1", "promovolvectl plan discard p-1 -o json"),
    shows="Plan",
)
def discard(run: Run, identity: Id, **given: Any) -> Change:
    order = DiscardPlan(id=identity, reason=given["reason"], request_id=given["request_id"])
    return Change(order)
