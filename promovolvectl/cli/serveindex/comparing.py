"""`serveindex diff|verify|repair`."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from node.admin.protocol import (
    GetDiff,
    GetVerify,
    Meta,
    ServeIndexDiff,
    ServeIndexVerify,
    StageIndexRepair,
    StartVerify,
    VerifyItem,
)
from promovolvectl.cli.changing import Change, planned
from promovolvectl.cli.follow import ASK_MS, HEARTBEAT_S, POLL_S
from promovolvectl.cli.leaf import leaf
from promovolvectl.cli.names import naming
from promovolvectl.cli.options import WAIT_DEFAULT_MS
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.cli.serveindex.noun import WHOLE_MS, Maps, app
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

_RUNNING: Final = "running"
Nodes = Annotated[
    list[str] | None,
    naming("--node", "node", "NODE", "Only this node's replica; repeatable."),
]


@leaf(
    app,
    "diff",
    does="Compare replicas by what they hold, entry by entry; ends with 13 when they differ.",
    changes="Reads only, all of them. Their digests are not trusted; what differs only for a moment is not counted. "
    "Long lists come page by page; --limit N asks for no more than that.",
    examples=(
        "promovolvectl serveindex diff",
        "promovolvectl serveindex diff entity-1 api-1 --map serve-17 -o jsonl",
    ),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.DIFFERS),
    shows="ServeIndexDiff",
    gathers=True,
)
async def diff(
    run: Run,
    nodes: Annotated[
        list[str] | None, typer.Argument(metavar="[NODE…]", show_default=False, help="Two or more; all if none.")
    ] = None,
    maps: Maps = None,
) -> Answer:
    if nodes and len(set(nodes)) < 2:
        raise usage("NODE…", "one replica alone can't differ", "promovolvectl serveindex diff")
    request = GetDiff(nodes=tuple(sorted(set(nodes or ()))), maps=tuple(maps or ()))
    found, meta = await run.ask(request, ServeIndexDiff, run.timeout_ms(WHOLE_MS))
    # A filter or an order may need what the first rows do not have.
    limit = 0 if run.flags.filter_ or run.flags.sort else run.flags.limit
    while found.next and not (limit and len(found.items) >= limit):
        page, meta = await run.ask(
            msgspec.structs.replace(request, after=found.next), ServeIndexDiff, run.timeout_ms(WHOLE_MS)
        )
        found = msgspec.structs.replace(found, items=(*found.items, *page.items), next=page.next)
    status = ExitStatus.OK if found.equal else ExitStatus.DIFFERS
    return answer_of("ServeIndexDiff", found, meta, status)


@leaf(
    app,
    "verify",
    does="Read the whole file of each replica, entry by entry; ends with 10 when something is wrong.",
    changes="Only reads, in a process of its own beside the node, which goes on serving. Finds what no digest shows.",
    examples=(
        "promovolvectl serveindex verify --node entity-1 -o json --query items[].problems",
        "promovolvectl serveindex verify --path /var/lib/promovolve/entity-1/replica",
    ),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.UNHEALTHY),
    shows="ServeIndexVerify",
    gathers=True,
)
async def verify(
    run: Run,
    node: Nodes = None,
    path: Annotated[
        str,
        typer.Option("--path", metavar="DIR", show_default=False, help="This folder's, of a node that does not run."),
    ] = "",
) -> Answer:
    if path and node:
        text = "a folder here, or replicas of nodes that run: say one of them"
        raise usage("--path, --node", text, "without --path DIR")
    if path:
        from promovolvectl.local.replica_check import verify as read  # only who reads files here pays for it

        report = read(_folder(path), say=run.say)
        status = ExitStatus.OK if report.sound else ExitStatus.UNHEALTHY
        return answer_of("ServeIndexVerify", report, run.local_meta(), status)
    names = tuple(node or ())
    found, meta = await run.ask(StartVerify(nodes=names), ServeIndexVerify)
    asked = tuple(item.node for item in found.items)
    if asked:
        found, meta = await _until_read(run, found, meta, asked)
    wrong = any(not item.sound for item in found.items)
    return answer_of("ServeIndexVerify", found, meta, ExitStatus.UNHEALTHY if wrong else ExitStatus.OK)


def _folder(path: str) -> Path:
    """Raises CommandFailed (3) for one that is not there: nothing is known of a replica then."""
    where = Path(path)
    if not where.is_dir():
        what = "is a file, no folder" if where.exists() else "does not exist"
        hint = "promovolvectl serveindex verify --path DIR, of the folder that holds data.mdb"
        raise CommandFailed(ExitStatus.NOT_FOUND, "E-NOT-FOUND", f"--path: {path} {what}", hint=hint, about=path)
    return where


async def _until_read(
    run: Run, found: ServeIndexVerify, meta: Meta, asked: tuple[str, ...]
) -> tuple[ServeIndexVerify, Meta]:
    """Once all files are read; raises CommandFailed (9) when `--timeout` passes first. A node that ends meanwhile is
    missing from the answer."""
    silent = meta.missing
    until = time.monotonic() + run.timeout_ms(WAIT_DEFAULT_MS) / 1_000
    run.going_on = ("Stopped watching. The checks go on.", "hint: promovolvectl serveindex verify")
    said_s = time.monotonic()
    while any(item.state == _RUNNING for item in found.items):
        if time.monotonic() >= until:
            run.going_on = ()
            text = "\n".join(("not all files are read yet; the checks go on", *map(_progress, found.items)))
            raise CommandFailed(ExitStatus.TIMED_OUT, "E-TIMEOUT", text, hint="promovolvectl serveindex verify")
        if time.monotonic() - said_s >= HEARTBEAT_S:
            said_s = time.monotonic()
            for item in found.items:
                run.say(_progress(item))
        await asyncio.sleep(POLL_S)
        found, meta = await run.ask(GetVerify(nodes=asked), ServeIndexVerify, ASK_MS)
    run.going_on = ()
    known = {one.node for one in meta.missing}
    more = tuple(one for one in silent if one.node not in known)
    return found, msgspec.structs.replace(meta, missing=(*meta.missing, *more))


def _progress(item: VerifyItem) -> str:
    return (
        f"  {item.node}: {item.state}, {item.checked} of {item.total} entries, {item.entries_per_s:.0f}/s, "
        f"{item.problems_found} problems"
    )


def _tell_restarts(run: Run, done: Answer) -> None:
    """What a repair could not do while its node runs."""
    restart = (done.payload.get("result") or {}).get("restart", "")
    for name in str(restart).split(", ") if restart else ():
        run.say(f"hint: promovolvectl node stop {name} --yes && promovolvectl node start {name}", always=True)


@planned(
    app,
    "repair",
    does="Mend replicas that differ: fetch what is missing, older or damaged from another, build digests anew.",
    changes="Puts what the greatest version says where a replica holds something else. No newer write is touched.",
    examples=(
        "promovolvectl serveindex repair --dry-run",
        "promovolvectl serveindex repair --node entity-1 --map serve-17 --yes -o json",
    ),
    then=_tell_restarts,
)
def repair(
    run: Run,
    node: Nodes = None,
    maps: Maps = None,
    **given: Any,
) -> Change:
    stage = StageIndexRepair(nodes=tuple(node or ()), maps=tuple(maps or ()), reason=given["reason"])
    return Change(stage, answer_ms=run.timeout_ms(WHOLE_MS))
