"""`campaign create|list|show|pause|resume|delete`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from node.admin.protocol import (
    CampaignList,
    CampaignShow,
    CreateCampaign,
    GetCampaign,
    GetCampaigns,
    SetCampaignStatus,
)
from promovolvectl.cli.confirm import confirm_loss, spelled
from promovolvectl.cli.domain import ADDS, CREATES, DECIDES, SHOWS, Budget, CampaignId, Title
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import naming
from promovolvectl.cli.options import LOSES
from promovolvectl.cli.render import Answer, answer_of, read_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.values import money
from promovolvectl.client.exit_codes import ExitStatus

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
    advertiser: Annotated[str, naming("--advertiser", "advertiser", "ID", "Whose campaign it is.")],
    max_cpm: Annotated[
        str,
        typer.Option("--max-cpm", metavar="AMOUNT", show_default=False, help="The most for a thousand impressions."),
    ],
    daily_budget: Budget,
    category: Annotated[
        list[str],
        naming("--category", "category", "ID", "A content category to bid on; repeatable."),
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
    advertiser: Annotated[str, naming("--advertiser", "advertiser", "ID", "Only this advertiser's.")] = "",
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


async def _set(run: Run, campaign: str, status: str) -> Answer:
    order = SetCampaignStatus(campaign=campaign, status=status)
    return answer_of("CampaignShow", *await run.ask(order, CampaignShow))


@leaf(
    app,
    "pause",
    does="Stop a campaign: it bids no more and leaves all pools at once.",
    changes="Its ads are served nowhere until it is resumed. Approvals, budget and figures stay.",
    examples=("promovolvectl campaign pause rail", "promovolvectl campaign pause rail -o value --query changed"),
    exits=DECIDES,
    shows="CampaignShow",
)
async def pause(run: Run, campaign: CampaignId) -> Answer:
    return await _set(run, campaign, "paused")


@leaf(
    app,
    "resume",
    does="Let a paused campaign bid again.",
    changes="It is back in the pools of its pages within seconds, where it is approved.",
    examples=("promovolvectl campaign resume rail", "promovolvectl campaign resume rail -o json"),
    exits=DECIDES,
    shows="CampaignShow",
)
async def resume(run: Run, campaign: CampaignId) -> Answer:
    return await _set(run, campaign, "active")


@leaf(
    app,
    "delete",
    does="End a campaign for good.",
    changes="It leaves all pools at once and can't be resumed; what it spent and showed stays on record.",
    examples=("promovolvectl campaign delete rail", "promovolvectl campaign delete rail --confirm rail"),
    exits=(*DECIDES, ExitStatus.NOT_CONFIRMED),
    flags=LOSES,
    shows="CampaignShow",
)
async def delete(run: Run, campaign: CampaignId, **given: Any) -> Answer:
    shown = f"campaign {campaign} ends for good: it leaves all pools and can't be resumed\n"
    again = spelled("campaign", "delete", campaign)
    confirm_loss(run, shown, again, f"campaign/{campaign}", campaign, given["confirmed"])
    return await _set(run, campaign, "deleted")
