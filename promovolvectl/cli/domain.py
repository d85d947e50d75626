"""What the nouns of the ad business share: arguments, statuses of `create`, and what it says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from promovolvectl.cli.names import named
from promovolvectl.client.exit_codes import ExitStatus

SHOWS: Final = (ExitStatus.NOT_FOUND, ExitStatus.PARTIAL)
ADDS: Final = (
    "Adds one {what}; nothing else changes. The same again succeeds with changed: false; other values under a name "
    "that is taken are a conflict (4)."
)
SiteId = Annotated[str, named("site", "SITE", "The site's id.")]
AdvertiserId = Annotated[str, named("advertiser", "ADVERTISER", "The advertiser's id.")]
CampaignId = Annotated[str, named("campaign", "CAMPAIGN", "The campaign's id.")]
CreativeId = Annotated[str, named("creative", "CREATIVE", "The creative's id.")]
Budget = Annotated[
    str, typer.Option("--daily-budget", metavar="AMOUNT", show_default=False, help="At most this a day, such as 50.00.")
]
NewBudget = Annotated[
    str, typer.Option("--daily-budget", metavar="AMOUNT", show_default=False, help="At most this a day from now on.")
]
NewTitle = Annotated[str, typer.Option("--name", metavar="TEXT", show_default=False, help="A name for people.")]
Title = Annotated[
    str, typer.Option("--name", metavar="TEXT", show_default=False, help="A name for people; the id when absent.")
]


def on_record(given: Mapping[str, Any]) -> dict[str, Any]:
    """What every order carries for the audit log and against being done twice."""
    return {"reason": given["reason"], "request_id": given["request_id"]}
