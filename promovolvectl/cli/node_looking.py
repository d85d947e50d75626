"""`node status|watch|logs|log-level|stuck|top|restart`: what is the matter with a node, and what helps at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer
from msgspec.structs import replace

from node.admin.protocol import Meta
from node.admin.protocol.diagnosis import (
    GetLogLevels,
    GetLogs,
    GetNodeStatus,
    GetRates,
    GetStuck,
    LogLevels,
    LogList,
    NodeStatus,
    RateList,
    StageLogLevel,
    StuckList,
)
from promovolvectl.cli.changing import Change, planned
from promovolvectl.cli.confirm import plan_then_commit
from promovolvectl.cli.duration import milliseconds
from promovolvectl.cli.events import newest, since_of
from promovolvectl.cli.leaf import leaf
from promovolvectl.cli.names import named
from promovolvectl.cli.node import Name, app
from promovolvectl.cli.options import CHANGE
from promovolvectl.cli.render import Answer, answer_of, plain
from promovolvectl.cli.restarting import ONE_RULES, restart_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import closest, did_you_mean, usage
from promovolvectl.cli.tail import tailed
from promovolvectl.client.exit_codes import ExitStatus

__all__ = ["app"]
LEVELS: Final = ("debug", "info", "warning", "error")
_LINES: Final = ("at", "node", "level", "logger", "text")
SomeNode = Annotated[str, named("node", "[NODE]", "Only this node; all of them if not.")]
Interval = Annotated[str, typer.Option("--interval", metavar="TIME", help="How long to look, 100ms to 10s.")]


@leaf(
    app,
    "status",
    does="How one node stands: ready or why not, how far its start or drain is, its faults. Asks that node only.",
    changes="Reads only. Ends with 10 when it is not ready, with 12 when it does not answer.",
    examples=("promovolvectl node status entity-1", "promovolvectl node status entity-1 -q || echo 'not ready'"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.UNHEALTHY),
    shows="NodeStatus",
    gathers=True,
)
async def status(run: Run, name: Name) -> Answer:
    reply, meta = await run.ask(GetNodeStatus(node=name), NodeStatus)
    well = reply.ready and reply.reachable and not reply.faults
    return answer_of("NodeStatus", reply, meta, ExitStatus.OK if well or not reply.answers else ExitStatus.UNHEALTHY)


@leaf(
    app,
    "stuck",
    does="What stands still: mail that nobody handles, entities that load or wait, full executors, long transactions, "
    "handlers that run long, nodes that are silent.",
    changes="Reads only. Ends with 10 when something stands still.",
    examples=("promovolvectl node stuck", "promovolvectl node stuck entity-1 --after 30s -o json"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.UNHEALTHY),
    shows="StuckList",
    gathers=True,
)
async def stuck(
    run: Run,
    name: SomeNode = "",
    after: Annotated[str, typer.Option("--after", metavar="TIME", help="For at least so long.")] = "5s",
) -> Answer:
    request = GetStuck(node=name, after_ms=milliseconds(after, "--after"))
    reply, meta = await run.ask(request, StuckList)
    return answer_of("StuckList", reply, meta, ExitStatus.UNHEALTHY if reply.items else ExitStatus.OK)


@leaf(
    app,
    "top",
    does="What one node does a second: page views, messages, writes, and what it did not handle.",
    changes="Reads only; looks twice.",
    examples=("promovolvectl node top entity-1", "promovolvectl node top entity-1 --interval 5s -o json"),
    exits=(ExitStatus.NOT_FOUND,),
    shows="RateList",
    gathers=True,
)
async def top(run: Run, name: Name, interval: Interval = "500ms") -> Answer:
    return await rates(run, name, interval)


async def rates(run: Run, name: str, interval: str) -> Answer:
    """Of one node or, unnamed, of all."""
    interval_ms = milliseconds(interval, "--interval")
    if not 100 <= interval_ms <= 10_000:
        raise usage("--interval", "100ms to 10s", "--interval 1s")
    wait_ms = run.timeout_ms() + interval_ms
    return answer_of("RateList", *await run.ask(GetRates(node=name, interval_ms=interval_ms), RateList, wait_ms))


@leaf(
    app,
    "logs",
    does="The newest lines of nodes' logs, oldest first, read from their memory; secrets are taken out.",
    changes="Reads only. Each node keeps its newest 2000 since its start; older ones are in its log file.",
    examples=(
        "promovolvectl node logs entity-1 --since 10m --level warning",
        "promovolvectl node logs --follow --grep shard -o jsonl --limit 1",
    ),
    exits=(ExitStatus.NOT_FOUND,),
    gathers=True,
)
async def logs(
    run: Run,
    name: SomeNode = "",
    follow: Annotated[bool, typer.Option("--follow", help="Go on with what comes; Ctrl-C, -t or --limit ends it.")] = (
        False
    ),
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", show_default=False, help="Only of the last, such as 10m.")
    ] = "",
    grep: Annotated[
        str, typer.Option("--grep", metavar="TEXT", show_default=False, help="Only lines that hold this, in any case.")
    ] = "",
    level: Annotated[
        str, typer.Option("--level", metavar="LEVEL", show_default=False, help=f"At least {', '.join(LEVELS)}.")
    ] = "",
    per_node: Annotated[int, typer.Option("--per-node", metavar="N", min=1, max=500, help="At most N of each.")] = 200,
    cursor: Annotated[
        str, typer.Option("--after", metavar="CURSOR", show_default=False, help="Only what came after that answer.")
    ] = "",
) -> Answer | ExitStatus:
    if level and level.lower() not in LEVELS:
        text = f"{level!r} is not one of {', '.join(LEVELS)}.{did_you_mean(level.lower(), LEVELS)}"
        raise usage("--level", text, closest("--level", level.lower(), LEVELS))
    since_ms = since_of(since)

    def asked(after: str) -> GetLogs:
        return GetLogs(node=name, cursor=after, since_ms=since_ms, level=level, text=grep, limit=per_node)

    if not follow:
        found, meta = await run.ask(asked(cursor), LogList)
        return answer_of("LogList", replace(found, items=newest(found.items, run.flags.limit)), meta)

    async def more(after: str) -> tuple[Sequence[dict[str, Any]], str, Meta]:
        found, meta = await run.ask(asked(after), LogList)
        return plain(found)["items"], found.cursor, meta

    return await tailed(run, more, _LINES, cursor)


@leaf(
    app,
    "log-level",
    does="How much a node logs: what is set, or set one logger's level for a time.",
    changes="With LOGGER and LEVEL that logger of that node logs more or less, and is as before by itself after --for. "
    "LEVEL reset takes it back at once.",
    examples=(
        "promovolvectl node log-level entity-1",
        "promovolvectl node log-level entity-1 node.sharding debug --for 10m --yes",
        "promovolvectl node log-level entity-1 node.sharding reset --yes",
    ),
    exits=(
        ExitStatus.NOT_FOUND,
        ExitStatus.NOT_CONFIRMED,
        ExitStatus.NOT_ALLOWED,
        ExitStatus.CONFLICT,
        ExitStatus.PARTIAL,
    ),
    flags=CHANGE,
)
async def log_level(
    run: Run,
    name: Name,
    logger: Annotated[
        str, typer.Argument(metavar="[LOGGER]", show_default=False, help="Such as node.sharding, or root.")
    ] = "",
    level: Annotated[
        str, typer.Argument(metavar="[LEVEL]", show_default=False, help=f"{', '.join(LEVELS)}, or reset.")
    ] = "",
    for_: Annotated[str, typer.Option("--for", metavar="TIME", help="Then it is as before.")] = "10m",
    **given: Any,
) -> Answer:
    for_s = max(1, milliseconds(for_, "--for") // 1_000)
    if not logger:
        return answer_of("LogLevels", *await run.ask(GetLogLevels(node=name), LogLevels))
    wanted = level.lower()
    if wanted not in (*LEVELS, "reset"):
        text = f"{level!r} is not one of {', '.join(LEVELS)}, reset" if level else "say which"
        raise usage("LEVEL", text, f"promovolvectl node log-level {name} {logger} debug --for 10m")
    stage = StageLogLevel(
        node=name,
        logger=logger,
        level="" if wanted == "reset" else wanted,
        for_s=for_s,
    )
    return await plan_then_commit(run, stage, given=given)


@planned(
    app,
    "restart",
    does="Restart one node without a lost message.",
    changes="Drains it, waits for its next start and until the cluster is whole. A process that 'up' started is "
    "started again here, others by their supervisor.",
    examples=(
        "promovolvectl node restart entity-2 --dry-run",
        "promovolvectl node restart entity-2 --yes --reason 'memory' -t 10m",
    ),
    exits=(ExitStatus.LOCAL_FILE,),
    long=True,
)
async def restart(
    run: Run,
    name: Name,
    force: Annotated[
        list[str] | None,
        typer.Option("--force", metavar="RULE", show_default=False, help=f"Override: {', '.join(ONE_RULES)}."),
    ] = None,
    **given: Any,
) -> Change:
    return await restart_of(run, name, force, given)
