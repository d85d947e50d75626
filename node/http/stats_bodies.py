"""What is asked for statistics and metering, and what they answer. Money in decimal strings; `ctas` are calls to action
that were followed."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from node.http.admin_bodies import Body, EntityId, Limit, PageQuery

Day = Annotated[str, msgspec.Meta(pattern=r"^([0-9]{4}-[0-9]{2}-[0-9]{2})?$")]
Hour = Annotated[str, msgspec.Meta(max_length=40, extra_json_schema={"format": "date-time"})]
AfterPeriod = Annotated[str, msgspec.Meta(pattern=r"^[0-9T:+-]*$", max_length=25)]
AfterRow = Annotated[str, msgspec.Meta(pattern=r"^[!-~]*$", max_length=460)]

# ---- statistics


class SpanQuery(PageQuery, frozen=True):
    """From one day to another, both included; without either all that is known."""

    first: Day = msgspec.field(default="", name="from")
    last: Day = msgspec.field(default="", name="to")


class PeriodsQuery(Body, frozen=True):
    """As SpanQuery, of periods: `after` is one of them."""

    after: AfterPeriod = ""
    limit: Limit = 0
    first: Day = msgspec.field(default="", name="from")
    last: Day = msgspec.field(default="", name="to")
    by: Literal["day", "hour"] = "day"


class BreakdownQuery(SpanQuery, frozen=True):
    by: Literal["site", "category"] = "site"


class PeriodEarned(msgspec.Struct, frozen=True):
    """`period`: a day, or an hour with its offset from UTC, of the publisher's time zone. `revenue` is the
    publisher's: the platform's margin is gone from it."""

    period: str
    impressions: int
    clicks: int
    ctas: int
    revenue: str


class SiteStats(msgspec.Struct, frozen=True):
    """`next`: what to ask for `after`; empty when these are the last. So with the other lists here."""

    site: str
    timezone: str
    items: tuple[PeriodEarned, ...]
    next: str = ""


class SiteEarned(msgspec.Struct, frozen=True):
    site: str
    impressions: int
    clicks: int
    ctas: int
    revenue: str


class PublisherStats(msgspec.Struct, frozen=True):
    """Sums by site, each in the days of its own time zone."""

    publisher: str
    items: tuple[SiteEarned, ...]
    next: str = ""


class PeriodSpent(msgspec.Struct, frozen=True):
    """`period`: a day of the advertiser's account, or an hour with its offset from UTC."""

    period: str
    impressions: int
    clicks: int
    ctas: int
    spend: str


class CampaignStats(msgspec.Struct, frozen=True):
    campaign: str
    timezone: str
    items: tuple[PeriodSpent, ...]
    next: str = ""


class CampaignSpent(msgspec.Struct, frozen=True):
    campaign: str
    impressions: int
    clicks: int
    ctas: int
    spend: str


class AdvertiserStats(msgspec.Struct, frozen=True):
    """Sums by campaign."""

    advertiser: str
    items: tuple[CampaignSpent, ...]
    next: str = ""


class CreativeSpent(msgspec.Struct, frozen=True):
    creative: str
    impressions: int
    clicks: int
    ctas: int
    spend: str


class CreativeStats(msgspec.Struct, frozen=True):
    """Of a campaign's creatives, in their whole lives."""

    campaign: str
    items: tuple[CreativeSpent, ...]
    next: str = ""


class Part(msgspec.Struct, frozen=True):
    """`name` of a category as the taxonomy has it, of a site its id; `-` is what nobody knows any more."""

    id: str
    name: str
    impressions: int
    clicks: int
    ctas: int
    spend: str


class Breakdown(msgspec.Struct, frozen=True):
    """An advertiser's spend by where it was, in the days of its account."""

    advertiser: str
    by: str
    items: tuple[Part, ...]
    next: str = ""


# ---- metering


class MeterQuery(Body, frozen=True, kw_only=True):
    """Whole hours of UTC, from one up to another that is not in it."""

    first: Hour = msgspec.field(name="from")
    end: Hour = msgspec.field(default="", name="to")
    advertiser: str = ""
    publisher: str = ""
    after: AfterRow = ""
    limit: Limit = 0


class SinceQuery(Body, frozen=True, kw_only=True):
    since: Hour
    after: AfterRow = ""
    limit: Limit = 0


class MeterRow(msgspec.Struct, frozen=True):
    """What was paid for a campaign's impressions on a site: `gross` by the advertiser, of which `margin` stayed."""

    advertiser: str
    campaign: str
    site: str
    publisher: str
    impressions: int
    gross: str
    margin: str


class MeterRange(msgspec.Struct, frozen=True):
    """The sums from `from` up to `to`, which is never behind `finalUntil`: no later answer differs for the hours in
    it. `next` names a row by its four ids."""

    final_until: str
    items: tuple[MeterRow, ...]
    first: str = msgspec.field(name="from")
    end: str = msgspec.field(name="to")
    next: str = ""


class MeterEntity(msgspec.Struct, frozen=True):
    advertiser: str
    campaign: str
    site: str
    publisher: str


class MeterEntities(msgspec.Struct, frozen=True):
    """Between whom anything was paid since then, in hours that may not be final yet."""

    final_until: str
    items: tuple[MeterEntity, ...]
    next: str = ""


class Cursor(Body, frozen=True):
    """Up to which whole hour (UTC) an advertiser is settled."""

    advertiser: EntityId
    since: Hour


class Cursors(Body, frozen=True):
    cursors: Annotated[tuple[Cursor, ...], msgspec.Meta(min_length=1)]


class UnsettledRow(msgspec.Struct, frozen=True):
    advertiser: str
    since: str
    impressions: int
    gross: str


class Unsettled(msgspec.Struct, frozen=True):
    """What each has been charged since its cursor, in hours that may not be final yet."""

    final_until: str
    items: tuple[UnsettledRow, ...]
