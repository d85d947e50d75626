"""`deadletter list|show|replay|discard`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from node.admin.protocol import (
    DeadLetterList,
    DeadLetterShow,
    GetDeadLetter,
    GetDeadLetters,
    StageDeadLetters,
)
from promovolvectl.cli.changing import Change, Harm, planned
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import named, naming
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.client.exit_codes import ExitStatus

app = group("Messages that nobody handled: list, replay, discard.")
Ids = Annotated[list[str], named("deadletter", "ID…", "Ids from 'deadletter list'.")]
PerNode = Annotated[int, typer.Option("--per-node", metavar="N", min=1, max=500, help="At most N of each node.")]


@leaf(
    app,
    "list",
    does="The newest messages that nobody handled, and why.",
    changes="Reads only. Each node keeps its newest thousand since its start; 'node show' counts all.",
    examples=("promovolvectl deadletter list --reason failed", "promovolvectl deadletter list --node entity-1 -o json"),
    exits=(ExitStatus.NOT_FOUND,),
    shows="DeadLetterList",
    gathers=True,
)
async def list_(
    run: Run,
    node: Annotated[str, naming("--node", "node", "NODE", "Only this node's.")] = "",
    why: Annotated[
        str, typer.Option("--reason", metavar="WHY", show_default=False, help="Only for this reason, such as failed.")
    ] = "",
    kind: Annotated[
        str, typer.Option("--type", metavar="TYPE", show_default=False, help="Only messages of this type.")
    ] = "",
    per_node: PerNode = 200,
) -> Answer:
    request = GetDeadLetters(node=node, reason=why, message_type=kind, limit=per_node)
    return answer_of("DeadLetterList", *await run.ask(request, DeadLetterList))


@leaf(
    app,
    "show",
    does="One dead letter: its error, how often it was delivered, and its content when asked for.",
    changes="Reads only.",
    examples=("promovolvectl deadletter show entity-1.4.17", "promovolvectl deadletter show entity-1.4.17 --payload"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.PARTIAL),
    shows="DeadLetterShow",
)
async def show(
    run: Run,
    identity: Annotated[str, named("deadletter", "ID", "As in 'deadletter list'.")],
    payload: Annotated[bool, typer.Option("--payload", help="Show the message's content too.")] = False,
) -> Answer:
    return answer_of("DeadLetterShow", *await run.ask(GetDeadLetter(id=identity, payload=payload), DeadLetterShow))


@planned(
    app,
    "replay",
    does="Send dead letters again, each once.",
    changes="Takes them from the queue and sends them to where they were for. One that fails again is a new letter.",
    examples=(
        "promovolvectl deadletter replay entity-1.4.17",
        "promovolvectl deadletter replay entity-1.4.17 entity-1.4.18 --yes -o json",
    ),
)
def replay(run: Run, ids: Ids, **given: Any) -> Change:
    return Change(StageDeadLetters(verb="replay", ids=tuple(ids)))


@planned(
    app,
    "discard",
    does="Forget dead letters.",
    changes="Their content is lost for good; counters stay. Asks for the first one's id, or takes it by --confirm.",
    examples=(
        "promovolvectl deadletter discard entity-1.4.17",
        "promovolvectl deadletter discard entity-1.4.17 --confirm entity-1.4.17",
    ),
    harm=Harm.LOSES,
)
def discard(run: Run, ids: Ids, **given: Any) -> Change:
    stage = StageDeadLetters(verb="discard", ids=tuple(ids))
    return Change(stage, loses=ids[0])
