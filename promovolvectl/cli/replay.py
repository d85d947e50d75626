"""`replay start|list|show|watch|wait|cancel|coverage`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from node.admin.protocol import (
    CancelReplay,
    Coverage,
    GetCoverage,
    GetReplay,
    ListReplays,
    Meta,
    Replay,
    ReplayList,
    StartReplay,
)
from promovolvectl.cli.changing import Change, foreseen, ordered
from promovolvectl.cli.follow import await_replay, follow_replay
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import named, naming
from promovolvectl.cli.options import CHANGE
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.cli.values import LONG_WORK_STATES, one_of
from promovolvectl.client.exit_codes import ExitStatus

app = group("Rebuild the ServeIndex from durable state; coverage.")
Sites = Annotated[list[str] | None, naming("--site", "site", "SITE", "This site; repeatable.")]
Nodes = Annotated[list[str] | None, naming("--node", "node", "NODE", "The sites that live on this node; repeatable.")]
OfSites = Annotated[list[str] | None, named("site", "[SITE…]", "These sites, as with --site.")]
Id = Annotated[str, named("replay", "ID", "The replay's id.")]


@leaf(
    app,
    "start",
    does="Run the auctions of fresh classifications again, so that empty slots fill.",
    changes="Rebuilds ServeIndex entries, which are derived data. Classifications, approvals and budgets stay. A site "
    "that a running replay goes through is refused to another one.",
    examples=(
        "promovolvectl replay start --all --missing",
        "promovolvectl replay start example.com --wait",
        "promovolvectl replay start --node entity-1 --rate 50 --until-coverage 0.95 --detach",
    ),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.PARTIAL, ExitStatus.FAILED),
    flags=CHANGE,
    shows="Replay",
)
async def start(
    run: Run,
    sites: OfSites = None,
    site: Sites = None,
    node: Nodes = None,
    all_: Annotated[bool, typer.Option("--all", help="Every site.")] = False,
    missing: Annotated[bool, typer.Option("--missing", help="Only pages that show an empty slot.")] = False,
    rate: Annotated[
        int,
        typer.Option(
            "--rate", metavar="N", min=0, show_default=False, help="So many pages a second at most; 0: no limit."
        ),
    ] = 0,
    until_coverage: Annotated[
        float,
        typer.Option(
            "--until-coverage",
            metavar="RATIO",
            min=0.0,
            max=1.0,
            show_default=False,
            help="End once coverage is so high; failed if it does not become so.",
        ),
    ] = 0.0,
    wait: Annotated[bool, typer.Option("--wait/--detach", help="Wait for its end (default), or return its id.")] = True,
    **given: Any,
) -> Answer:
    chosen = (*(sites or ()), *(site or ()))
    if bool(chosen or node) == all_:
        raise usage("SITE, --node, --all", "say which sites, or --all", run.again("--all"))
    order = StartReplay(
        sites=chosen,
        nodes=tuple(node or ()),
        missing=missing,
        rate=rate,
        until_coverage=until_coverage,
        reason=given["reason"],
        request_id=given["request_id"],
    )
    if given["dry_run"]:
        return await foreseen(run, order)
    replay, meta = await run.ask(order, Replay)
    if wait:
        replay, meta = await follow_replay(run, replay, meta)
    return _ended(replay, meta)


@leaf(
    app,
    "list",
    does="The newest replays, running ones among them, each with its state.",
    changes="Reads only. One that has ended is on record for 30 days.",
    examples=("promovolvectl replay list", "promovolvectl replay list --state running -o name"),
)
async def list_(
    run: Run,
    state: Annotated[
        str, typer.Option("--state", metavar="STATE", show_default=False, help="running, done, failed or cancelled.")
    ] = "",
) -> Answer:
    wanted = one_of(state, "--state", LONG_WORK_STATES)
    return answer_of("ReplayList", *await run.ask(ListReplays(state=wanted), ReplayList))


@leaf(
    app,
    "show",
    does="One replay: how far it is, and what it did to coverage.",
    changes="Reads only.",
    examples=("promovolvectl replay show r-1", "promovolvectl replay show r-1 -o value --query state"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.PARTIAL),
)
async def show(run: Run, identity: Id) -> Answer:
    return answer_of("Replay", *await run.ask(GetReplay(id=identity), Replay))


@leaf(
    app,
    "watch",
    does="Follow a replay to its end, a line for each change.",
    changes="Reads only. Ctrl-C stops the watching, not the replay.",
    examples=("promovolvectl replay watch r-1", "promovolvectl replay watch r-1 -t 10m"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.PARTIAL, ExitStatus.FAILED),
    shows="Replay",
)
async def watch(run: Run, identity: Id) -> Answer:
    found, meta = await run.ask(GetReplay(id=identity), Replay)
    return _ended(*await follow_replay(run, found, meta))


@leaf(
    app,
    "wait",
    does="Wait for a replay's end, without a word until then.",
    changes="Reads only.",
    examples=("promovolvectl replay wait r-1 -t 10m", "promovolvectl replay wait r-1 -q && echo done"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.PARTIAL, ExitStatus.FAILED),
    shows="Replay",
)
async def wait(run: Run, identity: Id) -> Answer:
    found, meta = await run.ask(GetReplay(id=identity), Replay)
    return _ended(*await await_replay(run, found, meta))


@ordered(
    app,
    "cancel",
    does="End a replay where it stands.",
    changes="What went out is auctioned; the other pages are left as they are.",
    examples=("promovolvectl replay cancel r-1", "promovolvectl replay cancel r-1 --reason 'too much load' -o json"),
    shows="Replay",
)
def cancel(run: Run, identity: Id, **given: Any) -> Change:
    order = CancelReplay(id=identity, reason=given["reason"], request_id=given["request_id"])
    return Change(order)


@leaf(
    app,
    "coverage",
    does="How many slots of fresh pages have candidates, and why the others have none.",
    changes="Reads only.",
    examples=("promovolvectl replay coverage", "promovolvectl replay coverage example.com -o json"),
    exits=(ExitStatus.NOT_FOUND,),
    gathers=True,
)
async def coverage(run: Run, sites: OfSites = None, site: Sites = None) -> Answer:
    request = GetCoverage(sites=(*(sites or ()), *(site or ())))
    return answer_of("Coverage", *await run.ask(request, Coverage))


def _ended(replay: Replay, meta: Meta) -> Answer:
    """A replay as it was seen last: 15 when it is over and did not reach its end, 12 when some pages failed."""
    status = ExitStatus.OK
    if replay.state in ("failed", "cancelled"):
        status = ExitStatus.FAILED
    elif replay.state == "done" and replay.pages.failed:
        status = ExitStatus.PARTIAL
    return answer_of("Replay", replay, meta, status)
