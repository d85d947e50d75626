"""`site create|list|show|explain|update|suspend|resume|delete`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from node.admin.protocol import CreateSite, GetSite, GetSites, SiteList, SiteShow, UpdateSite
from node.admin.protocol.explaining import ExplainSite, SiteExplanation
from node.admin.protocol.publishers import DeleteSite
from promovolvectl.cli.changing import Change, Harm, ordered
from promovolvectl.cli.domain import ADDS, SHOWS, SiteId, on_record
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.paging import After, paged
from promovolvectl.cli.render import Answer, answer_of, read_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.cli.values import money, share, slot_floors, slots

_Names = list[str] | None
BlockDomains = Annotated[
    _Names, typer.Option(metavar="DOMAIN", show_default=False, help="Serve no ads that land there; repeatable.")
]
UnblockDomains = Annotated[
    _Names, typer.Option(metavar="DOMAIN", show_default=False, help="Serve ads that land there again; repeatable.")
]
BlockProducts = Annotated[
    _Names, typer.Option(metavar="ID", show_default=False, help="Serve no ads of this IAB product; repeatable.")
]
UnblockProducts = Annotated[
    _Names, typer.Option(metavar="ID", show_default=False, help="Serve ads of this IAB product again; repeatable.")
]
DeclareSlots = Annotated[
    _Names,
    typer.Option("--slot", metavar="NAME:WxH", help="A place that is added, or has this size now; repeatable."),
]
DropSlots = Annotated[
    _Names, typer.Option("--drop-slot", metavar="NAME", help="A place that is declared no more; repeatable.")
]
Audience = Annotated[
    _Names,
    typer.Option("--audience", metavar="CODE", show_default=False, help="Where readers are: JP, JP-14; repeatable."),
]
ClearAudience = Annotated[bool, typer.Option("--clear-audience", help="Say nothing any more of where the readers are.")]
Pace = Annotated[
    bool | None,
    typer.Option("--pace/--no-pace", show_default=False, help="Whether budgets are made to last their day here."),
]
app = group("Publishers' sites and their slots.")


@ordered(
    app,
    "create",
    does="Add a publisher's site with its slots.",
    changes=ADDS.format(what="site"),
    examples=(
        "promovolvectl site create example.com --publisher ann --slot top:728x90",
        "promovolvectl site create blog --host blog.example.com --publisher ann --slot a:300x250 --floor-cpm 0.80",
    ),
    shows="SiteShow",
)
def create(
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
    **given: Any,
) -> Change:
    order = CreateSite(
        site=site,
        host=host or site,
        publisher=publisher,
        slots=slots(slot),
        floor_cpm=money(floor_cpm, "--floor-cpm", zero=True),
        **on_record(given),
    )
    return Change(order)


@leaf(
    app,
    "list",
    does="Every site.",
    changes="Reads only. Long lists come page by page; --limit N asks for no more than that.",
    examples=("promovolvectl site list", "promovolvectl site list -o name"),
)
async def list_(run: Run, after: After = "") -> Answer:
    return answer_of("SiteList", *await paged(run, GetSites(after=after), SiteList))


@leaf(
    app,
    "show",
    does="One site: its slots, what is approved there and what waits for approval.",
    changes="Reads only. Its shard, and the node that has it: 'entity where site SITE'.",
    examples=("promovolvectl site show example.com", "promovolvectl site show example.com -o json --query pending"),
    exits=SHOWS,
)
async def show(run: Run, site: SiteId) -> Answer:
    return read_of("SiteShow", *await run.ask(GetSite(site=site), SiteShow))


@leaf(
    app,
    "explain",
    does="What happens at a site and why: what must agree and does not, what its auctions and page views came of by "
    "the hour, unknown urls, what waits and why it is hidden.",
    changes="Reads only. Counts are kept in memory, since the start of whoever counts.",
    examples=(
        "promovolvectl site explain example.com",
        "promovolvectl site explain example.com -o json --query \"counts[?of=='late']\"",
    ),
    exits=SHOWS,
)
async def explain(run: Run, site: SiteId) -> Answer:
    return answer_of("SiteExplanation", *await run.ask(ExplainSite(site=site), SiteExplanation))


@ordered(
    app,
    "update",
    does="Change a site's floor and slots, what its publisher blocks or trusts, whether it paces, and how its money is "
    "counted.",
    changes="Pools lose what is blocked or below the floor at once; what becomes possible is auctioned in seconds.",
    examples=(
        "promovolvectl site update example.com --floor-cpm 0.80 --pace",
        "promovolvectl site update example.com --block-domain shop.example --block-product 1052",
    ),
    shows="SiteShow",
)
def update(
    run: Run,
    site: SiteId,
    floor_cpm: Annotated[
        str, typer.Option("--floor-cpm", metavar="AMOUNT", show_default=False, help="No bid below this price wins.")
    ] = "",
    block_domain: BlockDomains = None,
    unblock_domain: UnblockDomains = None,
    block_product: BlockProducts = None,
    unblock_product: UnblockProducts = None,
    pace: Pace = None,
    auto_approve: Annotated[
        bool | None,
        typer.Option(
            "--auto-approve/--no-auto-approve",
            show_default=False,
            help="Whether creatives of campaigns and domains that were approved by hand skip the queue.",
        ),
    ] = None,
    slot_floor: Annotated[
        list[str] | None,
        typer.Option(
            "--slot-floor", metavar="NAME:AMOUNT", help="A slot's own floor, in place of the site's; repeatable."
        ),
    ] = None,
    clear_slot_floor: Annotated[
        list[str] | None,
        typer.Option("--clear-slot-floor", metavar="NAME", help="A slot that has the site's floors again; repeatable."),
    ] = None,
    slot: DeclareSlots = None,
    drop_slot: DropSlots = None,
    timezone: Annotated[
        str,
        typer.Option("--timezone", metavar="ZONE", show_default=False, help="The publisher's days: Asia/Tokyo."),
    ] = "",
    margin: Annotated[
        str | None,
        typer.Option(
            "--margin", metavar="RATIO", show_default=False, help="The share of each price that the platform keeps."
        ),
    ] = None,
    audience: Audience = None,
    clear_audience: ClearAudience = False,
    **given: Any,
) -> Change:
    if audience and clear_audience:
        raise usage("--clear-audience", "the audience is cleared and given at once", "without --clear-audience")
    order = UpdateSite(
        site=site,
        floor_cpm=money(floor_cpm, "--floor-cpm", zero=True) if floor_cpm else None,
        block_domains=tuple(block_domain or ()),
        unblock_domains=tuple(unblock_domain or ()),
        block_products=tuple(block_product or ()),
        unblock_products=tuple(unblock_product or ()),
        paced=pace,
        auto_approve=auto_approve,
        slot_floors=slot_floors(slot_floor or ()),
        clear_slot_floors=tuple(clear_slot_floor or ()),
        slots=slots(slot or []),
        drop_slots=tuple(drop_slot or ()),
        timezone=timezone,
        margin=None if margin is None else share(margin, "--margin"),
        audience=tuple(dict.fromkeys(audience)) if audience else () if clear_audience else None,
        **on_record(given),
    )
    if order == UpdateSite(site=site, **on_record(given)):
        raise usage("--floor-cpm", "say what to change", f"promovolvectl site update {site} --floor-cpm 0.80")
    return Change(order)


@ordered(
    app,
    "suspend",
    does="Serve nothing on a site.",
    changes="Its pools are emptied and no auctions run for it until it is resumed. Pages and approvals stay.",
    examples=(
        "promovolvectl site suspend example.com --dry-run",
        "promovolvectl site suspend example.com --yes --reason 'takedown 17' -o json",
    ),
    shows="SiteShow",
    harm=Harm.ASKS,
)
def suspend(run: Run, site: SiteId, **given: Any) -> Change:
    return Change(UpdateSite(site=site, suspended=True, **on_record(given)))


@ordered(
    app,
    "resume",
    does="Serve on a suspended site again.",
    changes="Its fresh pages are auctioned again at once.",
    examples=("promovolvectl site resume example.com", "promovolvectl site resume example.com -o json"),
    shows="SiteShow",
)
def resume(run: Run, site: SiteId, **given: Any) -> Change:
    return Change(UpdateSite(site=site, suspended=False, **on_record(given)))


@ordered(
    app,
    "delete",
    does="End a site for good, with its pages and approvals.",
    changes="Nothing is served on it any more: its pools are removed at once, then everything that it knew. What was "
    "shown on it and paid for stays on record.",
    examples=(
        "promovolvectl site delete example.com --dry-run",
        "promovolvectl site delete example.com --confirm example.com --reason 'sold'",
    ),
    shows="SiteShow",
    harm=Harm.LOSES,
)
def delete(run: Run, site: SiteId, **given: Any) -> Change:
    return Change(DeleteSite(site=site, **on_record(given)), loses=site)
