"""Statistics and metering as the HTTP API answers them, over what real entities counted: no number is made up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from ads_world import DAY_MS, HOUR_MS, SITE, World, serving_world

from node.admin.protocol import AdminRefusal
from node.admin.states import States
from node.ads import messages as m
from node.ads import metering, totals
from node.ads.metering import Between, Metered, Metering, final_until_ms, hour_of, meter_key, read_metered
from node.ads.money import format_money, impression_cost_micros
from node.ads.projections import PROJECTIONS
from node.core import limits
from node.core.clock import MS, rfc3339
from node.core.errors import BadInput
from node.flows.follower import Follower
from node.http import admin_bodies, stats_bodies
from node.http.access import Token
from node.http.call import Call
from node.http.metering import Meters
from node.http.problem import ProblemError
from node.http.stats import Stats, below
from node.store.port import StoredFact, StoreFailed

ADVERTISER = {"advertiser": "adv"}
CAMPAIGN = {"advertiser": "adv", "campaign": "camp"}
TOKEN = Token("t", "0" * 64, ("metering:read",))


class Edge:
    """The handlers over the store of a world; `away`: the store does not answer."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.away = False
        engine = SimpleNamespace(world=SimpleNamespace(submit=self._submit, clock=world.clock))
        server = cast(Any, SimpleNamespace(engine=engine, states=States(cast(Any, engine))))
        self.handlers = {**Stats(server).handlers(), **Meters(server).handlers()}

    def _submit(self, request: Any, done: Callable[[Any], None]) -> None:
        done(StoreFailed("E-STORE", "away", definite=True) if self.away else self.world.store.apply([request])[0])

    def ask(self, route: str, params: dict[str, str], query: Any = None, body: Any = None) -> Any:
        call = Call({}, b"", params)
        return asyncio.run(cast(Any, self.handlers[route](TOKEN, call, query, body)))

    def follow(self) -> None:
        for name, projection in PROJECTIONS.items():
            follower = Follower(name, projection)
            request = follower.tick(limits.facts_poll_ms * MS)
            while request is not None:
                request = follower.answered(self.world.store.apply([request])[0])


def sell(world: World, count: int) -> int:
    """So many impressions with a click and a call to action each; micros that they cost."""
    spent = 0
    for _ in range(count):
        won = world.winner()
        assert won is not None
        for event, query in (("imp", won.impression_query), ("click", won.click_query), ("cta", won.cta_query)):
            assert world.beacon(query, event).verdict == "counted"
            assert world.beacon(query, event).verdict == "repeated", "each is counted once"
        spent += impression_cost_micros(won.price_micros)
    return spent


@pytest.fixture(scope="module")
def sold() -> tuple[Edge, int, int]:
    """Three impressions on one day and two on the next, and what each day cost."""
    world = serving_world()
    first = sell(world, 3)
    world.advance(DAY_MS)
    world.classify()
    world.advance(3_000)
    second = sell(world, 2)
    edge = Edge(world)
    edge.follow()
    return edge, first, second


def today(edge: Edge, days: int = 0) -> str:
    return rfc3339(edge.world.clock.wall_ms() + days * DAY_MS)[:10]


def test_a_campaign_and_a_site_tell_the_same_days(sold: tuple[Edge, int, int]) -> None:
    edge, first, second = sold
    days = [today(edge, -1), today(edge)]
    spent = edge.ask("campaignStats", CAMPAIGN, stats_bodies.PeriodsQuery())
    counts = [(item.period, item.impressions, item.clicks, item.ctas) for item in spent.items]
    assert counts == [(days[0], 3, 3, 3), (days[1], 2, 2, 2)]
    assert [item.spend for item in spent.items] == [format_money(first), format_money(second)]
    earned = edge.ask("siteStats", {"publisher": "acme", "site": SITE}, stats_bodies.PeriodsQuery())
    assert [(item.period, item.impressions, item.revenue) for item in earned.items] == [
        (days[0], 3, format_money(first)),
        (days[1], 2, format_money(second)),
    ]
    assert (spent.timezone, earned.timezone, earned.next) == ("UTC", "UTC", "")


