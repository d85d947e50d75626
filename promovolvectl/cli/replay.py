"""`replay start|show|watch|wait|coverage`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from node.admin.protocol import Coverage, GetCoverage, GetReplay, Meta, Replay, StartReplay
from promovolvectl.cli.follow import await_replay, follow_replay
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import named, naming
from promovolvectl.cli.options import CHANGE
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.client.exit_codes import ExitStatus

app = group("Rebuild the ServeIndex from durable state; coverage.")
Sites = Annotated[list[str] | None, naming("--site", "site", "SITE", "This site; repeatable.")]
Id = Annotated[str, named("replay", "ID", "The replay's id.")]
# A replay rebuilds derived data from what is stored: it has no plan, and asking for it twice does no harm.
_FLAGS = tuple(flag for flag in CHANGE if flag[0] != "dry_run")


@leaf(
    app,
    "start",
    does="Run the auctions of all fresh classifications again, so that empty slots fill.",
    changes="Rebuilds ServeIndex entries, which are derived data. Classifications, approvals and budgets stay.",
    examples=("promovolvectl replay start --all --wait", "promovolvectl replay start --site example.com --wait"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.FAILED),
    flags=_FLAGS,
    shows="Replay",
)
async def start(
    run: Run,
    site: Sites = None,
    all_: Annotated[bool, typer.Option("--all", help="Every site.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--detach", help="Wait for its end (default), or return its id.")] = True,
    **given: Any,
) -> Answer:
    if bool(site) == all_:
        raise usage("--site, --all", "say which sites, or --all", "promovolvectl replay start --all --wait")
    order = StartReplay(sites=tuple(site or ()), reason=given["reason"], request_id=given["request_id"])
    replay, meta = await run.ask(order, Replay)
    if wait:
        replay, meta = await follow_replay(run, replay, meta)
    return _ended(replay, meta)


@leaf(
    app,
    "show",
    does="One replay: how far it is, and what it did to coverage.",
    changes="Reads only.",
    examples=("promovolvectl replay show r-1", "promovolvectl replay show r-1 -o value --query state"),
    exits=(ExitStatus.NOT_FOUND,),
)
async def show(run: Run, identity: Id) -> Answer:
    return answer_of("Replay", *await run.ask(GetReplay(id=identity), Replay))


@leaf(
    app,
    "watch",
    does="Follow a replay to its end, a line for each change.",
    changes="Reads only. Ctrl-C stops the watching, not the replay.",
    examples=("promovolvectl replay watch r-1", "promovolvectl replay watch r-1 -t 10m"),
    exits=(ExitStatus.FAILED,),
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
    exits=(ExitStatus.FAILED,),
    shows="Replay",
)
async def wait(run: Run, identity: Id) -> Answer:
    found, meta = await run.ask(GetReplay(id=identity), Replay)
    return _ended(*await await_replay(run, found, meta))


@leaf(
    app,
    "coverage",
    does="How many slots of fresh pages have candidates, and why the others have none.",
    changes="Reads only.",
    examples=("promovolvectl replay coverage", "promovolvectl replay coverage --site example.com -o json"),
    exits=(ExitStatus.NOT_FOUND,),
)
async def coverage(run: Run, site: Sites = None) -> Answer:
    return answer_of("Coverage", *await run.ask(GetCoverage(sites=tuple(site or ())), Coverage))


def _ended(replay: Replay, meta: Meta) -> Answer:
    """A replay as it was seen last: 15 when it is over and did not reach its end."""
    failed = replay.state in ("failed", "cancelled")
    return answer_of("Replay", replay, meta, ExitStatus.FAILED if failed else ExitStatus.OK)
