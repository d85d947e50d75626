"""`cluster status|health|decisions|wait|watch`."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

import msgspec
import typer

from node.admin.protocol import (
    ClusterStatus,
    DecisionList,
    GetClusterHealth,
    GetClusterStatus,
    GetDecisions,
    Health,
    Meta,
    Rehearsal,
    Rehearse,
)
from promovolvectl.cli.conditions import Wanted, judge, parse
from promovolvectl.cli.follow import ASK_MS, POLL_S
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.options import WAIT_DEFAULT_MS
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.cli.watch import watched
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import Condition, Wait

app = group("The cluster as a whole: status, health, decisions, waiting.")


@leaf(
    app,
    "status",
    does="What every node does, where shards are, and whether replicas agree.",
    changes="Reads only.",
    examples=("promovolvectl cluster status", "promovolvectl cluster status -o json --query 'nodes[].name'"),
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
            help="converged, nodes=N, shards=allocated, coverage=RATIO, replicas=agree or healthy; repeatable.",
        ),
    ],
) -> Answer:
    wanted = [parse(text) for text in conditions]
    if not wanted:
        raise usage("--for", "name a condition", "promovolvectl cluster wait --for converged")
    started = time.monotonic()
    until = started + run.timeout_ms(WAIT_DEFAULT_MS) / 1000
    while True:
        found, meta = await _looked(run, wanted, max(100, int((until - time.monotonic()) * 1000)))
        elapsed = time.monotonic() - started
        if all(condition.holds for condition in found):
            reply = Wait(conditions=found, elapsed_s=round(elapsed, 3))
            return answer_of("Wait", reply, msgspec.structs.replace(meta, missing=()))
        if time.monotonic() >= until:
            failing = [f"  {item.condition}: {item.found}" for item in found if not item.holds]
            raise CommandFailed(
                ExitStatus.TIMED_OUT,
                "E-TIMEOUT",
                "\n".join((f"after {elapsed:.1f} s these do not hold", *failing)),
                hint="promovolvectl cluster status",
            )
        await asyncio.sleep(min(POLL_S, max(0.0, until - time.monotonic())))


async def _looked(run: Run, wanted: list[Wanted], left_ms: int) -> tuple[tuple[Condition, ...], Meta]:
    """Every condition as it is now; a cluster that can't be asked fulfils none."""
    wait_ms = min(ASK_MS, left_ms)
    try:
        status, meta = await run.ask(GetClusterStatus(), ClusterStatus, wait_ms)
        health = (
            (await run.ask(GetClusterHealth(), Health, wait_ms))[0]
            if any(item.name == "healthy" for item in wanted)
            else None
        )
    except CommandFailed as failed:
        if failed.status not in (ExitStatus.UNREACHABLE, ExitStatus.TIMED_OUT):
            raise
        reason = failed.message.split("\n")[0]
        return tuple(Condition(condition=item.text, holds=False, found=reason) for item in wanted), run.local_meta()
    return tuple(judge(item, status, health) for item in wanted), meta


@leaf(
    app,
    "watch",
    does="The cluster's state and events as they come, a line each; Ctrl-C ends it.",
    changes="Reads only. With -o json or jsonl each line is a document with its type; --limit N ends it.",
    examples=("promovolvectl cluster watch", "promovolvectl cluster watch -o jsonl --limit 1"),
)
async def watch(run: Run) -> ExitStatus:
    return await watched(run)
