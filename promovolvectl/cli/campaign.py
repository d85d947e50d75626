"""`campaign create|list|show`."""

from __future__ import annotations

from typing import Annotated

import typer

from node.admin.protocol import CampaignList, CampaignShow, CreateCampaign, GetCampaign, GetCampaigns
from promovolvectl.cli.domain import ADDS, CREATES, SHOWS, Budget, CampaignId, Title
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.render import Answer, answer_of, read_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.values import money

app = group("Campaigns, their bids and categories.")


@leaf(
    app,
    "create",
    does="Add a campaign that bids on categories of content.",
    changes=ADDS.format(what="campaign"),
    examples=(
        "promovolvectl campaign create rail --advertiser acme --max-cpm 4.00 --daily-budget 50.00 --category 653",
        "promovolvectl campaign create two --advertiser acme --max-cpm 2.50 --daily-budget 9 --category 1 --category 2",
    ),
    exits=CREATES,
    shows="CampaignShow",
)
async def create(
    run: Run,
    campaign: CampaignId,
    advertiser: Annotated[
        str, typer.Option("--advertiser", metavar="ID", show_default=False, help="Whose campaign it is.")
    ],
    max_cpm: Annotated[
        str,
        typer.Option("--max-cpm", metavar="AMOUNT", show_default=False, help="The most for a thousand impressions."),
    ],
    daily_budget: Budget,
    category: Annotated[
        list[str],
        typer.Option("--category", metavar="ID", show_default=False, help="A content category to bid on; repeatable."),
    ],
    name: Title = "",
) -> Answer:
    order = CreateCampaign(
        campaign=campaign,
        advertiser=advertiser,
        name=name or campaign,
        max_cpm=money(max_cpm, "--max-cpm"),
        daily_budget=money(daily_budget, "--daily-budget"),
        categories=tuple(dict.fromkeys(category)),
    )
    return answer_of("CampaignShow", *await run.ask(order, CampaignShow))


@leaf(
    app,
    "list",
    does="Every campaign with its bid, budget and results.",
    changes="Reads only.",
    examples=("promovolvectl campaign list", "promovolvectl campaign list --advertiser acme -o json"),
)
async def list_(
    run: Run,
    advertiser: Annotated[
        str, typer.Option("--advertiser", metavar="ID", show_default=False, help="Only this advertiser's.")
    ] = "",
) -> Answer:
    return answer_of("CampaignList", *await run.ask(GetCampaigns(advertiser=advertiser or None), CampaignList))


@leaf(
    app,
    "show",
    does="One campaign: bid, budget, spend, impressions, clicks.",
    changes="Reads only.",
    examples=("promovolvectl campaign show rail", "promovolvectl campaign show rail -o value --query spent_today"),
    exits=SHOWS,
)
async def show(run: Run, campaign: CampaignId) -> Answer:
    return read_of("CampaignShow", *await run.ask(GetCampaign(campaign=campaign), CampaignShow))
