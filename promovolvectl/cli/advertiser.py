"""`advertiser create|list|show|update|suspend|resume|delete`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from node.admin.protocol import (
    AdvertiserList,
    AdvertiserShow,
    CreateAdvertiser,
    GetAdvertiser,
    GetAdvertisers,
    SetAdvertiserStatus,
    UpdateAdvertiser,
)
from promovolvectl.cli.changing import Change, Harm, ordered
from promovolvectl.cli.domain import ADDS, SHOWS, AdvertiserId, Budget, NewBudget, NewTitle, Title, on_record
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.paging import After, paged
from promovolvectl.cli.render import Answer, answer_of, read_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import usage
from promovolvectl.cli.values import money

app = group("Advertisers and their budgets.")


@ordered(
    app,
    "create",
    does="Add an advertiser with a daily budget.",
    changes=ADDS.format(what="advertiser"),
    examples=(
        "promovolvectl advertiser create acme --daily-budget 100.00",
        "promovolvectl advertiser create acme --name 'Acme Rail' --daily-budget 100.00 --timezone Europe/Vienna",
    ),
    shows="AdvertiserShow",
)
def create(
    run: Run,
    advertiser: AdvertiserId,
    daily_budget: Budget,
    name: Title = "",
    timezone: Annotated[
        str, typer.Option("--timezone", metavar="ZONE", help="Where its day begins, by its IANA name.")
    ] = "UTC",
    **given: Any,
) -> Change:
    order = CreateAdvertiser(
        advertiser=advertiser,
        name=name or advertiser,
        daily_budget=money(daily_budget, "--daily-budget"),
        timezone=timezone,
        **on_record(given),
    )
    return Change(order)


@leaf(
    app,
    "list",
    does="Every advertiser with its budget and what it spent today.",
    changes="Reads only. Long lists come page by page; --limit N asks for no more than that.",
    examples=("promovolvectl advertiser list", "promovolvectl advertiser list --sort spent_today:desc"),
)
async def list_(run: Run, after: After = "") -> Answer:
    return answer_of("AdvertiserList", *await paged(run, GetAdvertisers(after=after), AdvertiserList))


@leaf(
    app,
    "show",
    does="One advertiser: budget, spend, campaigns.",
    changes="Reads only.",
    examples=("promovolvectl advertiser show acme", "promovolvectl advertiser show acme -o json"),
    exits=SHOWS,
)
async def show(run: Run, advertiser: AdvertiserId) -> Answer:
    return read_of("AdvertiserShow", *await run.ask(GetAdvertiser(advertiser=advertiser), AdvertiserShow))


@ordered(
    app,
    "update",
    does="Change an advertiser's name or daily budget.",
    changes="A budget holds from now on: what was spent and promised today counts against it.",
    examples=(
        "promovolvectl advertiser update acme --daily-budget 250.00",
        "promovolvectl advertiser update acme --name 'Acme Rail' --reason 'new brand' -o json",
    ),
    shows="AdvertiserShow",
)
def update(
    run: Run, advertiser: AdvertiserId, daily_budget: NewBudget = "", name: NewTitle = "", **given: Any
) -> Change:
    if not (daily_budget or name):
        hint = f"promovolvectl advertiser update {advertiser} --daily-budget 250.00"
        raise usage("--daily-budget, --name", "say what to change", hint)
    budget = money(daily_budget, "--daily-budget") if daily_budget else None
    order = UpdateAdvertiser(advertiser=advertiser, name=name, daily_budget=budget, **on_record(given))
    return Change(order)


def _standing(advertiser: str, status: str, given: dict[str, Any], loses: str = "") -> Change:
    order = SetAdvertiserStatus(advertiser=advertiser, status=status, **on_record(given))
    return Change(order, loses=loses)


@ordered(
    app,
    "suspend",
    does="Stop all campaigns of an advertiser.",
    changes="They bid no more and leave all pools at once, until it is resumed. Approvals, budgets and figures stay.",
    examples=(
        "promovolvectl advertiser suspend acme --dry-run",
        "promovolvectl advertiser suspend acme --yes --reason 'unpaid' -o json",
    ),
    shows="AdvertiserShow",
    harm=Harm.ASKS,
)
def suspend(run: Run, advertiser: AdvertiserId, **given: Any) -> Change:
    return _standing(advertiser, "suspended", given)


@ordered(
    app,
    "resume",
    does="Let the campaigns of a suspended advertiser bid again.",
    changes="They are back within seconds, but for those that are paused themselves.",
    examples=("promovolvectl advertiser resume acme", "promovolvectl advertiser resume acme -o json"),
    shows="AdvertiserShow",
)
def resume(run: Run, advertiser: AdvertiserId, **given: Any) -> Change:
    return _standing(advertiser, "active", given)


@ordered(
    app,
    "delete",
    does="End an advertiser for good, and with it the bidding of its campaigns.",
    changes="They leave all pools at once; it can't be resumed and gets no more campaigns. What was spent and shown "
    "stays on record.",
    examples=(
        "promovolvectl advertiser delete acme --dry-run",
        "promovolvectl advertiser delete acme --confirm acme --reason 'contract is over'",
    ),
    shows="AdvertiserShow",
    harm=Harm.LOSES,
)
def delete(run: Run, advertiser: AdvertiserId, **given: Any) -> Change:
    return _standing(advertiser, "deleted", given, loses=advertiser)
