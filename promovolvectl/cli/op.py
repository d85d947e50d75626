"""`op list|show|watch|wait|cancel`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from node.admin.protocol import CancelOperation, GetOperation, ListOperations, Operation, OperationList
from promovolvectl.cli.changing import Change, ordered
from promovolvectl.cli.confirm import ended
from promovolvectl.cli.follow import await_operation, follow_operation
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import named
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.restarting import resume_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.values import LONG_WORK_STATES, one_of
from promovolvectl.client.exit_codes import ExitStatus

app = group("Operations: long work that goes on at the cluster.")
Id = Annotated[str, named("op", "ID", "The operation's id.")]


@leaf(
    app,
    "list",
    does="The newest operations, running ones among them, each with its state.",
    changes="Reads only. One that has ended is on record for 30 days; what a node did at once, until it restarts.",
    examples=("promovolvectl op list", "promovolvectl op list --state running -o name"),
    gathers=True,
)
async def list_(
    run: Run,
    state: Annotated[
        str, typer.Option("--state", metavar="STATE", show_default=False, help="running, done, failed or cancelled.")
    ] = "",
) -> Answer:
    wanted = one_of(state, "--state", LONG_WORK_STATES)
    return answer_of("OperationList", *await run.ask(ListOperations(state=wanted), OperationList))


@leaf(
    app,
    "show",
    does="One operation: its phases, what it waits for, and its result.",
    changes="Reads only.",
    examples=("promovolvectl op show op-1", "promovolvectl op show op-1 -o value --query state"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.PARTIAL),
)
async def show(run: Run, identity: Id) -> Answer:
    return answer_of("Operation", *await run.ask(GetOperation(id=identity), Operation))


@leaf(
    app,
    "watch",
    does="Follow an operation to its end, a line for each change of phase and for what holds it up.",
    changes="Reads only. Ctrl-C stops the watching, not the operation.",
    examples=("promovolvectl op watch op-1", "promovolvectl op watch op-1 -t 10m"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.PARTIAL, ExitStatus.FAILED),
)
async def watch(run: Run, identity: Id) -> Answer:
    found, meta = await run.ask(GetOperation(id=identity), Operation)
    return ended(run, *await follow_operation(run, found, meta, resume=resume_of(run, found, meta)))


@leaf(
    app,
    "wait",
    does="Wait for an operation's end, without a word until then.",
    changes="Reads only.",
    examples=("promovolvectl op wait op-1 -t 10m", "promovolvectl op wait op-1 -q && reboot"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.PARTIAL, ExitStatus.FAILED),
)
async def wait(run: Run, identity: Id) -> Answer:
    found, meta = await run.ask(GetOperation(id=identity), Operation)
    return ended(run, *await await_operation(run, found, meta, resume=resume_of(run, found, meta)))


@ordered(
    app,
    "cancel",
    does="End an operation where it stands.",
    changes="What has moved stays; the rest does not start. A drain can be cancelled until it flushes.",
    examples=("promovolvectl op cancel op-1", "promovolvectl op cancel op-1 --reason 'wrong node' -o json"),
    shows="Operation",
)
def cancel(run: Run, identity: Id, **given: Any) -> Change:
    order = CancelOperation(id=identity, reason=given["reason"], request_id=given["request_id"])
    return Change(order)
