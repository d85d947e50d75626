"""A day of beacons that come late, overtaken and more than once, through a crash of every node and of the database:
what is counted is what their sender has had acknowledged (I2, I7).

PROMOVOLVE_TEST_SCALE=10 makes it at least 86,400 events, one for each second of a day, and copies that are late by up
to a minute and a half.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster_world import Cluster, eventually
from day_load import DayLoad, Event
from relayed import database, prepare, schema_of

from node.ads.facts import CallToAction, Click, Impression
from node.ads.totals import CAMPAIGN, CONSUMER, CREATIVE, SITE_DAY, Totals, read_totals
from node.core.clock import SystemClock
from node.store.port import FactPage, ListProjection, ProjectionPage, ReadFacts
from node.store.postgres import PostgresOptions, PostgresStore
from node.wire.codec import CODEC
from scripts.postgres_server import PostgresServer

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
EVENTS = 8_640 * SCALE if SCALE > 1 else 900
RATE = 300 if SCALE > 1 else 150
LATE_S = 90.0 if SCALE > 1 else 8.0
NODES = ("entity-1", "entity-2", "entity-3", "api-1")
STEP = EVENTS // (len(NODES) + 2)
KINDS = {Impression: "imp", Click: "click", CallToAction: "cta"}
COUNTED = {"imp": "impressions", "click": "clicks", "cta": "ctas"}
World = tuple[Cluster, PostgresServer]


@pytest.fixture
def world(tmp_path: Path, own_postgres: PostgresServer) -> Iterator[World]:
    cluster = Cluster(tmp_path)
    try:
        prepare(cluster.data, len(NODES), database(tmp_path, own_postgres))
        cluster.up("--demo")
        yield cluster, own_postgres
        cluster.down()
    finally:
        cluster.last_resort()


def opened(world: World) -> PostgresStore:
    cluster, server = world
    return PostgresStore(PostgresOptions(dsn=server.dsn, schema=schema_of(cluster.data)), SystemClock())


def in_the_log(store: PostgresStore) -> Counter[Event]:
    """How often each event is in the log of facts."""
    found: Counter[Event] = Counter()
    after, more = 0, True
    try:
        while more:
            [page] = store.apply([ReadFacts(after=after, limit=5_000)])
            assert isinstance(page, FactPage), page
            for stored in page.facts:
                after = stored.offset
                fact = CODEC.decode_record(stored.body)
                if isinstance(fact, Impression | Click | CallToAction):
                    micros = fact.price_micros if isinstance(fact, Impression) else 0
                    kind = KINDS[type(fact)]
                    found[Event(kind, fact.request_id, fact.campaign, fact.creative, fact.site, micros)] += 1
            more = page.more
    finally:
        store.close()
    return found


def in_totals(store: PostgresStore) -> dict[tuple[str, str], Totals]:
    """By campaign, by creative, and by site of all its days."""
    found: dict[tuple[str, str], Totals] = {}
    try:
        [page] = store.apply([ListProjection(CONSUMER, limit=5_000)])
        assert isinstance(page, ProjectionPage)
        assert not page.more
        for row in page.rows:
            scope, name, *_ = row.key.split(" ")
            if scope in (CAMPAIGN, CREATIVE, SITE_DAY):
                found[scope, name] = found.get((scope, name), Totals()).plus(read_totals(row.body))
    finally:
        store.close()
    return found


def as_sent(events: set[Event]) -> dict[tuple[str, str], Totals]:
    """The same by the sender's books; nobody keeps a margin here."""
    found: dict[tuple[str, str], Totals] = {}
    for event in events:
        one = Totals(**{COUNTED[event.kind]: 1}, spend_micros=event.micros)
        for place in ((CAMPAIGN, event.campaign), (CREATIVE, event.creative), (SITE_DAY, event.site)):
            found[place] = found.get(place, Totals()).plus(one)
    return found


def test_every_counter_is_the_senders_own_count_of_what_was_acknowledged(
    world: World, record_property: Callable[[str, object], None]
) -> None:
    cluster, server = world
    with DayLoad(cluster, RATE, LATE_S, random.Random(SCALE)) as load:
        for victim in NODES:
            load.counted(STEP)
            cluster.kill(victim)
            cluster.start(victim)
            there = ("converged", f"nodes={len(NODES)}", "shards=allocated")
            cluster.run("cluster", "wait", "-t", "60s", *(word for each in there for word in ("--for", each)))
        load.counted(STEP)
        server.stop()
        server.start()
        load.counted(STEP)
        eventually(lambda: len(load.books.counted), lambda found: found >= EVENTS, 60 + 2 * EVENTS / RATE, "a day")
        load.finish(LATE_S + 120)
    books = load.books
    assert books.refused == []
    assert books.events == books.counted, "in the end every event is known to be counted"
    assert {event: times for event, times in books.firsts.items() if times > 1} == {}, "nobody was first twice"
    assert books.counted - books.firsts.keys() - books.unheard == set(), "only of an unheard one another was the first"
    counted = Counter(books.counted)
    found = in_the_log(opened(world))
    assert found - counted == Counter(), "counted twice, or otherwise than it was sent"
    assert counted - found == Counter(), "acknowledged and lost"
    expected = as_sent(books.counted)
    eventually(lambda: in_totals(opened(world)), lambda rows: rows == expected, 30, "totals as the sender has them")
    campaigns = {row["campaign"]: row for row in cluster.ask("campaign", "list")["items"]}
    counts = ("impressions_count", "clicks_count", "ctas_count")
    own = {name: tuple(row[count] for count in counts) for name, row in campaigns.items()}
    sent = {name: expected.get((CAMPAIGN, name), Totals()) for name in campaigns}
    assert own == {name: (one.impressions, one.clicks, one.ctas) for name, one in sent.items()}
    verified = cluster.ask("ledger", "verify")
    assert verified["ok"], verified["items"]
    assert verified["busy"] == []
    record_property("events", len(books.counted))
    record_property("copies", books.copies)
    print(f"{len(books.counted)} events in {books.copies} copies, {len(books.unheard)} unheard at first; books agree")
