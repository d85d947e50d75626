"""`entity list|show|where|history|restart|passivate`, `entity quarantine list|show|release`."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from node.admin.protocol import (
    EntityList,
    EntityShow,
    GetEntities,
    GetEntity,
    GetQuarantine,
    QuarantineList,
    StageEntity,
)
from node.admin.protocol.diagnosis import EntityHistory, EntityPlace, GetEntityHistory, GetEntityPlace
from promovolvectl.cli.changing import Change, planned
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import EntityId, EntityType, entity_of, naming
from promovolvectl.cli.paging import paged
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.values import one_of
from promovolvectl.client.exit_codes import ExitStatus

app = group("Entities in memory: list, restart, passivate, quarantine.")
quarantine = group("Entities that failed too often and wait for an operator.")
app.add_typer(quarantine, name="quarantine")

Node = Annotated[str, naming("--node", "node", "NODE", "Only this node's.")]
OfType = Annotated[str, typer.Option("--type", metavar="TYPE", show_default=False, help="Only of this type.")]
PerNode = Annotated[int, typer.Option("--per-node", metavar="N", min=1, max=500, help="At most N of each node.")]
STATES: Final = ("loading", "running", "backoff", "quarantined", "stopping")


@leaf(
    app,
    "list",
    does="Entities in memory, with their state and what waits for them.",
    changes="Reads only.",
    examples=(
        "promovolvectl entity list --node entity-1 --sort mailbox:desc",
        "promovolvectl entity list --type site --state backoff -o name",
    ),
    exits=(ExitStatus.NOT_FOUND,),
    shows="EntityList",
    gathers=True,
)
async def list_(
    run: Run,
    node: Node = "",
    kind: OfType = "",
    state: Annotated[
        str,
        typer.Option(
            "--state",
            metavar="STATE",
            show_default=False,
            help=f"{', '.join(STATES[:-1])} or {STATES[-1]}.",
        ),
    ] = "",
    per_node: PerNode = 200,
    after: Annotated[
        str, naming("--after", "entity", "TYPE/ID", "Begin behind this one: the 'next' of an earlier list.")
    ] = "",
) -> Answer:
    request = GetEntities(node=node, kind=kind, state=one_of(state, "--state", STATES), limit=per_node, after=after)
    if run.flags.limit and not (run.flags.filter_ or run.flags.sort):
        return answer_of("EntityList", *await paged(run, request, EntityList, lambda item: f"{item.kind}/{item.id}"))
    return answer_of("EntityList", *await run.ask(request, EntityList))


@leaf(
    app,
    "show",
    does="One entity: where it is, what it is at, its durable revision, its last failure.",
    changes="Reads only; does not start it.",
    examples=("promovolvectl entity show site example.com", "promovolvectl entity show campaign cp-1 -o json"),
    exits=(ExitStatus.NOT_FOUND,),
    shows="EntityShow",
    gathers=True,
)
async def show(run: Run, kind: EntityType, identity: EntityId = "") -> Answer:
    kind, identity = await entity_of(run, kind, identity)
    return answer_of("EntityShow", *await run.ask(GetEntity(kind=kind, id=identity), EntityShow))


@leaf(
    app,
    "where",
    does="Which node and shard an entity belongs to, and whether it is in memory there.",
    changes="Reads only; does not start it. An id that nobody has used has a place, too: it ends with 0 and says so.",
    examples=("promovolvectl entity where site example.com", "promovolvectl entity where site/example.com -o name"),
    shows="EntityPlace",
    gathers=True,
)
async def where(run: Run, kind: EntityType, identity: EntityId = "") -> Answer:
    kind, identity = await entity_of(run, kind, identity)
    return answer_of("EntityPlace", *await run.ask(GetEntityPlace(kind=kind, id=identity), EntityPlace))


@leaf(
    app,
    "history",
    does="Who owned an entity from when to when, why it moved, and under which epoch it was last written.",
    changes="Reads only. The newest sixteen owners of its shard.",
    examples=(
        "promovolvectl entity history site example.com",
        "promovolvectl entity history campaign cp-1 -o json --query 'items[?last_writer]'",
    ),
    exits=(ExitStatus.UNREACHABLE,),
    shows="EntityHistory",
    gathers=True,
)
async def history(run: Run, kind: EntityType, identity: EntityId = "") -> Answer:
    kind, identity = await entity_of(run, kind, identity)
    return answer_of("EntityHistory", *await run.ask(GetEntityHistory(kind=kind, id=identity), EntityHistory))


@planned(
    app,
    "restart",
    does="Start an entity again from the store.",
    changes="What it had in memory only is gone; its state is not, and messages wait until it runs.",
    examples=(
        "promovolvectl entity restart site example.com",
        "promovolvectl entity restart campaign cp-1 --yes -o json",
    ),
)
async def restart(run: Run, kind: EntityType, identity: EntityId = "", **given: Any) -> Change:
    return await _change(run, "restart", kind, identity)


@planned(
    app,
    "passivate",
    does="Stop an entity when it has nothing to do.",
    changes="Its state is flushed first. The next message starts it again; none is lost.",
    examples=(
        "promovolvectl entity passivate advertiser acme",
        "promovolvectl entity passivate advertiser acme --yes",
    ),
)
async def passivate(run: Run, kind: EntityType, identity: EntityId = "", **given: Any) -> Change:
    return await _change(run, "passivate", kind, identity)


@leaf(
    quarantine,
    "list",
    does="Entities that failed too often, with their last error and the message that caused it.",
    changes="Reads only.",
    examples=("promovolvectl entity quarantine list", "promovolvectl entity quarantine list --type site -o json"),
    exits=(ExitStatus.NOT_FOUND,),
    shows="QuarantineList",
    gathers=True,
)
async def quarantine_list(run: Run, node: Node = "", kind: OfType = "") -> Answer:
    return answer_of("QuarantineList", *await run.ask(GetQuarantine(node=node, kind=kind), QuarantineList))


@leaf(
    quarantine,
    "show",
    does="Why one entity is quarantined.",
    changes="Reads only.",
    examples=(
        "promovolvectl entity quarantine show site example.com",
        "promovolvectl entity quarantine show site example.com -o json",
    ),
    exits=(ExitStatus.NOT_FOUND,),
    shows="QuarantineList",
    gathers=True,
)
async def quarantine_show(run: Run, kind: EntityType, identity: EntityId = "") -> Answer:
    kind, identity = await entity_of(run, kind, identity)
    return answer_of("QuarantineList", *await run.ask(GetQuarantine(kind=kind, id=identity), QuarantineList))


@planned(
    quarantine,
    "release",
    does="Let a quarantined entity run again.",
    changes="It starts from the store with a clean record. What it refused is in the dead letters, to be replayed.",
    examples=(
        "promovolvectl entity quarantine release site example.com",
        "promovolvectl entity quarantine release site example.com --yes --reason 'fixed by 0.1.1'",
    ),
)
async def release(run: Run, kind: EntityType, identity: EntityId = "", **given: Any) -> Change:
    return await _change(run, "release", kind, identity)


async def _change(run: Run, verb: str, kind: str, identity: str) -> Change:
    kind, identity = await entity_of(run, kind, identity)
    return Change(StageEntity(verb=verb, kind=kind, id=identity))
