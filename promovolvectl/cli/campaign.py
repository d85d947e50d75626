"""`campaign create|list|show|explain|update|pause|resume|delete`."""

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
    UpdateCampaign,
)
from node.admin.protocol.explaining import CampaignExplanation, ExplainCampaign
from promovolvectl.cli.changing import Change, Harm, ordered
from promovolvectl.cli.domain import ADDS, SHOWS, Budget, CampaignId, NewBudget, NewTitle, Title, on_record
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import naming
from promovolvectl.cli.paging import After, paged
from promovolvectl.cli.render import Answer, answer_of, read_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.cli.targeting import (
    Audience,
    BlockCategories,
    End,
    Lift,
    Places,
    Sites,
    Start,
    Unmatched,
    chosen,
    lifted,
)
from promovolvectl.cli.values import money

app = group("Campaigns, their bids and categories.")


@ordered(
    app,
    "create",
    does="Add a campaign that bids on categories of content.",
    changes=ADDS.format(what="campaign"),
    examples=(
        "promovolvectl campaign create rail --advertiser acme --max-cpm 4.00 --daily-budget 50.00 --category 653",
        "promovolvectl campaign create two --advertiser acme --max-cpm 2.50 --daily-budget 9 --category 1 --place JP",
    ),
    shows="CampaignShow",
)
def create(
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
    on_site: Sites = None,
    place: Places = None,
    audience: Audience = None,
    block_category: BlockCategories = None,
    start: Start = "",
    end: End = "",
    unmatched: Unmatched = None,
    **given: Any,
) -> Change:
    order = CreateCampaign(
        campaign=campaign,
        advertiser=advertiser,
        name=name or campaign,
        max_cpm=money(max_cpm, "--max-cpm"),
        daily_budget=money(daily_budget, "--daily-budget"),
        categories=tuple(dict.fromkeys(category)),
        **chosen(on_site, place, audience, block_category, start, end, unmatched),
        **on_record(given),
    )
    return Change(order)


@leaf(
    app,
    "list",
    does="Every campaign with its bid, budget and results.",
    changes="Reads only. Long lists come page by page; --limit N asks for no more than that.",
    examples=("promovolvectl campaign list", "promovolvectl campaign list --advertiser acme -o json"),
)
async def list_(
    run: Run,
    advertiser: Annotated[str, naming("--advertiser", "advertiser", "ID", "Only this advertiser's.")] = "",
    after: After = "",
) -> Answer:
    request = GetCampaigns(advertiser=advertiser or None, after=after)
    return answer_of("CampaignList", *await paged(run, request, CampaignList))


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


@leaf(
    app,
    "explain",
    does="Whether every bidder of its categories has a campaign's bid, how old that is, and where the campaign's money "
    "is.",
    changes="Reads only; each stripe of each category is asked, and one that hangs is named.",
    examples=(
        "promovolvectl campaign explain rail",
        "promovolvectl campaign explain rail --filter quote!=counts -o json",
    ),
    exits=SHOWS,
)
async def explain(run: Run, campaign: CampaignId) -> Answer:
    return answer_of("CampaignExplanation", *await run.ask(ExplainCampaign(campaign=campaign), CampaignExplanation))


@ordered(
    app,
    "update",
    does="Change a campaign's name, bid, daily budget, or where and when it bids.",
    changes="Another bid, or another targeting, is auctioned within seconds; sites that are named no more are left "
    "at once. A budget holds from now on: what was spent and promised today counts against it. Other categories are "
    "another campaign.",
    examples=(
        "promovolvectl campaign update rail --max-cpm 3.50 --daily-budget 80.00 --reason 'autumn'",
        "promovolvectl campaign update rail --place JP-14 --end 2026-12-24T00:00:00Z --lift sites -o json",
    ),
    shows="CampaignShow",
)
def update(
    run: Run,
    campaign: CampaignId,
    max_cpm: Annotated[
        str,
        typer.Option("--max-cpm", metavar="AMOUNT", show_default=False, help="The most for a thousand impressions."),
    ] = "",
    daily_budget: NewBudget = "",
    name: NewTitle = "",
    on_site: Sites = None,
    place: Places = None,
    audience: Audience = None,
    block_category: BlockCategories = None,
    start: Start = "",
    end: End = "",
    unmatched: Unmatched = None,
    lift: Lift = None,
    **given: Any,
) -> Change:
    targets = chosen(on_site, place, audience, block_category, start, end, unmatched)
    targets |= lifted(lift, targets)
    if not (max_cpm or daily_budget or name or targets):
        hint = f"promovolvectl campaign update {campaign} --max-cpm 3.50"
        raise usage("--max-cpm, --daily-budget, --place", "say what to change", hint)
    order = UpdateCampaign(
        campaign=campaign,
        name=name,
        max_cpm=money(max_cpm, "--max-cpm") if max_cpm else None,
        daily_budget=money(daily_budget, "--daily-budget") if daily_budget else None,
        **targets,
        **on_record(given),
    )
    return Change(order)


def _standing(campaign: str, status: str, given: dict[str, Any], loses: str = "") -> Change:
    order = SetCampaignStatus(campaign=campaign, status=status, **on_record(given))
    return Change(order, loses=loses)


@ordered(
    app,
    "pause",
    does="Stop a campaign: it bids no more and leaves all pools at once.",
    changes="Its ads are served nowhere until it is resumed. Approvals, budget and figures stay.",
    examples=("promovolvectl campaign pause rail", "promovolvectl campaign pause rail -o value --query changed"),
    shows="CampaignShow",
)
def pause(run: Run, campaign: CampaignId, **given: Any) -> Change:
    return _standing(campaign, "paused", given)


@ordered(
    app,
    "resume",
    does="Let a paused campaign bid again.",
    changes="It is back in the pools of its pages within seconds, where it is approved.",
    examples=("promovolvectl campaign resume rail", "promovolvectl campaign resume rail -o json"),
    shows="CampaignShow",
)
def resume(run: Run, campaign: CampaignId, **given: Any) -> Change:
    return _standing(campaign, "active", given)


@ordered(
    app,
    "delete",
    does="End a campaign for good.",
    changes="It leaves all pools at once and can't be resumed; what it spent and showed stays on record.",
    examples=(
        "promovolvectl campaign delete rail --dry-run",
        "promovolvectl campaign delete rail --confirm rail --reason 'season is over'",
    ),
    shows="CampaignShow",
    harm=Harm.LOSES,
)
def delete(run: Run, campaign: CampaignId, **given: Any) -> Change:
    return _standing(campaign, "deleted", given, loses=campaign)