def test_a_span_and_a_key_choose_the_rows(sold: tuple[Edge, int, int]) -> None:
    edge, _, _ = sold
    days = [today(edge, -1), today(edge)]
    for query, wanted, following in (
        (stats_bodies.PeriodsQuery(first=days[1]), days[1:], ""),
        (stats_bodies.PeriodsQuery(last=days[0]), days[:1], ""),
        (stats_bodies.PeriodsQuery(first=today(edge, 1)), [], ""),
        (stats_bodies.PeriodsQuery(limit=1), days[:1], days[0]),
        (stats_bodies.PeriodsQuery(limit=1, after=days[0]), days[1:], ""),
    ):
        found = edge.ask("campaignStats", CAMPAIGN, query)
        assert ([item.period for item in found.items], found.next) == (wanted, following), query
    hours = edge.ask("campaignStats", CAMPAIGN, stats_bodies.PeriodsQuery(by="hour")).items
    assert sum(item.impressions for item in hours) == 5
    assert {item.period[:10] for item in hours} == set(days)


def test_sums_by_campaign_site_creative_and_category(sold: tuple[Edge, int, int]) -> None:
    edge, first, second = sold
    world = edge.world
    world.ask("advertiser", "adv", m.AttachCampaign("camp"))
    world.campaign("idle", creatives=("idle-1",))
    world.ask("advertiser", "adv", m.AttachCampaign("idle"))
    both = format_money(first + second)
    found = edge.ask("advertiserStats", ADVERTISER, stats_bodies.SpanQuery())
    assert [(item.campaign, item.impressions, item.spend) for item in found.items] == [
        ("camp", 5, both),
        ("idle", 0, "0.00"),
    ]
    page = edge.ask("advertiserStats", ADVERTISER, stats_bodies.SpanQuery(limit=1))
    assert ([item.campaign for item in page.items], page.next) == (["camp"], "camp")
    rest = edge.ask("advertiserStats", ADVERTISER, stats_bodies.SpanQuery(limit=1, after="camp"))
    assert ([item.campaign for item in rest.items], rest.next) == (["idle"], "")
    sites = edge.ask("publisherStats", {"publisher": "acme"}, stats_bodies.SpanQuery(last=today(edge, -1)))
    assert [(item.site, item.revenue) for item in sites.items] == [(SITE, format_money(first))]
    [creative] = edge.ask("creativeStats", CAMPAIGN, admin_bodies.PageQuery()).items
    assert (creative.creative, creative.impressions, creative.ctas, creative.spend) == ("camp-1", 5, 5, both)
    [site] = edge.ask("advertiserBreakdown", ADVERTISER, stats_bodies.BreakdownQuery()).items
    assert (site.id, site.impressions, site.spend) == (SITE, 5, both)
    parts = edge.ask("advertiserBreakdown", ADVERTISER, stats_bodies.BreakdownQuery(by="category")).items
    assert sum(part.impressions for part in parts) == 5
    assert all(part.name and not part.name.isdigit() for part in parts), "categories by their names"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        (stats_bodies.PeriodsQuery(first="2026-02-30"), "from"),
        (stats_bodies.PeriodsQuery(last="2026-13-01"), "to"),
        (stats_bodies.PeriodsQuery(first="2026-02-02", last="2026-02-01"), "to"),
    ],
)
def test_a_span_that_is_none_is_refused(sold: tuple[Edge, int, int], query: Any, field: str) -> None:
    with pytest.raises(BadInput) as caught:
        sold[0].ask("campaignStats", CAMPAIGN, query)
    assert caught.value.field == field


def test_who_is_not_there_has_no_statistics(sold: tuple[Edge, int, int]) -> None:
    for route, params in (("publisherStats", {"publisher": "x"}), ("advertiserStats", {"advertiser": "x"})):
        with pytest.raises(AdminRefusal) as caught:
            sold[0].ask(route, params, stats_bodies.SpanQuery())
        assert caught.value.exit_status == 3


@pytest.mark.parametrize("key", ["site-day s 2026-01-01", "creative a", "campaign-day c 2026-01-0"])
def test_what_is_below_a_key_is_behind_all_that_are_less(key: str) -> None:
    less = key[:-1] + chr(ord(key[-1]) - 1)
    assert less < less + "zz" < below(key) < key


# ---- metering


def hour(edge: Edge, back: int) -> str:
    at_ms = edge.world.clock.wall_ms() // HOUR_MS * HOUR_MS - back * HOUR_MS
    return rfc3339(at_ms)


