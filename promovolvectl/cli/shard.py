"""`shard list|show|where|map|history|move|pin|unpin|rebalance|check|repair|wait`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from node.admin.protocol import (
    GetShard,
    GetShardCheck,
    GetShardHistory,
    GetShardMap,
    GetShardOf,
    GetShards,
    Meta,
    ShardCheck,
    ShardHistory,
    ShardList,
    ShardMap,
    ShardPlace,
    ShardShow,
    StageMove,
    StagePin,
    StageRebalance,
    StageRepair,
)
from promovolvectl.cli.changing import Change, planned
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import EntityId, EntityType, entity_of, naming, shard_number
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.rules import overridden
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import closest, did_you_mean, usage
from promovolvectl.cli.waiting import until_all_hold
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import Condition

app = group("Where entities live, and moving them.")
KINDS = ("orphan", "duplicate", "stale-epoch", "stuck-handoff", "wrong-role", "unallocated", "imbalance")
Number = Annotated[
    int, typer.Argument(metavar="SHARD", parser=shard_number, show_default=False, help="The shard's number.")
]
Numbers = Annotated[
    list[int], typer.Argument(metavar="SHARD…", parser=shard_number, show_default=False, help="Shards' numbers.")
]


@leaf(
    app,
    "list",
    does="Every shard with its node, epoch and state.",
    changes="Reads only.",
    examples=("promovolvectl shard list --node entity-2", "promovolvectl shard list --filter state!=running"),
    gathers=True,
)
async def list_(
    run: Run,
    node: Annotated[str, naming("--node", "node", "NODE", "Only this node's.")] = "",
) -> Answer:
    return answer_of("ShardList", *await run.ask(GetShards(node=node or None), ShardList))


@leaf(
    app,
    "show",
    does="One shard in depth: owner, pin, how far a hand-off is, what waits for it, and its owners so far.",
    changes="Reads only.",
    examples=("promovolvectl shard show 17", "promovolvectl shard show 17 -o json --query history"),
    gathers=True,
)
async def show(run: Run, shard: Number) -> Answer:
    return answer_of("ShardShow", *await run.ask(GetShard(shard=shard), ShardShow))


@leaf(
    app,
    "where",
    does="The shard and the node of one entity.",
    changes="Reads only. An id that nobody has used has a place, too: it ends with 0 and says so.",
    examples=("promovolvectl shard where site example.com", "promovolvectl shard where campaign cp-1 -o json"),
)
async def where(
    run: Run,
    kind: EntityType,
    identity: EntityId = "",
) -> Answer:
    kind, identity = await entity_of(run, kind, identity)
    return answer_of("ShardPlace", *await run.ask(GetShardOf(kind=kind, id=identity, look=True), ShardPlace))


@leaf(
    app,
    "map",
    does="All shards by node, against each node's share; pins, and when the load is evened out, or why not.",
    changes="Reads only. A node that joins gets shards once the load has been uneven for 10 s.",
    examples=("promovolvectl shard map", "promovolvectl shard map -o json --query pins"),
)
async def map_(run: Run) -> Answer:
    return answer_of("ShardMap", *await run.ask(GetShardMap(), ShardMap))


@leaf(
    app,
    "history",
    does="Who owned a shard, under which epoch, since when and why; each move with its receipt.",
    changes="Reads only. The newest sixteen owners are kept.",
    examples=("promovolvectl shard history 17", "promovolvectl shard history 17 -o json --query items[].cause"),
)
async def history(run: Run, shard: Number) -> Answer:
    return answer_of("ShardHistory", *await run.ask(GetShardHistory(shard=shard), ShardHistory))


@planned(
    app,
    "move",
    does="Move one shard to another node.",
    changes="Changes where the shard's entities live. Their state and the messages for them move with it; "
    "what 'serve explain' remembers of their sites' decisions does not.",
    examples=(
        "promovolvectl shard move 17 --to entity-2",
        "promovolvectl shard move 17 --to entity-2 --dry-run -o json",
    ),
    long=True,
)
def move(
    run: Run,
    shard: Number,
    to: Annotated[str, naming("--to", "node", "NODE", "Where it goes.")],
    force: Annotated[
        list[str] | None,
        typer.Option("--force", metavar="RULE", show_default=False, help="Override a rule: capacity."),
    ] = None,
    **given: Any,
) -> Change:
    forced = overridden(force, "capacity")
    stage = StageMove(shard=shard, to=to, force=bool(forced), reason=given["reason"])
    return Change(stage)


@planned(
    app,
    "pin",
    does="Keep shards on one node, also through rebalances and restarts.",
    changes="Moves them there. A node that is not there yet is waited for; the pin is kept and shown as pending.",
    examples=("promovolvectl shard pin 17 18 --to entity-3", "promovolvectl shard pin 17 --to entity-9 --dry-run"),
    long=True,
)
def pin(
    run: Run,
    shards: Numbers,
    to: Annotated[str, naming("--to", "node", "NODE", "Where they belong.")],
    **given: Any,
) -> Change:
    if not to:
        raise usage("--to", "name the node", "--to entity-1")
    stage = StagePin(shards=tuple(shards), to=to, reason=given["reason"])
    return Change(stage)


@planned(
    app,
    "unpin",
    does="Let shards live anywhere again.",
    changes="Takes the pins away. The shards stay where they are until a rebalance moves them.",
    examples=("promovolvectl shard unpin 17 18", "promovolvectl shard unpin 17 --yes"),
    long=True,
)
def unpin(run: Run, shards: Numbers, **given: Any) -> Change:
    stage = StagePin(shards=tuple(shards), reason=given["reason"])
    return Change(stage)


@planned(
    app,
    "rebalance",
    does="Even the load out now, instead of waiting until the cluster does.",
    changes="Moves as few shards as that takes, a few at a time; pinned ones stay and cordoned nodes get none. Refused "
    "while a member is unreachable, a node is joining or versions are mixed.",
    examples=("promovolvectl shard rebalance --dry-run", "promovolvectl shard rebalance --force preconditions --yes"),
    long=True,
)
def rebalance(
    run: Run,
    force: Annotated[
        list[str] | None,
        typer.Option("--force", metavar="RULE", show_default=False, help="Override a rule: preconditions."),
    ] = None,
    **given: Any,
) -> Change:
    forced = overridden(force, "preconditions")
    stage = StageRebalance(force=bool(forced), reason=given["reason"])
    return Change(stage)


@leaf(
    app,
    "check",
    does="Compare placement table, coordinator, regions and live entities, and name each disagreement.",
    changes="Reads only. 'shard repair' plans what can be mended.",
    examples=("promovolvectl shard check", "promovolvectl shard check -q || page-someone"),
    exits=(ExitStatus.UNHEALTHY,),
    gathers=True,
)
async def check(run: Run) -> Answer:
    reply, meta = await run.ask(GetShardCheck(), ShardCheck)
    return answer_of("ShardCheck", reply, meta, ExitStatus.OK if reply.ok else ExitStatus.UNHEALTHY)


@planned(
    app,
    "repair",
    does="Plan what mends the faults that 'shard check' finds.",
    changes="Issues new epochs, which fences whatever runs twice or under an old one, and moves shards. What the "
    "coordinator mends by itself is only named. An owner under an old epoch can't be made on purpose; 'cluster drill "
    "run fence' shows what becomes of one.",
    examples=("promovolvectl shard repair --dry-run", "promovolvectl shard repair --kind duplicate --yes"),
    long=True,
)
def repair(
    run: Run,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", show_default=False, help=f"Only these: {', '.join(KINDS)}."),
    ] = None,
    **given: Any,
) -> Change:
    kinds = tuple(kind or ())
    for each in kinds:
        if each not in KINDS:
            text = f"there is no kind {each!r}; there are {', '.join(KINDS)}.{did_you_mean(each, KINDS)}"
            raise usage("--kind", text, closest("--kind", each, KINDS))
    return Change(StageRepair(kinds=kinds, reason=given["reason"]))


@leaf(
    app,
    "wait",
    does="Wait until a shard runs, or runs on one node.",
    changes="Reads only. A cluster that does not answer yet is waited for, too.",
    examples=("promovolvectl shard wait 17 --timeout 30s", "promovolvectl shard wait 17 --on entity-2"),
)
async def wait(
    run: Run,
    shard: Number,
    on: Annotated[str, naming("--on", "node", "NODE", "The node it must be on.")] = "",
) -> Answer:
    text = f"shard {shard} runs" + (f" on {on}" if on else "")

    async def look(wait_ms: int) -> tuple[tuple[Condition, ...], Meta]:
        reply, meta = await run.ask(GetShards(), ShardList, wait_ms)
        item = next((item for item in reply.items if item.shard == shard), None)
        if item is None:
            known = f"they are 0 to {len(reply.items) - 1}"
            raise usage("SHARD", f"{shard} is not a shard: {known}", "promovolvectl shard list")
        found = f"{item.state} on {item.node or 'no node'}" + (f", {item.why}" if item.why else "")
        holds = item.state == "running" and on in ("", item.node)
        return (Condition(condition=text, holds=holds, found=found),), meta

    return await until_all_hold(run, look, about=(text,), hint=f"promovolvectl shard show {shard}")
