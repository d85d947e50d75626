"""`cluster status|health|decisions|wait|watch|restart|shutdown`."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from node.admin.protocol import (
    CheckCluster,
    ClusterCheck,
    ClusterStatus,
    DecisionList,
    GetClusterHealth,
    GetClusterStatus,
    GetDecisions,
    GetNodes,
    GetSeen,
    Health,
    Meta,
    NodeList,
    Plan,
    Rehearsal,
    Rehearse,
    ServeIndexSeen,
)
from promovolvectl.cli.changing import Change, planned
from promovolvectl.cli.conditions import judge, parse
from promovolvectl.cli.confirm import confirm
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.options import CHANGE
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.restarting import ROLLING_RULES, restart_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.cli.stopping import stop_all
from promovolvectl.cli.waiting import until_all_hold
from promovolvectl.cli.watch import watched
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import Condition, Shutdown

app = group("The cluster as a whole: status, health, decisions, waiting, restarts.")
SHUTDOWN_MS = 60_000


@leaf(
    app,
    "status",
    does="What every node does, where shards are, and whether replicas agree.",
    changes="Reads only.",
    examples=("promovolvectl cluster status", "promovolvectl cluster status -o json --query 'nodes[].name'"),
    gathers=True,
)
async def status(run: Run) -> Answer:
    return answer_of("ClusterStatus", *await run.ask(GetClusterStatus(), ClusterStatus))


@leaf(
    app,
    "health",
    does="Whether the cluster is healthy, and what is not.",
    changes="Reads only.",
    examples=("promovolvectl cluster health", "promovolvectl cluster health -q || page-someone"),
    exits=(ExitStatus.UNHEALTHY,),
    gathers=True,
)
async def health(run: Run) -> Answer:
    reply, meta = await run.ask(GetClusterHealth(), Health)
    well = reply.state == "healthy"
    return answer_of("Health", reply, meta, ExitStatus.OK if well else ExitStatus.UNHEALTHY)


@leaf(
    app,
    "decisions",
    does="What the split-brain rule decided, with all its inputs; or what it would decide about a cut or a crash.",
    changes="Reads only. --rehearse asks the live rule on the live view; nothing is cut.",
    examples=(
        "promovolvectl cluster decisions -o json",
        "promovolvectl cluster decisions --rehearse --cut entity-1,entity-2/entity-3",
        "promovolvectl cluster decisions --rehearse --lose 2",
    ),
    shows="DecisionList",
    gathers=True,
)
async def decisions(
    run: Run,
    rehearse: Annotated[
        bool, typer.Option("--rehearse", help="Judge a cut or a crash that has not happened; with --cut or --lose.")
    ] = False,
    cut: Annotated[
        str, typer.Option("--cut", metavar="A,B/C,D", show_default=False, help="The sides of the cut.")
    ] = "",
    lose: Annotated[
        int, typer.Option("--lose", metavar="N", show_default=False, help="Every way to lose N nodes at once.")
    ] = 0,
) -> Answer:
    if not rehearse:
        if cut or lose:
            raise usage("--cut" if cut else "--lose", "only with --rehearse")
        return answer_of("DecisionList", *await run.ask(GetDecisions(), DecisionList))
    if bool(cut) == bool(lose):
        raise usage("--rehearse", "needs either --cut or --lose", "promovolvectl cluster decisions --rehearse --lose 1")
    sides = tuple(tuple(name.strip() for name in side.split(",")) for side in cut.split("/")) if cut else ()
    return answer_of("Rehearsal", *await run.ask(Rehearse(cut=sides, lose=lose), Rehearsal))


@leaf(
    app,
    "check",
    does="Look at the invariants that can be seen while the cluster lives, and name what breaks them.",
    changes="Reads only. --messages compares the nodes' ledgers of messages, too, and takes some seconds.",
    examples=("promovolvectl cluster check", "promovolvectl cluster check --messages -o json"),
    exits=(ExitStatus.UNHEALTHY,),
    gathers=True,
)
async def check(
    run: Run,
    messages: Annotated[bool, typer.Option("--messages", help="Whether no message is unaccounted for.")] = False,
) -> Answer:
    reply, meta = await run.ask(CheckCluster(messages=messages), ClusterCheck, run.timeout_ms(30_000))
    return answer_of("ClusterCheck", reply, meta, ExitStatus.OK if reply.ok else ExitStatus.UNHEALTHY)


@leaf(
    app,
    "wait",
    does="Wait until every condition holds.",
    changes="Reads only. A node that does not answer yet is waited for, too.",
    examples=(
        "promovolvectl cluster wait --for converged --for nodes=4 --timeout 60s",
        "promovolvectl cluster wait --for coverage=1.0 --for replicas=agree --for healthy",
    ),
    exits=(ExitStatus.NOT_ALLOWED,),
)
async def wait(
    run: Run,
    conditions: Annotated[
        list[str],
        typer.Option(
            "--for",
            metavar="CONDITION",
            show_default=False,
            help="converged, nodes=N, nodes=all (of the roster), shards=allocated, coverage=RATIO, replicas=agree, "
            "seen=TOKEN or healthy.",
        ),
    ],
) -> Answer:
    wanted = [parse(text) for text in conditions]
    if not wanted:
        raise usage("--for", "name a condition", "promovolvectl cluster wait --for converged")

    async def look(wait_ms: int) -> tuple[tuple[Condition, ...], Meta]:
        async def asked_health() -> Health | None:
            healthy = any(item.name == "healthy" for item in wanted)
            return (await run.ask(GetClusterHealth(), Health, wait_ms))[0] if healthy else None

        async def asked_seen() -> dict[str, ServeIndexSeen]:
            tokens = sorted({item.token for item in wanted if item.token})
            found = await asyncio.gather(*(run.ask(GetSeen(token=each), ServeIndexSeen, wait_ms) for each in tokens))
            return {token: seen for token, (seen, _) in zip(tokens, found, strict=True)}

        # At once: who is silent is waited for at each question.
        (status, meta), health, seen = await asyncio.gather(
            run.ask(GetClusterStatus(), ClusterStatus, wait_ms), asked_health(), asked_seen()
        )
        return tuple(judge(item, status, health, seen.get(item.token)) for item in wanted), meta

    return await until_all_hold(
        run, look, about=tuple(item.text for item in wanted), hint="promovolvectl cluster status"
    )


@leaf(
    app,
    "watch",
    does="The cluster's state and events as they come, a line each; Ctrl-C ends it.",
    changes="Reads only. With -o json or jsonl each line is a document with its type; --limit N ends it, --for once "
    "its conditions hold. A lost node is a gap, and another is asked.",
    examples=(
        "promovolvectl cluster watch --for converged --for healthy -t 10m",
        "promovolvectl cluster watch -o jsonl --limit 1",
    ),
)
async def watch(
    run: Run,
    conditions: Annotated[
        list[str] | None,
        typer.Option(
            "--for", metavar="CONDITION", show_default=False, help="End once this holds, as in 'wait'; repeatable."
        ),
    ] = None,
) -> ExitStatus:
    wanted = tuple(parse(text) for text in conditions or ())
    if any(item.token for item in wanted):
        raise usage("--for", "'cluster wait' waits for a token", "promovolvectl cluster wait --for seen=TOKEN")
    return await watched(run, wanted)


@planned(
    app,
    "restart",
    does="Restart every node, one after the other, without a lost message.",
    changes="Drains a node, waits for its next start and until the cluster is whole, and goes on; stops at the first "
    "that does not come back, and does not begin while a node of the roster is away. Processes that 'up' started are "
    "started again by the command that waits, so it can't be detached there; others by their supervisor. Asked for "
    "again while one is under way, it goes on with that one.",
    examples=(
        "promovolvectl cluster restart --rolling --dry-run",
        "promovolvectl cluster restart --rolling --yes --reason 'new release' -t 30m",
    ),
    exits=(ExitStatus.LOCAL_FILE,),
    long=True,
)
async def restart(
    run: Run,
    rolling: Annotated[bool, typer.Option("--rolling", help="One node after the other.")] = False,
    force: Annotated[
        list[str] | None,
        typer.Option("--force", metavar="RULE", show_default=False, help=f"Override: {', '.join(ROLLING_RULES)}."),
    ] = None,
    **given: Any,
) -> Change:
    if not rolling:
        text = "say it: all nodes at once is 'down' and 'up'"
        raise usage("--rolling", text, "promovolvectl cluster restart --rolling")
    return await restart_of(run, "", force, given)


@leaf(
    app,
    "shutdown",
    does="Stop every node of the cluster, all at once and without moving anything.",
    changes="Ends all processes, wherever they run. State stays, and their next start finds it.",
    examples=(
        "promovolvectl cluster shutdown --reason 'power off'",
        "promovolvectl cluster shutdown --yes -t 2m -o json",
    ),
    exits=(ExitStatus.NOT_CONFIRMED, ExitStatus.NOT_ALLOWED),
    flags=CHANGE,
    shows="Shutdown",
)
async def shutdown(run: Run, **given: Any) -> Answer:
    found, meta = await run.ask(GetNodes(), NodeList)
    names = tuple(row.name for row in found.items)
    plan = Plan(id="", verb="shutdown", target="cluster", base_version=0, moves=())
    if given["dry_run"]:
        return answer_of("Plan", plan, meta)
    confirm(run, f"STOP all {len(names)} nodes: {', '.join(names)}; no shard moves\n", "cluster")
    run.folded(f"stop all {len(names)} nodes")
    run.say(f"told to stop: {', '.join(names)}; this waits until none answers")
    left = await stop_all(run, names, given["reason"], run.timeout_ms(SHUTDOWN_MS))
    if left:
        raise CommandFailed(
            ExitStatus.TIMED_OUT,
            "E-TIMEOUT",
            f"told to stop and still answering: {', '.join(left)}; they go on stopping",
            hint="promovolvectl node list",
            about="cluster",
        )
    return answer_of("Shutdown", Shutdown(stopped=names, changed=True), meta)