def test_hours_are_metered_once_they_are_final() -> None:
    world = serving_world()
    spent = sell(world, 2)
    edge = Edge(world)
    begun = hour(edge, 0)
    edge.follow()
    asked = stats_bodies.MeterQuery(first=begun)
    early = edge.ask("meterRange", {}, asked)
    assert (early.items, early.end) == ((), begun)
    [since] = edge.ask("meterEntities", {}, stats_bodies.SinceQuery(since=begun)).items
    assert msgspec.structs.astuple(since) == ("adv", "camp", SITE, "acme")
    world.advance(2 * HOUR_MS)
    late = sell_again(world)
    unread = edge.ask("meterRange", {}, asked)
    edge.follow()
    final = edge.ask("meterRange", {}, asked)
    assert final.items == unread.items, "what is written later is in none of those hours"
    [row] = final.items
    assert (row.campaign, row.impressions, row.gross, row.margin) == ("camp", 2, format_money(spent), "0.00")
    assert (final.first, final.end) == (begun, hour(edge, 1))
    assert final.final_until == final.end
    since_then = stats_bodies.Cursors(cursors=(stats_bodies.Cursor(advertiser="adv", since=begun),))
    [owed] = edge.ask("meterUnsettled", {}, body=since_then).items
    assert (owed.impressions, owed.gross) == (3, format_money(spent + late)), "what is not final yet, too"
    settled = stats_bodies.Cursors(cursors=(stats_bodies.Cursor(advertiser="adv", since=hour(edge, 0)),))
    assert edge.ask("meterUnsettled", {}, body=settled).items[0].impressions == 1
    assert edge.ask("meterRange", {}, msgspec.structs.replace(asked, publisher="else")).items == ()
    assert edge.ask("meterRange", {}, msgspec.structs.replace(asked, advertiser="adv")).items == final.items


def sell_again(world: World) -> int:
    world.classify()
    world.advance(3_000)
    return sell(world, 1)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        (stats_bodies.MeterQuery(first="2020-01-01T00:30:00Z"), "from"),
        (stats_bodies.MeterQuery(first="yesterday"), "from"),
        (stats_bodies.MeterQuery(first=""), "from"),
        (stats_bodies.MeterQuery(first="9999-12-31T23:00:00Z"), "from"),
        (stats_bodies.MeterQuery(first="1970-01-01T01:00:00Z", end="1970-01-01T01:00:00Z"), "to"),
        (stats_bodies.MeterQuery(first="1970-01-01T01:00:00Z", advertiser="a b"), "advertiser"),
    ],
)
def test_hours_that_are_none_are_refused(sold: tuple[Edge, int, int], query: Any, field: str) -> None:
    with pytest.raises(BadInput) as caught:
        sold[0].ask("meterRange", {}, query)
    assert caught.value.field == field


def test_a_store_that_is_away_makes_no_sum_of_nothing() -> None:
    edge = Edge(serving_world())
    begun = hour(edge, 0)
    edge.away = True
    asked = (
        ("meterRange", stats_bodies.MeterQuery(first=begun)),
        ("meterEntities", stats_bodies.SinceQuery(since=begun)),
    )
    for route, query in asked:
        with pytest.raises(ProblemError) as caught:
            edge.ask(route, {}, query)
        assert caught.value.status == 503
    with pytest.raises(AdminRefusal):
        edge.ask("advertiserStats", ADVERTISER, stats_bodies.SpanQuery())


def test_an_hour_is_final_when_it_is_over_and_all_of_it_is_counted() -> None:
    now_ms = 10 * HOUR_MS + 5
    assert final_until_ms(now_ms, None) == 9 * HOUR_MS
    assert final_until_ms(now_ms, 7 * HOUR_MS - 1) == 5 * HOUR_MS, "a projection that is behind is final less far"
    assert final_until_ms(now_ms, 99 * HOUR_MS) == 9 * HOUR_MS
    assert final_until_ms(5, None) == 0


def test_what_cannot_be_read_is_metered_apart_and_behind_every_hour() -> None:
    broken = StoredFact(1, "campaign", "camp", 0, "fact.impression", b"no document")
    made = Metering().fold([broken], {})
    assert {key: read_metered(body) for key, body in made.items()} == {metering.UNREADABLE: Metered(impressions=1)}
    assert Metering().keys([broken]) == (metering.UNREADABLE,)
    assert meter_key(hour_of(250_000_000_000_000), Between("z", "z", "z", "z")) < metering.UNREADABLE
    assert totals.CONSUMER != metering.CONSUMER
