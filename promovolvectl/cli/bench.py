"""`bench serve|actors|replication`."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Annotated, Final

import msgspec
import typer

from node.admin.protocol import GetNodes, GetPages, GetSites, Meta, NodeList, PageList, SiteList, Warned
from promovolvectl.cli.confirm import confirm
from promovolvectl.cli.duration import milliseconds
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import naming
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import Bench, BenchFigure
from promovolvectl.local import benchmarks
from promovolvectl.local.page_views import PageView, Seen, load, spread

app = group("How fast it is: page views on this cluster, actors and replication on this machine.")
PAGES_MAX: Final = 50  # of each site: enough that no cache of one page is measured
SECONDS_MAX: Final = 600
Runs = Annotated[int, typer.Option("--runs", metavar="N", min=1, max=100, help="Repetitions of each measurement.")]
_CHECKOUT: Final = "Nothing of a cluster: it runs processes of its own, on this machine, out of the source's checkout."


@leaf(
    app,
    "serve",
    does="Ask for page views over HTTP, of pages that are classified here, and measure the answers node by node.",
    changes="Real page views: they are counted, and what wins has its price promised until the promise lapses, since "
    "no impression follows. Asks first. A viewer's key is enough: a page view is anybody's who reaches the HTTP API. "
    "What is measured includes this program. Ends with 15 when a page view failed, and counts those of each node. "
    "Ctrl-C ends it before its time and prints what was measured until then.",
    examples=(
        "promovolvectl bench serve --for 10s --yes",
        "promovolvectl bench serve --site example.com --connections 32 --for 1s --yes -o json",
    ),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.NOT_CONFIRMED, ExitStatus.PARTIAL, ExitStatus.FAILED),
    shows="Bench",
)
async def serve(
    run: Run,
    site: Annotated[str, naming("--site", "site", "SITE", "Only pages of this site.")] = "",
    for_: Annotated[str, typer.Option("--for", metavar="TIME", help="How long.")] = "5s",
    connections: Annotated[
        int, typer.Option("--connections", metavar="N", min=1, max=256, help="Page views at a time.")
    ] = 8,
) -> Answer:
    seconds = milliseconds(for_, "--for", SECONDS_MAX * 1_000) / 1_000
    nodes, views, meta = await _asked(run, site)
    where = ", ".join(sorted(nodes))
    shown = f"LOAD: {connections} page views at a time for {for_} at {where}; what wins has its price promised\n"
    confirm(run, shown, "cluster")
    stop = threading.Event()
    began = time.monotonic()
    loading = asyncio.ensure_future(
        asyncio.to_thread(load, nodes, views, seconds=seconds, connections=connections, stop=stop)
    )
    try:
        seen = await asyncio.shield(loading)
    except asyncio.CancelledError:
        stop.set()
        elapsed_s = time.monotonic() - began
        seen = await loading  # what is under way is answered, or given up, within seconds; Ctrl-C again ends it
        text = f"stopped after {elapsed_s:.1f} s of {for_}: this is what was measured until then"
        cut = msgspec.structs.replace(meta, warnings=(*meta.warnings, Warned(code="W-CUT-SHORT", text=text)))
        run.emit(_answer(seen, elapsed_s, cut))
        raise
    finally:
        stop.set()
    return _answer(seen, time.monotonic() - began, meta)


def _answer(seen: dict[str, Seen], elapsed_s: float, meta: Meta) -> Answer:
    found = Bench(subject="serve", items=_figures(seen, elapsed_s), elapsed_s=elapsed_s)
    failed = any(one.failed or not one.took_ms for one in seen.values())
    return answer_of("Bench", found, meta, ExitStatus.FAILED if failed else ExitStatus.OK)


async def _asked(run: Run, site: str) -> tuple[dict[str, str], list[PageView], Meta]:
    """Where page views are taken, and pages to view; raises CommandFailed (3) where there are none."""
    rows, meta = await run.ask(GetNodes(), NodeList)
    nodes = {row.name: row.http for row in rows.items if row.http and row.ready}
    sites, _ = await run.ask(GetSites(), SiteList)
    views: list[PageView] = []
    for known in sites.items:
        if site in ("", known.site) and not known.suspended:
            pages, _ = await run.ask(GetPages(site=known.site), PageList)
            slots = tuple((slot.slot, slot.width, slot.height) for slot in known.slots)
            views += [PageView(known.site, page.url, slots) for page in pages.items[-PAGES_MAX:] if page.fresh]
    if not nodes or not views:
        lacks = "no node with the api role is ready" if not nodes else f"no fresh page of {site or 'any site'} is known"
        hint = "promovolvectl node list" if not nodes else "promovolvectl site list"
        raise CommandFailed(ExitStatus.NOT_FOUND, "E-NOT-FOUND", lacks, hint=hint, about=site)
    return nodes, views, meta


def _figures(seen: dict[str, Seen], elapsed_s: float) -> tuple[BenchFigure, ...]:
    """Of each node its rate, how long an answer took, how many slots were filled, and what failed."""
    found: list[BenchFigure] = []
    for node, one in sorted(seen.items()):
        count = len(one.took_ms)
        median, p99, least, most = spread(one.took_ms)
        found += [
            _one(f"{node}.page_views", count / elapsed_s if elapsed_s else 0.0, "1/s", count),
            BenchFigure(name=f"{node}.answer", median=median, p99=p99, least=least, most=most, unit="ms", count=count),
            _one(f"{node}.filled", one.filled / one.slots if one.slots else 0.0, "1", one.slots),
        ]
        found += _failures(node, one)
    return tuple(found)


def _failures(node: str, one: Seen) -> Iterator[BenchFigure]:
    """Their number, none too, and of each kind; `count` is of what they are a part."""
    failed = sum(one.failed.values())
    asked = len(one.took_ms) + failed
    yield _one(f"{node}.failed", float(failed), "times", asked)
    for why, times in sorted(one.failed.items()):
        yield _one(f"{node}.failed.{why}", float(times), "times", asked)


def _one(name: str, value: float, unit: str, count: int) -> BenchFigure:
    return BenchFigure(name=name, median=value, least=value, most=value, unit=unit, count=count)


async def _of_checkout(run: Run, subject: str, runs: int) -> Answer:
    began = time.monotonic()
    items = await benchmarks.measured(subject, runs, run.say)
    return answer_of("Bench", Bench(subject=subject, items=items, elapsed_s=time.monotonic() - began), run.local_meta())


@leaf(
    app,
    "actors",
    does="Measure the actor runtime beside its peers: messages a second, questions, starts.",
    changes=_CHECKOUT,
    examples=("promovolvectl bench actors --runs 1", "promovolvectl bench actors -o json --query 'items[].name'"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.FAILED),
    asks=False,
    shows="Bench",
)
async def actors(run: Run, runs: Runs = 5) -> Answer:
    return await _of_checkout(run, "actors", runs)


@leaf(
    app,
    "replication",
    does="Measure how long a put takes to be seen on all of four nodes, and how fast a replica opens.",
    changes=_CHECKOUT,
    examples=("promovolvectl bench replication --runs 2", "promovolvectl bench replication --sort median:desc"),
    exits=(ExitStatus.NOT_FOUND, ExitStatus.FAILED),
    asks=False,
    shows="Bench",
)
async def replication(run: Run, runs: Runs = 5) -> Answer:
    return await _of_checkout(run, "replication", runs)
