"""Statistics for who earns and who pays, metering for who writes the bills: all of it only read."""

from __future__ import annotations

from typing import Final

from node.http import admin_bodies as b
from node.http import stats_bodies as s
from node.http.guarded_route import guarded
from node.http.route import GET, POST

_PUBLISHER: Final = "/v1/publishers/{publisher}"
_ADVERTISER: Final = "/v1/advertisers/{advertiser}"
_CAMPAIGN: Final = f"{_ADVERTISER}/campaigns/{{campaign}}"
_METERING: Final = "/v1/internal/metering"

STATS: Final = (
    guarded(
        *(GET, f"{_PUBLISHER}/stats", "publisherStats", "What each of a publisher's sites earned", "sites:read"),
        query=s.SpanQuery,
        answer=s.PublisherStats,
    ),
    guarded(
        *(GET, f"{_PUBLISHER}/sites/{{site}}/stats", "siteStats", "What a site earned by day or hour", "sites:read"),
        query=s.PeriodsQuery,
        answer=s.SiteStats,
    ),
    guarded(
        *(GET, f"{_ADVERTISER}/stats", "advertiserStats", "What each of an advertiser's campaigns spent"),
        "campaigns:read",
        query=s.SpanQuery,
        answer=s.AdvertiserStats,
    ),
    guarded(
        *(GET, f"{_ADVERTISER}/breakdown", "advertiserBreakdown", "Where an advertiser's money went"),
        "campaigns:read",
        query=s.BreakdownQuery,
        answer=s.Breakdown,
    ),
    guarded(
        *(GET, f"{_CAMPAIGN}/stats", "campaignStats", "What a campaign spent by day or hour", "campaigns:read"),
        query=s.PeriodsQuery,
        answer=s.CampaignStats,
    ),
    guarded(
        *(GET, f"{_CAMPAIGN}/creative-stats", "creativeStats", "What a campaign's creatives brought", "campaigns:read"),
        query=b.PageQuery,
        answer=s.CreativeStats,
    ),
)

METERING: Final = (
    guarded(
        *(GET, f"{_METERING}/range", "meterRange", "What was paid between whom in hours that are final"),
        "metering:read",
        query=s.MeterQuery,
        answer=s.MeterRange,
    ),
    guarded(
        *(GET, f"{_METERING}/entities", "meterEntities", "Between whom anything was paid since an hour"),
        "metering:read",
        query=s.SinceQuery,
        answer=s.MeterEntities,
    ),
    guarded(
        *(POST, f"{_METERING}/unsettled", "meterUnsettled", "What advertisers were charged since their last bills"),
        "metering:read",
        body=s.Cursors,
        answer=s.Unsettled,
        reads=True,
    ),
)
