"""`creative create|list|show|pause|resume|delete|approve|revoke|reject`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from node.admin.protocol import (
    ApproveCreative,
    CreateCreative,
    CreativeList,
    CreativeShow,
    GetCreative,
    GetCreatives,
    RevokeCreative,
    SetCreativeStatus,
)
from promovolvectl.cli.changing import Change, Harm, ordered
from promovolvectl.cli.domain import ADDS, SHOWS, CreativeId, on_record
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import naming
from promovolvectl.cli.paging import paged
from promovolvectl.cli.render import Answer, answer_of, read_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.values import size, web_url

OnlySite = Annotated[str, naming("--site", "site", "SITE", "Only this site.")]
app = group("Creatives and their approval.")


@ordered(
    app,
    "create",
    does="Add a creative to a campaign; publishers approve it before it is served.",
    changes=ADDS.format(what="creative"),
    examples=(
        "promovolvectl creative create cr-1 --campaign rail --asset-url https://cdn.example/a.png "
        "--landing-url https://rail.example/ --size 728x90",
        "promovolvectl creative create cr-2 --campaign rail --asset-url https://cdn.example/b.webp "
        "--landing-url https://rail.example/ --size 300x250 --mime image/webp",
    ),
    shows="CreativeShow",
)
def create(
    run: Run,
    creative: CreativeId,
    campaign: Annotated[str, naming("--campaign", "campaign", "ID", "Whose creative it is.")],
    asset_url: Annotated[str, typer.Option("--asset-url", metavar="URL", show_default=False, help="The picture.")],
    landing_url: Annotated[
        str, typer.Option("--landing-url", metavar="URL", show_default=False, help="Where a click leads.")
    ],
    pixels: Annotated[str, typer.Option("--size", metavar="WxH", show_default=False, help="Its size in pixels.")],
    mime: Annotated[str, typer.Option("--mime", metavar="TYPE", help="The picture's media type.")] = "image/png",
    product: Annotated[
        str, typer.Option("--product", metavar="ID", show_default=False, help="Its IAB product category, such as 1052.")
    ] = "",
    **given: Any,
) -> Change:
    width, height = size(pixels, "--size")
    order = CreateCreative(
        creative=creative,
        campaign=campaign,
        asset_url=web_url(asset_url, "--asset-url"),
        landing_url=web_url(landing_url, "--landing-url"),
        width=width,
        height=height,
        mime=mime,
        product=product,
        **on_record(given),
    )
    return Change(order)


@leaf(
    app,
    "list",
    does="Every creative and where it is approved.",
    changes="Reads only. Long lists come page by page; --limit N asks for no more than that.",
    examples=("promovolvectl creative list", "promovolvectl creative list --campaign rail -o name"),
)
async def list_(
    run: Run,
    campaign: Annotated[str, naming("--campaign", "campaign", "ID", "Only this campaign's.")] = "",
) -> Answer:
    return answer_of("CreativeList", *await paged(run, GetCreatives(campaign=campaign or None), CreativeList))


@leaf(
    app,
    "show",
    does="One creative.",
    changes="Reads only.",
    examples=("promovolvectl creative show cr-1", "promovolvectl creative show cr-1 -o json"),
    exits=SHOWS,
)
async def show(run: Run, creative: CreativeId) -> Answer:
    return read_of("CreativeShow", *await run.ask(GetCreative(creative=creative), CreativeShow))


def _standing(creative: str, status: str, given: dict[str, Any], loses: str = "") -> Change:
    order = SetCreativeStatus(creative=creative, status=status, **on_record(given))
    return Change(order, loses=loses)


@ordered(
    app,
    "pause",
    does="Stop a creative: its campaign bids with its others only, and it leaves all pools at once.",
    changes="It is served nowhere until it is resumed. Approvals and figures stay.",
    examples=("promovolvectl creative pause cr-1", "promovolvectl creative pause cr-1 --reason 'old price' -o json"),
    shows="CreativeShow",
)
def pause(run: Run, creative: CreativeId, **given: Any) -> Change:
    return _standing(creative, "paused", given)


@ordered(
    app,
    "resume",
    does="Let a campaign bid with a paused creative again.",
    changes="It is back in the pools of its pages within seconds, where it is approved.",
    examples=("promovolvectl creative resume cr-1", "promovolvectl creative resume cr-1 -o json"),
    shows="CreativeShow",
)
def resume(run: Run, creative: CreativeId, **given: Any) -> Change:
    return _standing(creative, "active", given)


@ordered(
    app,
    "delete",
    does="End a creative for good.",
    changes="It leaves all pools at once, and sites forget that they approved it or were asked. Its id is not used "
    "again: what a publisher saw under it can't become something else.",
    examples=(
        "promovolvectl creative delete cr-1 --dry-run",
        "promovolvectl creative delete cr-1 --confirm cr-1 --reason 'rights ended'",
    ),
    shows="CreativeShow",
    harm=Harm.LOSES,
)
def delete(run: Run, creative: CreativeId, **given: Any) -> Change:
    return _standing(creative, "deleted", given, loses=creative)


@ordered(
    app,
    "approve",
    does="Approve a creative for a site, in the publisher's name; from then on it may be served there.",
    changes="Changes what may be served on the sites named. Without --site: every site where it waits.",
    examples=("promovolvectl creative approve cr-1 --site example.com", "promovolvectl creative approve cr-1 -o json"),
    shows="Approved",
)
def approve(run: Run, creative: CreativeId, site: OnlySite = "", **given: Any) -> Change:
    order = ApproveCreative(creative=creative, site=site, **on_record(given))
    return Change(order)


@ordered(
    app,
    "revoke",
    does="Take a creative's approval back, in the publisher's name.",
    changes="It leaves the pools of the sites named at once and waits for approval again. Without --site: all sites'.",
    examples=(
        "promovolvectl creative revoke cr-1 --site example.com --dry-run",
        "promovolvectl creative revoke cr-1 --yes --reason 'complaint 17' -o json",
    ),
    shows="Revoked",
    harm=Harm.ASKS,
)
def revoke(run: Run, creative: CreativeId, site: OnlySite = "", **given: Any) -> Change:
    return Change(RevokeCreative(creative=creative, site=site, **on_record(given)))


@ordered(
    app,
    "reject",
    does="Refuse a creative, in the publisher's name.",
    changes="It leaves pools and queues of the sites named at once and is not offered again; approve undoes it.",
    examples=(
        "promovolvectl creative reject cr-1 --site example.com --dry-run",
        "promovolvectl creative reject cr-1 --site example.com --yes -o json",
    ),
    shows="Revoked",
    harm=Harm.ASKS,
)
def reject(run: Run, creative: CreativeId, site: OnlySite = "", **given: Any) -> Change:
    return Change(RevokeCreative(creative=creative, site=site, reject=True, **on_record(given)))
