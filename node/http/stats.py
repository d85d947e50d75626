"""Statistics by HTTP: what the totals say of publishers' sites and advertisers' campaigns, page by page.

Everything is read from the projection `totals`, so it is what the facts say, some seconds behind them. Days are those
of whose numbers they are: a site's of its publisher's time zone, a campaign's of its advertiser's account.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from node.admin.outcomes import not_found
from node.admin.pages import page, wanted
from node.ads import totals as t
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState
from node.ads.entities.publisher import PublisherState
from node.ads.entities.site_state import SiteState
from node.ads.money import format_money
from node.ads.taxonomy import load_taxonomy
from node.ads.totals import Totals, read_totals, totals_key
from node.core import limits
from node.core.errors import BadInput, RemoteProtocolError
from node.http import stats_bodies as b
from node.http.access import Token
from node.http.call import Call
from node.http.fact_log import FactLog
from node.http.problem import unavailable
from node.http.special import Special

if TYPE_CHECKING:
    from node.admin.server import AdminServer


class Span(NamedTuple):
    """Days (ISO), both included."""

    first: str
    last: str


class Stats:
    """The handlers, by their routes' names."""

    def __init__(self, server: AdminServer) -> None:
        self._states = server.states
        self._log = FactLog(server.engine)

    def handlers(self) -> dict[str, Special]:
        return {
            "publisherStats": self._publisher,
            "siteStats": self._site,
            "advertiserStats": self._advertiser,
            "advertiserBreakdown": self._breakdown,
            "campaignStats": self._campaign,
            "creativeStats": self._creatives,
        }

    # ---- a list of periods

    async def _site(self, _token: Token, call: Call, query: b.PeriodsQuery, _body: Any) -> msgspec.Struct:
        state = await self._state("site", call.params["site"], SiteState)
        scope = t.SITE_DAY if query.by == "day" else t.SITE_HOUR
        found = [
            (period, b.PeriodEarned(period, *_counts(row), _earned(row)))
            async for period, row in self._periods(scope, state.site, query)
        ]
        items, following = page(found, query.limit)
        return b.SiteStats(state.site, state.timezone, items, following)

    async def _campaign(self, _token: Token, call: Call, query: b.PeriodsQuery, _body: Any) -> msgspec.Struct:
        state = await self._state("campaign", call.params["campaign"], CampaignState)
        scope = t.CAMPAIGN_DAY if query.by == "day" else t.CAMPAIGN_HOUR
        found = [
            (period, b.PeriodSpent(period, *_counts(row), format_money(row.spend_micros)))
            async for period, row in self._periods(scope, state.campaign, query)
        ]
        items, following = page(found, query.limit)
        return b.CampaignStats(state.campaign, state.budget.timezone, items, following)

    async def _periods(self, scope: str, owner: str, query: b.PeriodsQuery) -> AsyncIterator[tuple[str, Totals]]:
        """The first behind `after`, and one more where there is one."""
        count = 0
        async for period, row in self._rows(scope, owner, span_of(query), query.after):
            yield period, row
            count += 1
            if count > wanted(query.limit):
                return

    # ---- sums of a span of days

    async def _publisher(self, _token: Token, call: Call, query: b.SpanQuery, _body: Any) -> msgspec.Struct:
        state = await self._state("publisher", call.params["publisher"], PublisherState)
        sums, more = await self._sums(t.SITE_DAY, state.sites, query)
        found = ((site, b.SiteEarned(site, *_counts(row), _earned(row))) for site, row in sums)
        items, following = page(found, query.limit, more=more)
        return b.PublisherStats(state.publisher, items, following)

    async def _advertiser(self, _token: Token, call: Call, query: b.SpanQuery, _body: Any) -> msgspec.Struct:
        state = await self._state("advertiser", call.params["advertiser"], AdvertiserState)
        sums, more = await self._sums(t.CAMPAIGN_DAY, state.campaigns, query)
        found = ((name, b.CampaignSpent(name, *_counts(row), format_money(row.spend_micros))) for name, row in sums)
        items, following = page(found, query.limit, more=more)
        return b.AdvertiserStats(state.advertiser, items, following)

    async def _sums(
        self, scope: str, owners: Iterable[str], query: b.SpanQuery
    ) -> tuple[list[tuple[str, Totals]], bool]:
        """One sum for each owner behind `after`, as far as one answer reads; and whether there are more."""
        span, found, read = span_of(query), list[tuple[str, Totals]](), 0
        behind = sorted(owner for owner in owners if owner > query.after)
        for owner in behind:
            if len(found) >= wanted(query.limit) or read > limits.stats_rows_max:
                break
            total = Totals()
            async for _, row in self._rows(scope, owner, span):
                total, read = total.plus(row), read + 1
            found.append((owner, total))
        return found, len(found) < len(behind)

    async def _creatives(self, _token: Token, call: Call, query: Any, _body: Any) -> msgspec.Struct:
        state = await self._state("campaign", call.params["campaign"], CampaignState)
        behind = sorted(spec.creative for spec in state.creatives if spec.creative > query.after)
        found: list[tuple[str, b.CreativeSpent]] = []
        for name in behind[: wanted(query.limit)]:
            row = await self._row(totals_key(t.CREATIVE, name))
            money = format_money(row.spend_micros)
            found.append((name, b.CreativeSpent(name, *_counts(row), money)))
        items, following = page(found, query.limit, more=len(found) < len(behind))
        return b.CreativeStats(state.campaign, items, following)

    async def _breakdown(self, _token: Token, call: Call, query: b.BreakdownQuery, _body: Any) -> msgspec.Struct:
        state = await self._state("advertiser", call.params["advertiser"], AdvertiserState)
        span, read = span_of(query), 0
        sums: defaultdict[str, Totals] = defaultdict(Totals)
        for campaign in state.campaigns:
            async for key, row in self._rows(t.DIMENSIONS, campaign, span):
                _day, _site_day, site, category = key.split(" ")
                part = site if query.by == "site" else category
                sums[part] = sums[part].plus(row)
                read += 1
                if read > limits.stats_rows_max:
                    raise BadInput("to", f"more than {limits.stats_rows_max} rows are to be summed: ask for fewer days")
        taxonomy = load_taxonomy()
        found = [
            (
                part,
                b.Part(
                    part,
                    taxonomy.name(part) if query.by == "category" and part in taxonomy else part,
                    *_counts(row),
                    format_money(row.spend_micros),
                ),
            )
            for part, row in sorted(sums.items())
            if part > query.after
        ]
        items, following = page(found, query.limit)
        return b.Breakdown(state.advertiser, query.by, items, following)

    # ---- rows

    async def _rows(self, scope: str, owner: str, span: Span, after: str = "") -> AsyncIterator[tuple[str, Totals]]:
        """What stands behind scope and owner in each key of the span, with its row; behind `after` where that is
        later."""
        within = totals_key(scope, owner) + " "
        begin = max(within + after, below(within + span.first)) if after else below(within + span.first)
        async for key, body in self._log.rows(t.CONSUMER, begin, within):
            rest = key.removeprefix(within)
            if rest[:10] > span.last:
                return
            yield rest, _read(body)

    async def _row(self, key: str) -> Totals:
        async for found, body in self._log.rows(t.CONSUMER, below(key), key):
            return _read(body) if found == key else Totals()
        return Totals()

    async def _state(self, kind: str, name: str, shape: type[Any]) -> Any:
        """Raises AdminRefusal for what is not there."""
        state = await self._states.one(kind, name, shape)
        if state is None:
            raise not_found(kind, name)
        return state


def span_of(query: b.SpanQuery | b.PeriodsQuery) -> Span:
    """Raises BadInput for a day that there is not, and for a span that ends before it begins."""
    for field, day in (("from", query.first), ("to", query.last)):
        try:
            dt.date.fromisoformat(day or "2000-01-01")
        except ValueError:
            raise BadInput(field, f"{day!r} is no day") from None
    if query.first and query.last and query.last < query.first:
        raise BadInput("to", f"{query.last} is before {query.first}")
    return Span(query.first or "0001-01-01", query.last or "9999-12-31")


def below(key: str) -> str:
    """What is behind every key that is less than this one, in the order of bytes, and before this one."""
    return f"{key[:-1]}{chr(ord(key[-1]) - 1)}\x7f"


def _counts(row: Totals) -> tuple[int, int, int]:
    return row.impressions, row.clicks, row.ctas


def _earned(row: Totals) -> str:
    return format_money(row.spend_micros - row.margin_micros)


def _read(body: bytes) -> Totals:
    try:
        return read_totals(body)
    except RemoteProtocolError as error:
        raise unavailable(f"the totals can't be read: {error.detail[:80]}") from None
