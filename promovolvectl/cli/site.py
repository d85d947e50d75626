"""`site create|list|show`."""

from __future__ import annotations

from typing import Annotated

import typer

from node.admin.protocol import CreateSite, GetSite, GetSites, SiteList, SiteShow
from promovolvectl.cli.domain import ADDS, CREATES, SHOWS, SiteId
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.render import Answer, answer_of, read_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.values import money, slots

app = group("Publishers' sites and their slots.")


@leaf(
    app,
    "create",
    does="Add a publisher's site with its slots.",
    changes=ADDS.format(what="site"),
    examples=(
        "promovolvectl site create example.com --publisher ann --slot top:728x90",
        "promovolvectl site create blog --host blog.example.com --publisher ann --slot a:300x250 --floor-cpm 0.80",
    ),
    exits=CREATES,
    shows="SiteShow",
)
async def create(
    run: Run,
    site: SiteId,
    publisher: Annotated[
        str, typer.Option("--publisher", metavar="NAME", show_default=False, help="Whose site it is.")
    ],
    slot: Annotated[
        list[str], typer.Option("--slot", metavar="NAME:WxH", show_default=False, help="A place for an ad; repeatable.")
    ],
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", show_default=False, help="Where its pages are; the id when absent.")
    ] = "",
    floor_cpm: Annotated[
        str, typer.Option("--floor-cpm", metavar="AMOUNT", help="No bid below this price of a thousand wins.")
    ] = "0.50",
) -> Answer:
    order = CreateSite(
        site=site,
        host=host or site,
        publisher=publisher,
        slots=slots(slot),
        floor_cpm=money(floor_cpm, "--floor-cpm", zero=True),
    )
    return answer_of("SiteShow", *await run.ask(order, SiteShow))


@leaf(
    app,
    "list",
    does="Every site.",
    changes="Reads only.",
    examples=("promovolvectl site list", "promovolvectl site list -o name"),
)
async def list_(run: Run) -> Answer:
    return answer_of("SiteList", *await run.ask(GetSites(), SiteList))


@leaf(
    app,
    "show",
    does="One site: its slots, what is approved there and what waits for approval.",
    changes="Reads only.",
    examples=("promovolvectl site show example.com", "promovolvectl site show example.com -o json --query pending"),
    exits=SHOWS,
)
async def show(run: Run, site: SiteId) -> Answer:
    return read_of("SiteShow", *await run.ask(GetSite(site=site), SiteShow))
