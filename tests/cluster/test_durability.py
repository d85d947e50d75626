"""`kill -9` again and again under durable writes: what was acknowledged is there, each exactly once (I2, P1, G9).

PROMOVOLVE_TEST_SCALE=10 makes it 20 kills of one node and 5 of all nodes with each store, 1 makes it one of each.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from beacon_load import BeaconLoad, Key
from cluster_world import Cluster, eventually
from relayed import database, prepare

from node.ads.facts import Click, Impression
from node.ads.totals import CAMPAIGN, CONSUMER, read_totals
from node.core.clock import SystemClock
from node.store.lmdb import LmdbStore
from node.store.port import FactPage, ListProjection, ProjectionPage, ReadFacts, StateStore
from node.store.postgres import PostgresOptions, PostgresStore
from node.wire.codec import CODEC
from scripts.postgres_server import PostgresServer

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
ONE_NODE, ALL_NODES = max(1, 2 * SCALE - SCALE % 2), (SCALE + 1) // 2
RATE = 500
NODES = ("api-1", "entity-1", "entity-2", "entity-3")
Opened = Callable[[], StateStore]


@pytest.fixture(params=["lmdb", "postgres"])
def kept(request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresServer) -> Iterator[tuple[Cluster, Opened]]:
    """A demonstration cluster on each store, and a way to read its store beside it."""
    cluster = Cluster(tmp_path)
    section = database(tmp_path, postgres)
    sections: dict[str, dict[str, Any] | None] = {"lmdb": None, "postgres": section}
    opened: dict[str, Opened] = {
        "lmdb": lambda: LmdbStore(cluster.data / "store", SystemClock()),
        "postgres": lambda: PostgresStore(
            PostgresOptions(dsn=postgres.dsn, schema=section["schema_name"]), SystemClock()
        ),
    }
    try:
        prepare(cluster.data, len(NODES), sections[request.param])
        cluster.up("--demo")
        yield cluster, opened[request.param]
        cluster.down()
    finally:
        cluster.last_resort()


def counted(store: StateStore) -> Counter[Key]:
    """How often each beacon is in the log of facts."""
    found: Counter[Key] = Counter()
    after, more = 0, True
    try:
        while more:
            [page] = store.apply([ReadFacts(after=after)])
            assert isinstance(page, FactPage), page
            for stored in page.facts:
                assert stored.offset == after + 1, "offsets are dense"
                after = stored.offset
                fact = CODEC.decode(stored.body)
                if isinstance(fact, Impression):
                    found["imp", fact.request_id] += 1
                elif isinstance(fact, Click):
                    found["click", fact.request_id] += 1
            more = page.more
    finally:
        store.close()
    return found


def in_totals(store: StateStore) -> int:
    """Impressions in the totals, which follow the log."""
    try:
        [page] = store.apply([ListProjection(CONSUMER, limit=5_000)])
        assert isinstance(page, ProjectionPage)
        rows = (row for row in page.rows if row.key.startswith(f"{CAMPAIGN} "))
        return sum(read_totals(row.body).impressions for row in rows)
    finally:
        store.close()


def test_nothing_acknowledged_is_lost_and_nothing_counts_twice(
    kept: tuple[Cluster, Opened], record_property: Callable[[str, object], None]
) -> None:
    cluster, opened = kept
    rng = random.Random(SCALE)
    load = BeaconLoad(cluster, RATE)
    with load:
        for _ in range(ONE_NODE):
            victim = rng.choice(NODES[1:])
            load.more(RATE)
            cluster.kill(victim)
            load.more(RATE)
            cluster.ask("node", "start", victim, "--data", str(cluster.data))
            load.settle_unknown()
    loads = [load]
    for _ in range(ALL_NODES):
        loads.append(BeaconLoad(cluster, RATE))
        with loads[-1]:
            loads[-1].more(RATE)
            cluster.kill(*NODES)
        cluster.up("-t", "60s")
        loads[-1].settle_unknown()
    cluster.whole()
    for each in loads:
        assert each.outcomes.refused == []
    acknowledged = set().union(*(each.outcomes.counted for each in loads))
    unanswered = set().union(*(each.outcomes.unknown.keys() | each.outcomes.expired for each in loads))
    record_property("acknowledged", len(acknowledged))
    record_property("offered_per_second", round(loads[0].offered_per_second))
    record_property("acknowledged_per_second", round(loads[0].acknowledged_per_second))
    found = counted(opened())
    assert acknowledged - found.keys() == set(), "acknowledged and lost"
    assert {key: n for key, n in found.items() if n != 1} == {}, "counted twice"
    assert found.keys() - acknowledged - unanswered == set(), "counted and never sent"
    impressions = sum(event == "imp" for event, _ in found)
    spent = sum(row["impressions_count"] for row in cluster.ask("campaign", "list")["items"])
    assert spent == impressions, "states and log agree"
    eventually(lambda: in_totals(opened()), lambda rows: rows == impressions, 30, "each impression in the totals once")
    assert cluster.ask("ledger", "verify")["ok"], "facts, projections and entities tell the same"
    print(
        f"{len(acknowledged)} writes acknowledged; while single nodes were killed {loads[0].offered_per_second:.0f}/s "
        f"were offered and {loads[0].acknowledged_per_second:.0f}/s acknowledged"
    )
