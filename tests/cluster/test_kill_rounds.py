"""`kill -9` of one node and of all, round after round under load, on both stores: nothing acknowledged is lost, and
nothing counts twice.

PROMOVOLVE_TEST_SCALE is how many rounds kill a random node; a quarter as many, at least one, kill all of them. The full
measure is 20.
"""

from __future__ import annotations

import os
import random
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli_w
from cluster_load import Load
from cluster_world import Cluster, eventually
from postgres_clock import new_schema

from node.ads.facts import Impression
from node.ads.ledger import CONSUMER, read_row
from node.core.clock import SystemClock
from node.core.settings import StoreSection
from node.store import port
from node.store.opening import open_store
from node.wire.codec import CODEC
from promovolvectl.local import files, layout
from promovolvectl.local.ports import plan

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
NODES = ("api-1", "entity-1", "entity-2", "entity-3")
BEACON_EACH = 2


class Log:
    """What the store says at the end, read past the nodes."""

    def __init__(self, section: StoreSection) -> None:
        self._store, _ = open_store(section, "test", SystemClock())

    def impressions(self) -> Counter[tuple[str, str]]:
        """How often each impression was counted."""
        found: Counter[tuple[str, str]] = Counter()
        after = 0
        while True:
            (page,) = self._store.apply([port.ReadFacts(after=after)])
            assert isinstance(page, port.FactPage)
            for fact in page.facts:
                assert fact.offset == after + 1, "the log is dense"
                after = fact.offset
                event = CODEC.decode_record(fact.body)
                if isinstance(event, Impression):
                    found[event.campaign, event.request_id] += 1
            if not page.more:
                return found

    def ledger(self) -> int:
        """Impressions in the ledger."""
        (page,) = self._store.apply([port.ListProjection(CONSUMER, limit=5_000)])
        assert isinstance(page, port.ProjectionPage)
        return sum(read_row(row.body).impressions for row in page.rows)

    def close(self) -> None:
        self._store.close()


@pytest.fixture(params=["lmdb", "postgres"])
def section(request: pytest.FixtureRequest, tmp_path: Path) -> StoreSection:
    if request.param == "lmdb":
        return StoreSection(path=tmp_path / "data" / "store")
    secret = tmp_path / "postgres.dsn"
    secret.write_text(request.getfixturevalue("postgres").dsn)
    secret.chmod(0o600)
    return StoreSection(kind="postgres", dsn_file=secret, schema_name=new_schema())


@pytest.fixture
def victim(tmp_path: Path, section: StoreSection) -> Iterator[Cluster]:
    """A demonstration cluster of its own, on the store."""
    cluster = Cluster(tmp_path)
    try:
        if section.kind == "postgres":
            data = tmp_path / "data"
            made = plan(data, "local", len(NODES))
            data.mkdir()
            layout.write(data, made)
            files.prepare(data, made)  # what `up` finds, it leaves as it is
            wanted = section.model_dump(mode="json", exclude_defaults=True)
            for file in (data / "nodes").glob("*/node.toml"):
                file.write_text(tomli_w.dumps(tomllib.loads(file.read_text()) | {"store": wanted}))
        cluster.up("--demo")
        cluster.whole("90s")
        yield cluster
        cluster.down()
    finally:
        cluster.last_resort()


def test_nothing_acknowledged_is_lost_or_doubled_by_kill_9(victim: Cluster, section: StoreSection) -> None:
    rng = random.Random(7)
    rounds = [(rng.choice(NODES),) for _ in range(SCALE)] + [NODES] * max(1, SCALE // 4)
    acknowledged = unknown = 0
    for killed in rounds:
        with Load(victim, BEACON_EACH) as load:
            victim.kill(*killed)
            load.lasts(3)
        assert load.wrong() == []
        acknowledged += load.beacons.counted
        unknown += load.beacons.unknown
        victim.up("-t", "60s")
        victim.whole("90s")
    assert acknowledged > 50 * len(rounds), "the load was too thin to prove anything"

    counted = sum(row["impressions_count"] for row in victim.settled_state()["campaigns"])
    log = Log(section)
    try:
        impressions = log.impressions()
        assert [key for key, times in impressions.items() if times > 1] == [], "counted twice"
        assert acknowledged <= len(impressions) <= acknowledged + unknown
        assert counted == len(impressions), "states and log agree"
        eventually(log.ledger, lambda found: found == counted, 30, "a ledger with each impression once")
    finally:
        log.close()
