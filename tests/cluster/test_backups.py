"""A backup of a running cluster under durable writes, and the cluster that is restored from it (I2, D17)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from beacon_load import BeaconLoad, Key
from cluster_world import Cluster
from relayed import database, prepare

from node.ads.facts import Click, Impression
from node.core.clock import SystemClock
from node.store.lmdb import LmdbStore
from node.store.port import FactPage, ReadFacts, StateStore, StoredFact
from node.store.postgres import PostgresOptions, PostgresStore
from node.wire.codec import CODEC
from scripts.postgres_server import PostgresServer

NODES = 4
RATE = 200
Opened = Callable[[], StateStore]


@pytest.fixture(params=["lmdb", "postgres"])
def kept(request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresServer) -> Iterator[tuple[Cluster, Opened]]:
    """A demonstration cluster on each store, and a way to read its store beside it."""
    cluster = Cluster(tmp_path)
    section: dict[str, Any] | None = None
    opened: Opened = lambda: LmdbStore(cluster.data / "store", SystemClock())  # noqa: E731
    if request.param == "postgres":
        section = database(tmp_path, postgres)
        options = PostgresOptions(dsn=postgres.dsn, schema=section["schema_name"])
        opened = lambda: PostgresStore(options, SystemClock())  # noqa: E731
    try:
        prepare(cluster.data, NODES, section)
        cluster.up("--demo")
        yield cluster, opened
        cluster.down()
    finally:
        cluster.last_resort()


def log_of(store: StateStore, up_to: int) -> list[StoredFact]:
    """The log of facts up to an offset."""
    found: list[StoredFact] = []
    try:
        while True:
            [page] = store.apply([ReadFacts(after=len(found))])
            assert isinstance(page, FactPage), page
            found += page.facts
            if not page.more or len(found) >= up_to:
                return found[:up_to]
    finally:
        store.close()


def counted(log: list[StoredFact]) -> set[Key]:
    """The beacons that are in a log."""
    events = [CODEC.decode(fact.body) for fact in log]
    return {("imp", e.request_id) for e in events if isinstance(e, Impression)} | {
        ("click", e.request_id) for e in events if isinstance(e, Click)
    }


def test_a_backup_under_load_holds_all_that_was_acknowledged_and_a_cluster_goes_on_from_it(
    kept: tuple[Cluster, Opened], tmp_path: Path
) -> None:
    cluster, opened = kept
    folder = tmp_path / "backups"
    folder.mkdir()
    with BeaconLoad(cluster, RATE) as load:
        cluster.env = {**cluster.env, "PROMOVOLVE_FAULT_AT": "backup.written:kill"}
        refused = cluster.refused("store", "backup", "--to", str(folder), status=15)
        assert "SIGKILL" in refused["message"]
        assert not list(folder.glob("*.pbk")), "a killed backup has no name"
        del cluster.env["PROMOVOLVE_FAULT_AT"]
        acknowledged = set(load.outcomes.counted)
        made = cluster.ask("store", "backup", "--to", str(folder))
        load.more(RATE)
    assert [str(file) for file in folder.iterdir()] == [made["archive"]], "what the killed one had left is gone"
    last = made["backup"]["last_offset"]
    checked = cluster.ask("store", "verify", made["archive"])
    assert (checked["damaged"], checked["backup"]) == ([], made["backup"])
    log = log_of(opened(), last)
    assert len(log) == last
    assert acknowledged - counted(log) == set(), "acknowledged before and not in the backup"

    def restore(*words: str, status: int = 0) -> Any:
        command = ("store", "restore", made["archive"], *words)
        return cluster.ask(*command) if not status else cluster.refused(*command, status=status)

    force = ("--force", "existing-store", "--confirm", made["backup"]["cluster_name"])
    assert restore(*force, status=5)["code"] == "E-STORE-LIVE"
    aside = tmp_path / "aside"
    restore("--path", str(aside), "--yes")
    assert log_of(LmdbStore(aside, SystemClock()), last + 1) == log
    cluster.down()
    assert restore("--yes", status=5)["code"] in ("E-STORE-NOT-EMPTY", "E-STORE-LIVE")
    assert restore(*force)["kept"]
    cluster.restore()
    spent = sum(row["impressions_count"] for row in cluster.ask("campaign", "list")["items"])
    assert spent == sum(event == "imp" for event, _ in counted(log)), "states and log are of one instant"
    with BeaconLoad(cluster, RATE) as load:
        load.more(RATE)
    assert load.outcomes.refused == []
    assert load.outcomes.counted <= counted(log_of(opened(), 1 << 40))
