"""`node list|show|can-stop|mailboxes|cordon|uncordon|drain|undrain|remove|wait|stop|start`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from node.admin.protocol import (
    CanStop,
    Done,
    GetCanStop,
    GetMailboxes,
    GetNode,
    GetNodes,
    Meta,
    NodeList,
    NodeMailboxes,
    NodeShow,
    Plan,
    StageCordon,
    StageDrain,
    StageRemove,
    StopNode,
    Undrain,
)
from promovolvectl.cli.changing import Change, foreseen, planned
from promovolvectl.cli.conditions import NODE_STATES, judge_node, node_state
from promovolvectl.cli.confirm import confirm, refuse_violations, way_out
from promovolvectl.cli.folder import data_folder
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import named
from promovolvectl.cli.options import CHANGE
from promovolvectl.cli.render import Answer, answer_of, plan_text
from promovolvectl.cli.rules import STOP_RULES, of_stopping, overridden
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.cli.stopping import Ending
from promovolvectl.cli.waiting import until_all_hold
from promovolvectl.client.changes import spelled
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import Condition, NodeUndrain
from promovolvectl.client.profiles import find, load_file

app = group("Nodes: list, show, cordon, drain, stop, start.")
LAST_ENTITY_NODE = "last-entity-node"
DRAIN_RULES = (LAST_ENTITY_NODE, *STOP_RULES)
REMOVAL_RULES = ("live-node", "majority", LAST_ENTITY_NODE)
Name = Annotated[str, named("node", "NODE", "The node's name.")]
DrainForce = Annotated[
    list[str] | None,
    typer.Option("--force", metavar="RULE", show_default=False, help=f"Override a rule: {', '.join(DRAIN_RULES)}."),
]


@leaf(
    app,
    "list",
    does="Every node of the cluster with its roles, state and load.",
    changes="Reads only.",
    examples=("promovolvectl node list", "promovolvectl node list --filter status=up -o name"),
    shows="NodeList",
    gathers=True,
)
async def list_(run: Run) -> Answer:
    return answer_of("NodeList", *await run.ask(GetNodes(), NodeList))


@leaf(
    app,
    "show",
    does="One node in depth: load, counters of what was not handled, and why it is not ready.",
    changes="Reads only.",
    examples=("promovolvectl node show entity-1", "promovolvectl node show entity-1 -o json --query counters"),
    exits=(ExitStatus.NOT_FOUND,),
    shows="NodeShow",
    gathers=True,
)
async def show(run: Run, name: Name) -> Answer:
    return answer_of("NodeShow", *await run.ask(GetNode(node=name), NodeShow))


@leaf(
    app,
    "can-stop",
    does="Whether a node can stop now, and what would happen: roles, majority, replicas, who is away.",
    changes="Reads only. Ends with 5 when it can't, and says why.",
    examples=("promovolvectl node can-stop entity-1", "promovolvectl node can-stop entity-1 -o json --query reasons"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.REFUSED),
    shows="CanStop",
    gathers=True,
)
async def can_stop(run: Run, name: Name) -> Answer:
    reply, meta = await run.ask(GetCanStop(node=name), CanStop)
    return answer_of("CanStop", reply, meta, ExitStatus.OK if reply.can_stop else ExitStatus.REFUSED)


@leaf(
    app,
    "mailboxes",
    does="What waits on one node: the fullest mailboxes, and handlers that were slow.",
    changes="Reads only.",
    examples=("promovolvectl node mailboxes entity-1", "promovolvectl node mailboxes entity-1 -o json --query slow"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.PARTIAL),
    shows="NodeMailboxes",
)
async def mailboxes(run: Run, name: Name) -> Answer:
    return answer_of("NodeMailboxes", *await run.ask(GetMailboxes(node=name), NodeMailboxes))


@planned(
    app,
    "cordon",
    does="Give a node no more shards; it keeps those that it has.",
    changes="Changes where shards may go, not where they are. It outlives a restart of the node.",
    examples=("promovolvectl node cordon entity-2 --reason 'disk'", "promovolvectl node cordon entity-2 --dry-run"),
    long=True,
)
def cordon(
    run: Run,
    name: Name,
    force: Annotated[
        list[str] | None,
        typer.Option("--force", metavar="RULE", show_default=False, help="Override a rule: minimum-owners."),
    ] = None,
    **given: Any,
) -> Change:
    forced = overridden(force, "minimum-owners")
    stage = StageCordon(node=name, force=bool(forced), reason=given["reason"])
    return Change(stage)


@planned(
    app,
    "uncordon",
    does="Let a node have shards again.",
    changes="Takes the cordon away. Shards come by the next rebalance.",
    examples=("promovolvectl node uncordon entity-2", "promovolvectl node uncordon entity-2 --yes"),
    long=True,
)
def uncordon(run: Run, name: Name, **given: Any) -> Change:
    return Change(StageCordon(node=name, on=False, reason=given["reason"]))


@planned(
    app,
    "drain",
    does="Move everything off a node so that it can go without a lost message.",
    changes="Changes where shards live. Loses nothing: entities move with their state, and messages wait for them.",
    examples=(
        "promovolvectl node drain entity-2 --reason 'kernel update'",
        "promovolvectl node drain entity-2 --yes --timeout 10m -o json",
        "promovolvectl node drain entity-1 --force last-entity-node --detach",
    ),
    long=True,
)
def drain(
    run: Run,
    name: Name,
    force: DrainForce = None,
    **given: Any,
) -> Change:
    return Change(_drain_of(name, overridden(force, *DRAIN_RULES)))


def _drain_of(name: str, forced: Sequence[str]) -> StageDrain:
    return StageDrain(node=name, force=LAST_ENTITY_NODE in forced, overrides=of_stopping(forced))


@leaf(
    app,
    "undrain",
    does="Cancel a node's drain, whoever started it.",
    changes="The node takes part again. What has moved stays where it is. Too late once it flushes.",
    examples=("promovolvectl node undrain entity-2", "promovolvectl node undrain entity-2 --reason 'not today'"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.NOT_ALLOWED, ExitStatus.PARTIAL),
    flags=CHANGE,
    shows="NodeUndrain",
)
async def undrain(run: Run, name: Name, **given: Any) -> Answer:
    order = Undrain(node=name, reason=given["reason"], request_id=given["request_id"])
    if given["dry_run"]:
        return await foreseen(run, order)
    done, meta = await run.ask(order, Done)
    return answer_of("NodeUndrain", NodeUndrain(node=name, changed=done.changed, message=done.message), meta)


@planned(
    app,
    "remove",
    does="Declare a dead node dead, without waiting for a decision; it is listed no more, on any node.",
    changes=(
        "Its shards are placed elsewhere. All that is kept is a mark, so that this start of it never comes back: "
        "if it still runs it stops writing and exits. Started again it joins as another incarnation."
    ),
    examples=(
        "promovolvectl node remove entity-3 --reason 'disk lost'",
        "promovolvectl node remove entity-3 --force live-node --yes",
    ),
)
def remove(
    run: Run,
    name: Name,
    force: Annotated[
        list[str] | None,
        typer.Option(
            "--force", metavar="RULE", show_default=False, help=f"Override a rule: {', '.join(REMOVAL_RULES)}."
        ),
    ] = None,
    **given: Any,
) -> Change:
    stage = StageRemove(node=name, force=overridden(force, *REMOVAL_RULES), reason=given["reason"])
    return Change(stage)


@leaf(
    app,
    "wait",
    does="Wait until a node is as it should be, also one that is not there yet.",
    changes="Reads only. A cluster that does not answer yet is waited for, too.",
    examples=("promovolvectl node wait entity-2 --for ready -t 60s", "promovolvectl node wait entity-2 --for removed"),
    shows="Wait",
)
async def wait(
    run: Run,
    name: Name,
    states: Annotated[
        list[str],
        typer.Option("--for", metavar="STATE", show_default=False, help=f"{', '.join(NODE_STATES)}; repeatable."),
    ],
) -> Answer:
    wanted = [node_state(text) for text in states]
    if not wanted:
        raise usage("--for", "name a state", f"promovolvectl node wait {name} --for ready")

    async def look(wait_ms: int) -> tuple[tuple[Condition, ...], Meta]:
        reply, meta = await run.ask(GetNodes(), NodeList, wait_ms)
        row = next((row for row in reply.items if row.name == name), None)
        return tuple(judge_node(name, state, row) for state in wanted), meta

    about = tuple(f"{name} {state}" for state in wanted)
    return await until_all_hold(run, look, about=about, hint="promovolvectl node list")


@leaf(
    app,
    "stop",
    does="Stop a node's process, after its shards have moved elsewhere, and wait until it has ended.",
    changes="Changes where shards live and ends the process. State on disk stays; 'node start' brings it back.",
    examples=(
        "promovolvectl node stop entity-2",
        "promovolvectl node stop entity-2 --no-drain --yes",
        "promovolvectl node stop api-1 --force last-of-role --yes",
    ),
    exits=(
        ExitStatus.NOT_FOUND,
        ExitStatus.REFUSED,
        ExitStatus.NOT_CONFIRMED,
        ExitStatus.NOT_ALLOWED,
    ),
    flags=CHANGE,
    shows="NodeStop",
)
async def stop(
    run: Run,
    name: Name,
    no_drain: Annotated[
        bool, typer.Option("--no-drain", help="Flush state and exit; others take its shards over.")
    ] = False,
    force: DrainForce = None,
    **given: Any,
) -> Answer:
    forced = overridden(force, *DRAIN_RULES)
    if no_drain:
        found, meta = await run.ask(GetCanStop(node=name), CanStop)
        plan = _without_drain(found, forced)
        shown = f"STOP {name} without a drain: {found.shards} shards wait until others take them over\n"
        shown += "".join(f"  note: {text}\n" for text in plan.notes)
    else:
        plan, meta = await run.ask(_drain_of(name, forced), Plan)
        shown = f"STOP {name} after its drain\n{plan_text(answer_of('Plan', plan, meta).payload, run.err_terminal)}"
    if given["dry_run"]:
        return answer_of("Plan", plan, meta)
    refuse_violations(plan, way_out(plan.violations, run.again))
    confirm(run, shown, f"node/{name}")
    timeout_ms = run.timeout_ms(60_000)
    until = time.monotonic() + timeout_ms / 1000
    ending = await Ending.of(run, name)
    run.folded(f"stop {name}")
    run.say(f"{name} is told to stop; this waits until it is no member and its process has ended")
    order = StopNode(node=name, drain=not no_drain, reason=given["reason"], request_id=given["request_id"])
    done, meta = await run.ask(order, Done, timeout_ms)
    await ending.wait(run, until)
    return Answer("NodeStop", {"node": name, "changed": done.changed, "message": done.message}, meta)


def _without_drain(found: CanStop, force: Sequence[str]) -> Plan:
    """What a stop at once would break of the rules that a drain is held to; the rest of what was found is noted."""
    broken = [(reason.code, reason.text) for reason in found.reasons if reason.code in DRAIN_RULES]
    return Plan(
        id="",
        verb="stop",
        target=f"node/{found.node}",
        base_version=0,
        moves=(),
        violations=tuple(f"{code}: {text}; --force {code} overrides it" for code, text in broken if code not in force),
        overridden=tuple(f"{code}: {text}" for code, text in broken if code in force),
        notes=tuple(f"{reason.code}: {reason.text}" for reason in found.reasons if reason.code not in DRAIN_RULES),
    )


@leaf(
    app,
    "start",
    does="Start a stopped node of this machine's cluster.",
    changes="Starts one process with the data it had. Does nothing when the node runs.",
    examples=("promovolvectl node start entity-2", "promovolvectl node start entity-2 --data /srv/promovolve"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.UNUSABLE_CONFIG, ExitStatus.LOCAL_FILE),
    asks=False,
    shows="NodeStart",
)
def start(
    run: Run,
    name: Name,
    data: Annotated[
        str, typer.Option("--data", metavar="DIR", show_default=False, help="The cluster's data directory.")
    ] = "",
) -> Answer:
    from promovolvectl.local.cluster import start_node

    if run.profile_name:
        find(load_file(run.config), run.config, run.profile_name)  # one that is not there names no folder
    folder = data_folder(run, data)
    ready = spelled("node", "wait", name, "--for", "ready")
    run.going_on = ("Stopped waiting. A process that has started goes on.", f"hint: {ready}")
    started = start_node(folder, name, timeout_ms=run.timeout_ms(60_000), say=run.say)
    run.going_on = ()
    return answer_of("NodeStart", started, run.local_meta())
